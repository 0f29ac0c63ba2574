"""The simulated metadata store: linearizable, with versions, leases and watches; away now and then, or out of reach.

A request takes effect at one moment between question and answer. Where the store cannot be reached at either moment nobody
knows whether it took effect, which is what etcd's clients have to live with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeVar

from penstock.simulation.schedule import Schedule

Result = TypeVar("Result")

UNAVAILABLE_MS = 400
"""How long it takes to learn that there is no answer."""
_LOOK_MS = 150


class Stored(NamedTuple):
    """A value and its version."""

    value: bytes
    version: int


class StoredChange(NamedTuple):
    """What became of a key; None: it is gone."""

    key: str
    value: bytes | None
    version: int


@dataclass(slots=True, eq=False)
class _Lease:
    ttl_ms: int
    ends_ms: int
    keys: set[str] = field(default_factory=set)


class SimulatedMetadata:
    """Keys, leases, and who hears of what."""

    def __init__(self, schedule: Schedule, random: Random) -> None:
        self._schedule = schedule
        self._random = random
        self.entries: dict[str, Stored] = {}
        self.log: list[StoredChange] = []
        self._leases: dict[int, _Lease] = {}
        self._lease_of: dict[str, int] = {}
        self._numbers = 0
        self.away = False
        self.unreachable_from: set[str] = set()
        self.slow_ms = (0, 0)
        """How much longer everything takes than it should."""
        self.lost_answers = 0.0
        """How often an answer is lost to something that was done."""
        self.lost: Callable[[], None] = lambda: None
        """Told of each of them."""
        self._changed_ms: list[int] = []
        """When each change of the log was made."""
        self._watches: list[Watch] = []

    # -- requests --------------------------------------------------------------------------------------------

    def reaches(self, who: str) -> bool:
        """Whether somebody can speak with the store."""
        return not self.away and who not in self.unreachable_from

    def ask(self, who: str, operation: Callable[[], Result], done: Callable[[Result | None], None]) -> None:
        """Carries an operation there and its result back; None: nobody knows."""

        def arrive() -> None:
            if not self.reaches(who):
                self._schedule.after(UNAVAILABLE_MS, lambda: done(None))
                return
            result = operation()
            self._schedule.after(self._delay_ms(), lambda: leave(result))

        def leave(result: Result) -> None:
            if self.lost_answers and self._random.random() < self.lost_answers:
                self.lost()
                self._schedule.after(UNAVAILABLE_MS, lambda: done(None))
            elif self.reaches(who):
                done(result)
            else:
                self._schedule.after(UNAVAILABLE_MS, lambda: done(None))

        self._schedule.after(self._delay_ms(), arrive)

    def _delay_ms(self) -> int:
        delay_ms = self._random.choice((0, 1, 1, 2, 2, 3, 15))
        return delay_ms + self._random.randint(*self.slow_ms) if self.slow_ms[1] else delay_ms

    # -- operations ------------------------------------------------------------------------------------------

    def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> bool:
        """Writes, on condition of a version (0: there is none) where one is named; and of a living lease."""
        if not self._is_so(key, version) or (lease is not None and lease not in self._leases):
            return False
        self._numbers += 1
        self._unlease(key)
        if lease is not None:
            self._leases[lease].keys.add(key)
            self._lease_of[key] = lease
        self.entries[key] = Stored(value, self._numbers)
        self._changed(StoredChange(key, value, self._numbers))
        return True

    def delete(self, key: str, version: int | None = None) -> bool:
        """Takes a key away."""
        if key not in self.entries or not self._is_so(key, version):
            return False
        self._numbers += 1
        self._unlease(key)
        del self.entries[key]
        self._changed(StoredChange(key, None, self._numbers))
        return True

    def _is_so(self, key: str, version: int | None) -> bool:
        found = self.entries.get(key)
        return version is None or version == (found.version if found is not None else 0)

    def _unlease(self, key: str) -> None:
        lease = self._lease_of.pop(key, None)
        if lease is not None:
            self._leases[lease].keys.discard(key)

    def grant(self, ttl_ms: int) -> int:
        """A new lease."""
        self._numbers += 1
        self._leases[self._numbers] = _Lease(ttl_ms, 0)
        self.renew(self._numbers)
        return self._numbers

    def renew(self, number: int) -> bool:
        """The lease lives for its length again; False where it has ended."""
        lease = self._leases.get(number)
        if lease is None:
            return False
        lease.ends_ms = self._schedule.elapsed_ms + lease.ttl_ms
        self._schedule.after(lease.ttl_ms, lambda: self._end(number))
        return True

    def revoke(self, number: int) -> bool:
        """The lease ends now, and with it what stands under it."""
        lease = self._leases.get(number)
        if lease is None:
            return False
        for key in sorted(lease.keys):
            self.delete(key)
        del self._leases[number]
        return True

    def _end(self, number: int) -> None:
        lease = self._leases.get(number)
        if lease is not None and not self.away and lease.ends_ms <= self._schedule.elapsed_ms:
            self.revoke(number)

    def come_back(self) -> None:
        """It answers again; like a new leader of etcd it gives every lease its whole length once more."""
        self.away = False
        for number in sorted(self._leases):
            self.renew(number)

    # -- watches ---------------------------------------------------------------------------------------------

    def watch(self, who: str, heard: Callable[[StoredChange], None]) -> Watch:
        """Everything that is there now, and every change after it, in order; later where the store is out of reach."""
        watch = Watch(self, who, heard)
        self._watches.append(watch)
        self._schedule.after(self._delay_ms(), watch.look)
        self._keep_looking(watch)
        return watch

    def _keep_looking(self, watch: Watch) -> None:
        """Who was out of reach goes on where it stopped."""
        if watch.ended:
            self._watches.remove(watch)
            return
        watch.look()
        self._schedule.after(_LOOK_MS, lambda: self._keep_looking(watch))

    def be_quick(self) -> None:
        """It answers everything, and at once."""
        self.slow_ms, self.lost_answers = (0, 0), 0.0
        self.lag(0)

    def lag(self, most_ms: int) -> None:
        """Some of those who follow the store hear of changes so much later, each by its own time."""
        for watch in self._watches:
            watch.lag_ms = self._random.choice((0, self._random.randint(0, most_ms))) if most_ms else 0

    def is_heard(self, place: int, lag_ms: int) -> bool:
        """Whether a change is known to one who hears everything so much later."""
        return self._changed_ms[place] + lag_ms <= self._schedule.elapsed_ms

    def _changed(self, change: StoredChange) -> None:
        self.log.append(change)
        self._changed_ms.append(self._schedule.elapsed_ms)
        for watch in self._watches:
            self._schedule.after(self._delay_ms(), watch.look)


class Watch:
    """One who follows the store."""

    def __init__(self, store: SimulatedMetadata, who: str, heard: Callable[[StoredChange], None]) -> None:
        self._store = store
        self._who = who
        self._heard = heard
        self._next: int | None = None
        self.lag_ms = 0
        self.ended = False

    def look(self) -> None:
        """Hears what there is to hear."""
        store = self._store
        if self.ended or not store.reaches(self._who):
            return
        if self._next is None:
            self._next = len(store.log)
            for key, stored in list(store.entries.items()):
                self._tell(StoredChange(key, *stored))
        while self._next < len(store.log) and store.is_heard(self._next, self.lag_ms):
            self._next += 1
            self._tell(store.log[self._next - 1])

    def _tell(self, change: StoredChange) -> None:
        if not self.ended:  # what it heard may have ended it
            self._heard(change)
