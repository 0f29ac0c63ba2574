"""Checks what nodes and managers may do only while their lease is valid, with the store's own data.

| checker | promise |
|---|---|
| lease | a node acknowledges alone (`async`) only while its entry, of this life, is in the store |
| manager | a node writes as the manager only while the office's entry is the one it created; its decisions change the version of the entry that it knew, or nothing |
| lives | every lease of a node is another life: an entry under another lease has a later `started_ms` |
| I11 | see `layout_history` and `queue_answers`; and a follower of the store gets for a key what the store had at that version, in the order of versions, and at the end what the store has |
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.cluster.layout.entries import NODES, decode_node, node_key
from penstock.cluster.manager.candidate import MANAGER_ELECTION
from penstock.cluster.membership.campaign import ELECTIONS
from penstock.cluster.membership.store_requests import ABSENT, Delete, Put, Request
from penstock.replication.interface import Need
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.simulation.cluster.metadata import SimulatedMetadata, StoredChange
from penstock.simulation.cluster.mirror import SimulatedMirror
from penstock.simulation.cluster.seen_commitment import SeenCommitment
from penstock.simulation.cluster.store_history import StoreHistory
from penstock.simulation.schedule import Schedule
from penstock.simulation.violation import Violation


class MembershipObserver:
    """Sees every node, every manager and every follower of the store; each violation is reported once."""

    def __init__(self, metadata: SimulatedMetadata, schedule: Schedule) -> None:
        self.history = StoreHistory(metadata)
        self.violations: list[Violation] = []
        self._metadata = metadata
        self._schedule = schedule
        self._said: set[str] = set()
        self._stood: dict[str, tuple[int, int]] = {}
        self._heard: dict[int, dict[str, int]] = {}
        """By follower and key: the last received version."""
        self._decided: dict[int, tuple[str, Put | Delete, int]] = {}
        """Requests of managers in transit: the manager, and the version of the entry that it knew."""
        metadata.followed.append(self._follow)
        metadata.arriving.append(self._arrives)

    # -- nodes and managers ----------------------------------------------------------------------------------

    def started(self, name: str, node: ReplicatedNode) -> None:
        """A life of a process begins: every acknowledgement is seen from now on."""

        def seen(need: Need) -> None:
            led = node.replication.state.led.get(need[0])
            if led is not None and not led.primary.synchronous:
                self._acknowledged_alone(name, node, need[0])

        outbox = node._parts.outbox
        outbox.commitment = SeenCommitment(outbox.commitment, seen)

    def stood_still(self, name: str, since_ms: int, version: int) -> None:
        """A process paused in the middle of a turn: since when by its own clock, and the store's version then."""
        self._stood[name] = (since_ms, version)

    def _acknowledged_alone(self, name: str, node: ReplicatedNode, partition: int) -> None:
        """A decision before a pause is like a slow answer: its last reading of the clock counts."""
        started_ms, (since_ms, version) = node.replication.started_ms, self._stood.get(name, (-1, 0))
        found = self._metadata.entries.get(node_key(name))
        value = found.value if found is not None else None
        if node.replication.state.now_ms <= since_ms:
            value = self.history.at(node_key(name), version)
        if value is None or decode_node(value).started_ms != started_ms:
            self._violated(
                "lease",
                f"{name} acknowledged alone for partition {partition} in its life {started_ms}, which the store has "
                "ended",
            )

    def manager_writes(self, name: str, epoch: int, request: Put | Delete, known: int) -> None:
        """A node asks for what it decided as the manager, when it knew the entry at a version."""
        self._decided[id(request)] = (name, request, known)
        found = self._metadata.entries.get(ELECTIONS + MANAGER_ELECTION)
        if found is None or found.version != epoch:
            holder = found.value.decode() if found is not None else "nobody"
            self._violated("manager", f"{name} decides as the manager since {epoch}, and {holder} is")

    def _arrives(self, request: Request) -> None:
        """However late it arrives, it changes the version that it was decided about, or nothing."""
        decided = self._decided.pop(id(request), None)
        if decided is None or not isinstance(request, Put | Delete):
            return
        name, _, known = decided
        found = self._metadata.entries.get(request.key)
        present = found.version if found is not None else ABSENT
        if present != known and request.version in (None, present):
            self._violated(
                "manager",
                f"{name} changes {request.key} as it is at {present}, and decided about it as it was at {known}",
            )

    # -- followers -------------------------------------------------------------------------------------------

    def _follow(self, mirror: SimulatedMirror) -> None:
        known = self._heard[len(self._heard)] = {}

        def heard(change: StoredChange) -> None:
            if change.version <= known.get(change.key, 0):
                self._violated(
                    "I11", f"{mirror.who} hears of {change.key} again, as it was at {change.version}"
                )
            known[change.key] = change.version
            if self.history.at(change.key, change.version) != change.value:
                self._violated(
                    "I11", f"{mirror.who} hears of {change.key} what was not there at {change.version}"
                )

        mirror.cache.listen("", heard)

    def differing_followers(self) -> list[str]:
        """Followers that do not know what the store has."""
        entries = {key: stored.version for key, stored in self._metadata.entries.items()}
        return [
            mirror.who
            for mirror in self._metadata.mirrors
            if not mirror.ended and {entry.key: entry.version for entry in mirror.cache.list("")} != entries
        ]

    # -- lives -----------------------------------------------------------------------------------------------

    def check_lives(self) -> Iterator[Violation]:
        """Checks every entry that any node ever put."""
        last: dict[str, tuple[int, int]] = {}
        for change, lease in self._metadata.puts:
            if not change.key.startswith(NODES) or change.value is None:
                continue
            started_ms = decode_node(change.value).started_ms
            before = last.get(change.key)
            if before is not None and (
                started_ms <= before[1] if lease != before[0] else started_ms != before[1]
            ):
                name = change.key.removeprefix(NODES)
                yield Violation(
                    "lives",
                    self._schedule.now_ms,
                    f"{name} registered as life {started_ms} under lease {lease}, after life {before[1]} under lease "
                    f"{before[0]}",
                )
            last[change.key] = (lease, started_ms)

    def _violated(self, checker: str, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self.violations.append(Violation(checker, self._schedule.now_ms, sentence))
