"""Installs a whole state from a primary: it replaces this replica's state completely or not at all.

The parts are kept in memory until all of them are here. Then the state is built from them, a few pages in a turn. They are
written to the journal, and with the last of them the new state replaces the old one.

Between the first and the last part that is written, the journal contains a state that is not valid yet, and a snapshot
would contain the old one. A snapshot taken there would separate the parts: the earlier ones would not be read again, or
their files would be reused. So a checkpoint and an installation exclude each other. An installation begins when no
checkpoint is running (it may be copying entries that are about to be replaced), and no checkpoint begins until the
installation has ended. Neither waits for the network while it runs, so both end.

If the disk is full, the parts that were written are ignored: a checkpoint may free space, and the installation begins
again from the first part.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from penstock.backend.node.parts import NodeParts
from penstock.model.document import TooOldError
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import MEBIBYTE
from penstock.queue import living_files
from penstock.queue.partition import Partition
from penstock.queue.snapshot.building import Builder
from penstock.replication.primary_secondary.node.follower.follower_state import FollowerState
from penstock.replication.primary_secondary.node.peer_stream import PeerStream

logger = logging.getLogger("penstock.backend")

BYTES_PER_TURN = 4 * MEBIBYTE
"""How much of a state goes to the journal in one turn: answers of other queues wait for the same flush."""
PAGES_PER_TURN = 2
"""So many pages of a state are built in one turn. A page takes five milliseconds where every other message of it is gone."""
RETRY_MS = 1_000
"""How long after a full disk the next attempt is made."""


@dataclass(slots=True, eq=False)
class Installation:
    """One state that is complete in memory."""

    follower_state: FollowerState
    index: int
    parts: list[bytes]
    stream: PeerStream
    """The primary's, which sent it."""
    builder: Builder = field(default_factory=lambda: Builder(elsewhere=True))
    fed: int = 0
    """Parts that the builder was given."""
    partition: Partition | None = None
    """The state, once it is built."""
    number: int = 0
    written: int = 0
    not_before_ms: int = 0

    @property
    def is_wanted(self) -> bool:
        """Whether the node still follows its primary."""
        return self.follower_state.installing == self.number


class Installed(NamedTuple):
    """An effect: a state is valid now, and has replaced the earlier one."""

    installation: Installation
    before: Partition
    after: Partition


class Unreadable(NamedTuple):
    """An effect: a newer version wrote the state, or it cannot be read, and it is not installed."""

    installation: Installation
    why: str


Outcome = Installed | Unreadable


class Installer:
    """The installations of a node."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._installations: list[Installation] = []
        self._begun = 0
        self._outcomes: list[Outcome] = []

    @property
    def is_writing(self) -> bool:
        """While this holds no checkpoint may begin: some parts of a state are in the journal and others are not."""
        return self.is_waiting and any(row.written and row.is_wanted for row in self._installations)

    @property
    def is_building(self) -> bool:
        """Whether `step` can continue at once."""
        return self.is_waiting and any(row.partition is None and row.is_wanted for row in self._installations)

    @property
    def is_waiting(self) -> bool:
        """Whether `step` has something to do."""
        return bool(self._installations)

    def begin(self, installation: Installation) -> None:
        """All parts are here."""
        self._begun += 1
        installation.number = installation.follower_state.installing = self._begun
        self._installations.append(installation)

    def step(self, now_ms: int) -> list[Outcome]:
        """Continues all installations that can continue, and returns those that have ended."""
        room, pages = BYTES_PER_TURN, PAGES_PER_TURN
        for installation in list(self._installations):
            if not installation.is_wanted:
                self._remove(installation)
            elif installation.partition is None:
                pages -= self._build(installation, pages)
            elif room > 0 and now_ms >= installation.not_before_ms:
                room -= self._write(installation, room, now_ms)
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def _build(self, installation: Installation, most: int) -> int:
        """Builds up to so many pages of the state; returns how many."""
        builder, built = installation.builder, 0
        try:
            while built < most and installation.partition is None:
                built += 1
                if not builder.build(1):
                    continue
                if installation.fed < len(installation.parts):
                    builder.feed(installation.parts[installation.fed])
                    installation.fed += 1
                else:
                    installation.partition = builder.finish()
        except TooOldError as error:
            self._give_up(installation, error.message)
        except (msgspec.DecodeError, ValueError) as error:
            self._give_up(installation, f"the received state cannot be read ({error}); please report it")
        return built

    def _remove(self, installation: Installation) -> None:
        """Frees a state that was built and is not needed."""
        self._installations.remove(installation)
        built = installation.builder.begun
        if built is not None:
            self._parts.freeing.add(built)

    def _give_up(self, installation: Installation, why: str) -> None:
        self._remove(installation)
        installation.follower_state.installing = 0
        self._outcomes.append(Unreadable(installation, why))

    def _write(self, installation: Installation, room: int, now_ms: int) -> int:
        """Writes some parts; returns how many bytes those had."""
        if not installation.written and self._parts.checkpointer.is_under_way:
            return 0
        logbook, parts = self._parts.logbook, installation.parts
        partition_id = installation.follower_state.partition_id
        size = 0
        while installation.written < len(parts) and size < room:
            part = parts[installation.written]
            try:
                logbook.write_image(partition_id, installation.index, installation.written, len(parts), part)
            except PenstockError as error:
                if error.code is ErrorCode.DISK_FULL:
                    installation.written = 0
                    installation.not_before_ms = now_ms + RETRY_MS
                return size
            installation.written += 1
            size += len(part)
        if installation.written == len(parts):
            self._finish(installation)
        return size

    def _finish(self, installation: Installation) -> None:
        parts, partition_id = self._parts, installation.follower_state.partition_id
        self._installations.remove(installation)
        before, after = parts.catalogue.partitions[partition_id], installation.partition
        if after is None:
            raise ValueError(f"the state of partition {partition_id} is written before it is built")
        parts.catalogue.partitions[partition_id] = after
        parts.catalogue.damage.pop(partition_id, None)
        parts.store.keep_only(partition_id, living_files.files_of(after))
        logger.info(
            "partition %(partition)d was copied from the primary as of record %(record)d",
            {"partition": partition_id, "record": installation.index},
        )
        installation.follower_state.installing = 0
        self._outcomes.append(Installed(installation, before, after))
        parts.freeing.add(before)
