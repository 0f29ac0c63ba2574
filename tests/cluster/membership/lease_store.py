"""A small store with versions and leases, and requests on their way to it that may be slow, lost or late."""

from __future__ import annotations

from typing import NamedTuple

from penstock.cluster.membership.store_requests import (
    ABSENT,
    Ask,
    Conflict,
    Delete,
    Done,
    Found,
    Grant,
    Granted,
    LeaseEnded,
    Look,
    Outcome,
    Put,
    Renew,
    Renewed,
    Request,
    Revoke,
    Revoked,
)


class Stored(NamedTuple):
    value: bytes
    version: int
    lease: int | None


class LeaseStore:
    """The truth. Leases end by its own clock, `now_ms`."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.version = 10
        self.entries: dict[str, Stored] = {}
        self.ends_ms: dict[int, tuple[int, int]] = {}
        """Lease → (when it ends, how long it is)."""
        self.puts: list[tuple[str, bytes, int | None]] = []
        self.news: list[tuple[str, bytes | None, int]] = []

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        for lease in [lease for lease, (ends_ms, _) in self.ends_ms.items() if ends_ms <= self.now_ms]:
            self._end(lease)

    def carry_out(self, request: Request) -> Outcome:
        match request:
            case Grant(lease_ms):
                self.version += 1
                self.ends_ms[self.version] = (self.now_ms + lease_ms, lease_ms)
                return Granted(self.version)
            case Renew(lease):
                if lease not in self.ends_ms:
                    return Renewed(False)
                lease_ms = self.ends_ms[lease][1]
                self.ends_ms[lease] = (self.now_ms + lease_ms, lease_ms)
                return Renewed(True)
            case Revoke(lease):
                self._end(lease)
                return Revoked()
            case Look(key):
                found = self.entries.get(key)
                return Found(found.value, found.version) if found is not None else Found(None, ABSENT)
            case Put(key, value, version, lease):
                if version is not None and version != self._version(key):
                    return Conflict()
                if lease is not None and lease not in self.ends_ms:
                    return LeaseEnded()
                self.version += 1
                self.entries[key] = Stored(value, self.version, lease)
                self.puts.append((key, value, lease))
                self.news.append((key, value, self.version))
                return Done(self.version)
            case Delete(key, version):
                if version is not None and version != self._version(key):
                    return Conflict()
                return Done(self._delete(key)) if key in self.entries else Done(ABSENT)

    def _version(self, key: str) -> int:
        return self.entries[key].version if key in self.entries else ABSENT

    def _delete(self, key: str) -> int:
        self.version += 1
        del self.entries[key]
        self.news.append((key, None, self.version))
        return self.version

    def _end(self, lease: int) -> None:
        if self.ends_ms.pop(lease, None) is not None:
            for key in [key for key, stored in self.entries.items() if stored.lease == lease]:
                self._delete(key)


class Flying:
    """A question on its way, and what became of it at the store."""

    def __init__(self, ask: Ask) -> None:
        self.number = ask.number
        self.request = ask.request
        self.outcome: Outcome | None = None
        self.is_told = False

    def land(self, store: LeaseStore) -> None:
        if self.outcome is None:
            self.outcome = store.carry_out(self.request)
