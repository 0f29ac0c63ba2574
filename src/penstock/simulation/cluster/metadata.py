"""The simulated metadata store: linearizable, with versions, leases and watches; unavailable, unreachable, or faulty.

A request takes effect at one moment after it was sent. If the store cannot be reached then, if the answer is lost, or if
it comes too late, the requester does not know whether the request took effect or still will. Clients of etcd have the same
problem.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeVar

from penstock.cluster.membership.store_requests import (
    ABSENT,
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
    Unknown,
)
from penstock.metadata.store.interface import Change, Entry, Listing
from penstock.simulation.cluster.mirror import End, SimulatedMirror
from penstock.simulation.schedule import Schedule

StoredChange = Change
Result = TypeVar("Result")

UNAVAILABLE_MS = 400
"""How long it takes to learn that there is no answer."""
_LOOK_MS = 150
_WATCH_PATIENCE_MS = 1_000
"""A watch that cannot reach the store for so long says so."""
_PATIENCE_MS = (400, 1_500, 5_000)
"""How long a requester waits for a slow answer."""


class StoredValue(NamedTuple):
    """A value and its version."""

    value: bytes
    version: int


@dataclass(slots=True, eq=False)
class _Lease:
    ttl_ms: int
    ends_ms: int
    keys: set[str] = field(default_factory=set)


@dataclass(slots=True)
class StoreFault:
    """What is wrong between the store and somebody who asks it."""

    slow_ms: int = 0
    """Each way takes up to so long."""
    back_ms: int = 0
    """Answers are so much later, within the requester's timeout."""
    loses_requests: float = 0.0
    """How many requests never arrive."""
    loses_answers: float = 0.0
    """Of the requests that change something, how many are not answered."""
    deaf: bool = False
    """Watches tell nothing."""


class SimulatedMetadata:
    """Keys, leases, and watches."""

    def __init__(self, schedule: Schedule, random: Random) -> None:
        self._schedule = schedule
        self._random = random
        self.entries: dict[str, StoredValue] = {}
        self.log: list[StoredChange] = []
        self.puts: list[tuple[StoredChange, int]] = []
        """Every put under a lease, and that lease; for checkers."""
        self.compacted = ABSENT
        """Changes up to this version are no longer available."""
        self._leases: dict[int, _Lease] = {}
        self._lease_of: dict[str, int] = {}
        self.version = ABSENT
        """Rises with every change, and with every lease."""
        self.away = False
        self.unreachable_from: set[str] = set()
        self.faults: dict[str, StoreFault] = {}
        """By who asks."""
        self.unheard: tuple[str, str] | None = None
        """Which requester cannot write which key, during a targeted fault (`targeted_stops.py`)."""
        self.streams: list[Stream] = []
        self.mirrors: list[SimulatedMirror] = []
        """All followers of the store, also ended ones; for checkers."""
        self.arriving: list[Callable[[Request], None]] = []
        """Called with every request of a process just before it takes effect; for checkers."""
        self.followed: list[Callable[[SimulatedMirror], None]] = []
        """Called with every follower, before it gets anything."""

    # -- requests --------------------------------------------------------------------------------------------

    def reaches(self, who: str) -> bool:
        """Whether a process can reach the store."""
        return not self.away and who not in self.unreachable_from

    def ask(
        self,
        who: str,
        operation: Callable[[], Result],
        done: Callable[[Result | None], None],
        *,
        reads: bool = False,
    ) -> None:
        """Carries an operation there and its result back; None: nobody knows."""
        fault, is_told = self.faults.get(who), False

        def tell(result: Result | None) -> None:
            nonlocal is_told
            if not is_told:
                is_told = True
                done(result)

        def arrive() -> None:
            is_lost = fault is not None and self._random.random() < fault.loses_requests
            if is_lost or not self.reaches(who):
                self._schedule.after(UNAVAILABLE_MS, lambda: tell(None))
                return
            result = operation()
            if fault is not None and not reads and self._random.random() < fault.loses_answers:
                self._schedule.after(UNAVAILABLE_MS, lambda: tell(None))
            else:
                back_ms = fault.back_ms if fault is not None else 0
                self._schedule.after(self._delay_ms(fault) + back_ms, lambda: leave(result))

        def leave(result: Result) -> None:
            if self.reaches(who):
                tell(result)
            else:
                self._schedule.after(UNAVAILABLE_MS, lambda: tell(None))

        self._schedule.after(self._delay_ms(fault), arrive)
        if fault is not None and fault.slow_ms:
            self._schedule.after(self._random.choice(_PATIENCE_MS), lambda: tell(None))

    def request(self, who: str, request: Request, done: Callable[[Outcome], None]) -> None:
        """Carries a request there and its outcome back."""
        if isinstance(request, Put) and self.unheard == (who, request.key):
            self._schedule.after(UNAVAILABLE_MS, lambda: done(Unknown("no answer")))
            return

        def carry_out() -> Outcome:
            for told in self.arriving:
                told(request)
            return self.carry_out(request)

        self.ask(
            who,
            carry_out,
            lambda outcome: done(outcome if outcome is not None else Unknown("no answer")),
            reads=isinstance(request, Look),
        )

    def carry_out(self, request: Request) -> Outcome:
        """Does it now."""
        match request:
            case Grant(lease_ms):
                return Granted(self.grant(lease_ms))
            case Renew(lease):
                return Renewed(self.renew(lease))
            case Revoke(lease):
                self.revoke(lease)
                return Revoked()
            case Look(key):
                found = self.entries.get(key)
                return Found(*found) if found is not None else Found(None, ABSENT)
            case Put(key, value, version, lease):
                if self.put(key, value, version, lease):
                    return Done(self.version)
                return LeaseEnded() if self._is_so(key, version) else Conflict()
            case Delete(key, version):
                if self.delete(key, version):
                    return Done(self.version)
                return Done(ABSENT) if self._is_so(key, version) else Conflict()

    def _delay_ms(self, fault: StoreFault | None = None) -> int:
        delay_ms = self._random.choice((0, 1, 1, 2, 2, 3, 15))
        if fault is not None and fault.slow_ms:
            delay_ms += self._random.randint(0, fault.slow_ms)
        return delay_ms

    # -- operations ------------------------------------------------------------------------------------------

    def listing(self) -> Listing:
        """Everything, as of one moment."""
        entries = (Entry(key, *stored) for key, stored in sorted(self.entries.items()))
        return Listing(tuple(entries), self.version)

    def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> bool:
        """Writes, on condition of a version (0: there is none) where one is named; and of a living lease."""
        if not self._is_so(key, version) or (lease is not None and lease not in self._leases):
            return False
        self.version += 1
        self._unlease(key)
        change = StoredChange(key, value, self.version)
        if lease is not None:
            self._leases[lease].keys.add(key)
            self._lease_of[key] = lease
            self.puts.append((change, lease))
        self.entries[key] = StoredValue(value, self.version)
        self._changed([change])
        return True

    def delete(self, key: str, version: int | None = None) -> bool:
        """Takes a key away."""
        if key not in self.entries or not self._is_so(key, version):
            return False
        self._delete([key])
        return True

    def _delete(self, keys: list[str]) -> None:
        """Deletes at one version, as etcd does with the entries of a lease."""
        self.version += 1
        for key in keys:
            self._unlease(key)
            del self.entries[key]
        self._changed([StoredChange(key, None, self.version) for key in keys])

    def _is_so(self, key: str, version: int | None) -> bool:
        found = self.entries.get(key)
        return version is None or version == (found.version if found is not None else ABSENT)

    def _unlease(self, key: str) -> None:
        lease = self._lease_of.pop(key, None)
        if lease is not None:
            self._leases[lease].keys.discard(key)

    def grant(self, ttl_ms: int) -> int:
        """A new lease."""
        self.version += 1
        self._leases[self.version] = _Lease(ttl_ms, 0)
        self.renew(self.version)
        return self.version

    def renew(self, number: int) -> bool:
        """The lease lives for its length again; False where it has ended."""
        lease = self._leases.get(number)
        if lease is None:
            return False
        lease.ends_ms = self._schedule.elapsed_ms + lease.ttl_ms
        self._schedule.after(lease.ttl_ms, lambda: self._end(number))
        return True

    def revoke(self, number: int) -> bool:
        """Ends the lease and its entries."""
        lease = self._leases.get(number)
        if lease is None:
            return False
        if lease.keys:
            self._delete(sorted(lease.keys))
        del self._leases[number]
        return True

    def _end(self, number: int) -> None:
        lease = self._leases.get(number)
        if lease is not None and not self.away and lease.ends_ms <= self._schedule.elapsed_ms:
            self.revoke(number)

    def come_back(self) -> None:
        """It answers again; like a new leader of etcd it extends every lease by its whole length."""
        self.away = False
        for number in sorted(self._leases):
            self.renew(number)

    # -- watches ---------------------------------------------------------------------------------------------

    def watch(self, who: str, heard: Callable[[StoredChange], None]) -> SimulatedMirror:
        """A front end that serves already: everything that is there now, and every change after it, in order."""
        mirror = SimulatedMirror(self, who, self._schedule)
        mirror.cache.listen("", heard)
        mirror.start(at_once=self.reaches(who))
        return mirror

    def follow(self, mirror: SimulatedMirror) -> None:
        """A process is about to follow the store."""
        self.mirrors.append(mirror)
        for told in self.followed:
            told(mirror)

    def stream(
        self, who: str, after: int, heard: Callable[[StoredChange], None], ended: Callable[[End], None]
    ) -> Stream:
        """Every change after a version, in order, until it is broken or lost."""
        stream = Stream(self, who, after, heard, ended)
        self.streams.append(stream)
        self._schedule.after(self._delay_ms(), lambda: self._keep_looking(stream))
        return stream

    def compact(self) -> None:
        """Past changes are no longer available."""
        self.compacted = self.version

    def _keep_looking(self, stream: Stream) -> None:
        if stream.over:
            self.streams.remove(stream)
            return
        stream.look(self._schedule.elapsed_ms)
        self._schedule.after(_LOOK_MS, lambda: self._keep_looking(stream))

    def _changed(self, changes: list[StoredChange]) -> None:
        self.log += changes
        for stream in self.streams:
            delay_ms = self._delay_ms(self.faults.get(stream.who))
            self._schedule.after(delay_ms, lambda stream=stream: stream.look(self._schedule.elapsed_ms))  # type: ignore[misc]  # a lambda with its own value


class Stream:
    """One watch of the store."""

    def __init__(
        self,
        store: SimulatedMetadata,
        who: str,
        after: int,
        heard: Callable[[StoredChange], None],
        ended: Callable[[End], None],
    ) -> None:
        self.who = who
        self.over = False
        self._store = store
        self._after = after
        self._next = bisect_right(store.log, after, key=lambda change: change.version)
        self._heard = heard
        self._ended = ended
        self._cut_off_ms: int | None = None

    def look(self, elapsed_ms: int) -> None:
        """Delivers pending changes."""
        store = self._store
        if self.over:
            return
        if not store.reaches(self.who):
            if self._cut_off_ms is None:
                self._cut_off_ms = elapsed_ms
            elif elapsed_ms - self._cut_off_ms >= _WATCH_PATIENCE_MS:
                self.end("unavailable")
            return
        self._cut_off_ms = None
        fault = store.faults.get(self.who)
        if fault is not None and fault.deaf:
            return
        if self._next < len(store.log) and self._after < store.compacted:
            self.end("lost")
            return
        while self._next < len(store.log) and not self.over:
            change = store.log[self._next]
            self._next += 1
            self._after = change.version
            self._heard(change)

    def end(self, how: End) -> None:
        """Delivers nothing more."""
        if not self.over:
            self.over = True
            self._ended(how)
