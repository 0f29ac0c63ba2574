"""A store as a plain dictionary that remembers every change and checks the layout's rules at each."""

from __future__ import annotations

from typing import NamedTuple

from penstock.cluster.layout.entries import PARTITIONS, PartitionEntry, decode_partition


class UnsafeError(Exception):
    """A rule that must always hold was broken; the message says which."""


class Written(NamedTuple):
    key: str
    value: bytes | None
    version: int


class ModelStore:
    """Compare-and-set, and the history for those who follow it late."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[bytes, int]] = {}
        self.history: list[Written] = []
        self.version = 0
        self.leaders: dict[tuple[int, int], tuple[str, int]] = {}
        self.elections = 0
        self.elections_from_before = 0
        self.hand_overs = 0
        self.on_their_way: dict[int, int] = {}
        """By partition: messages that are still to leave it for other queues."""

    def get(self, key: str) -> tuple[bytes, int] | None:
        return self.entries.get(key)

    def put(self, key: str, value: bytes, version: int | None) -> bool:
        if not self._is(key, version):
            return False
        if key.startswith(PARTITIONS):
            self._check(key, decode_partition(value))
        self._write(key, value)
        return True

    def delete(self, key: str, version: int | None) -> bool:
        if key not in self.entries or not self._is(key, version):
            return False
        if key.startswith(PARTITIONS):
            entry = decode_partition(self.entries[key][0])
            if entry.replicas or entry.leaving:
                raise UnsafeError(f"the entry of {key} goes while {entry.replicas + entry.leaving} hold it")
        self._write(key, None)
        return True

    def under(self, prefix: str) -> list[tuple[str, bytes, int]]:
        return [(key, *self.entries[key]) for key in sorted(self.entries) if key.startswith(prefix)]

    def _is(self, key: str, version: int | None) -> bool:
        return version is None or self.entries.get(key, (b"", 0))[1] == version

    def _write(self, key: str, value: bytes | None) -> None:
        self.version += 1
        self.history.append(Written(key, value, self.version))
        if value is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = (value, self.version)

    def _check(self, key: str, new: PartitionEntry) -> None:
        """Epochs rise by one with every primary, and nobody joins those in sync by being elected who was not before."""
        if not set(new.in_sync) <= set(new.replicas) or (new.replicas and not new.in_sync):
            raise UnsafeError(f"{key}: in sync are {new.in_sync} of {new.replicas}")
        if set(new.leaving) & set(new.replicas):
            raise UnsafeError(f"{key}: {new.leaving} are to drop what they are to hold, of {new.replicas}")
        if new.primary is not None:
            if new.primary not in new.in_sync:
                raise UnsafeError(f"{key}: {new.primary} leads and is not in sync")
            led_by = (new.primary, new.primary_started_ms)
            if self.leaders.setdefault((new.partition, new.epoch), led_by) != led_by:
                raise UnsafeError(f"{key}: two primaries in epoch {new.epoch}")
        found = self.entries.get(key)
        if found is None:
            return
        old = decode_partition(found[0])
        left = self.on_their_way.get(new.partition, 0)
        if old.replicas and not new.replicas and left:
            raise UnsafeError(f"{key}: it is given up though {left} messages are on their way elsewhere")
        if old.deleted and not new.deleted:
            raise UnsafeError(f"{key}: a deleted partition is not deleted any more")
        if new.epoch not in (old.epoch, old.epoch + 1):
            raise UnsafeError(f"{key}: epoch {new.epoch} follows {old.epoch}")
        if new.epoch == old.epoch + 1:
            self.elections += 1
            self.hand_overs += old.hand_over_to is not None
            whole = {*old.in_sync, *(old.in_sync_before if old.serving != old.epoch else ())}
            self.elections_from_before += new.primary not in old.in_sync
            if new.primary not in whole or not set(new.in_sync) <= whole:
                raise UnsafeError(f"{key}: {new.primary} of {new.in_sync} follows in sync {old.in_sync}")
