"""A node's registration in the metadata store: that it is alive, and the positions of logs without a primary, under one
lease.

Events and ticks come in, effects go out; `runtime/cluster/peers/registration.py` and the simulation carry them out.

Invariants:
- The node relies on its lease only up to a time that is before the lease's end, as `held_lease` proves.
- Every lease is another life. An entry is never put under a second lease with a `started_ms` that may have been in the
  store under
  the first: while the entry was missing, another node may have been elected, and only another `started_ms` makes this node stand
  down first. This holds also if the put of the first was never answered, because it may have been done.
- The node stands down (`NewLife`) before its new entry is put, and relies on the new lease only after the put was
  answered.
- A lease that is known to have ended, or whose entry is missing or belongs to another process, is dropped at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from penstock.cluster.layout.entries import (
    NodeEntry,
    Position,
    PositionsEntry,
    decode_node,
    encode,
    node_key,
    positions_key,
)
from penstock.cluster.membership.held_lease import HeldLease, counted_on_ms
from penstock.cluster.membership.own_entry import OwnEntry
from penstock.cluster.membership.store_requests import (
    ABSENT,
    Ask,
    Conflict,
    Done,
    Found,
    Grant,
    Granted,
    LeaseEnded,
    Look,
    Outcome,
    Put,
    Renew,
    Request,
    Revoke,
    Unknown,
)

LEASE_MS = 2_000
RENEWALS_PER_LEASE = 4
RENEW_MS = LEASE_MS // RENEWALS_PER_LEASE
RETRY_MS = 200
LOOK_MS = 10_000
"""So often a node looks whether its entry is still there."""

_LEASE_ENDED = "its lease has ended"
_ENTRY_GONE = "its entry is gone from the metadata store"


class CountOn(NamedTuple):
    """An effect: up to this time the node cannot be replaced; 0: it can be at any moment."""

    until_ms: int


class NewLife(NamedTuple):
    """An effect: the node leads only what it is assigned under this `started_ms`."""

    started_ms: int


class Registered(NamedTuple):
    """An effect: the node is in the layout, for the first time."""


class Note(NamedTuple):
    """An effect: a sentence for the log."""

    sentence: str


Effect = Ask | CountOn | NewLife | Registered | Note


@dataclass(slots=True, eq=False)
class _Attempt:
    """One attempt to register: look, get a lease, put the entry under it."""

    began_ms: int
    """Before the lease was asked for."""
    step: Literal["look", "grant", "put"] = "look"
    version: int = ABSENT
    lease: int | None = None
    value: bytes = b""
    """The value to put."""


class NodeLease:
    """One process of a node, from its first registration until it leaves."""

    def __init__(self, entry: NodeEntry, now_ms: int, lease_ms: int = LEASE_MS) -> None:
        self.entry = entry
        self.is_registered = False
        """Whether it is in the layout, as far as is known."""
        self._lease_ms = lease_ms
        self._renew_ms = lease_ms // RENEWALS_PER_LEASE
        self._lease: HeldLease | None = None
        self._attempt: _Attempt | None = None
        self._retry_ms = now_ms
        self._may_be_seen = False
        """Whether an entry with this `started_ms` may be in the store, or may have been."""
        self._was_registered = self._has_left = self._fails = False
        self._questions: dict[int, _Attempt | HeldLease | OwnEntry | None] = {}
        self._last_question = 0
        self._floor = ABSENT
        """The version of the store at which the node registered: older news about its entry means nothing."""
        self._last_heard: tuple[int, bytes | None] = (ABSENT, None)
        """The newest news about its entry, and their version: they may be quicker than the answer to the put that they come after."""
        self._look_ms = 0
        """When the node looks at its entry again without a notification."""
        self._node = OwnEntry(node_key(entry.node), None, None)
        self._said = OwnEntry(positions_key(entry.node), None, None)
        self._positions: dict[int, Position] = {}
        self._wanted_node = self._wanted_said = b""
        self._effects: list[Effect] = []

    # -- events ----------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> list[Effect]:
        """Time has passed."""
        if self._has_left:
            pass
        elif self._lease is not None:
            self._keep(self._lease, now_ms)
        elif self._attempt is not None:
            if now_ms >= self._attempt.began_ms + counted_on_ms(self._lease_ms):
                # The lease could not be counted on any more, even if all went well from now on.
                self._give_up(self._attempt, "the store does not answer", now_ms)
        else:
            self._begin_if_due(now_ms)
        return self._take()

    def next_ms(self) -> int | None:
        """When to tick at the latest."""
        if self._has_left:
            return None
        if self._lease is None:
            attempt = self._attempt
            return attempt.began_ms + counted_on_ms(self._lease_ms) if attempt is not None else self._retry_ms
        times = [self._lease.next_ms] if self._lease.next_ms is not None else []
        if not self._node.is_asking:
            times.append(self._look_ms)
        for own, wanted in self._entries():
            if not own.is_asking and wanted != own.value:
                times.append(own.retry_ms)
        return min(times, default=None)

    def answered(self, question: int, outcome: Outcome, now_ms: int) -> list[Effect]:
        """The store has answered, or will not."""
        about = self._questions.pop(question, None)
        if isinstance(outcome, Granted) and (about is not self._attempt or about is None):
            self._ask(Revoke(outcome.lease))  # the attempt was given up
        elif about is None or self._has_left:
            pass
        elif isinstance(about, _Attempt):
            if about is self._attempt:
                self._go_on(about, outcome, now_ms)
        elif isinstance(about, HeldLease):
            if about is self._lease:
                self._renewal_answered(about, question, outcome, now_ms)
        elif about is self._node or about is self._said:
            self._entry_answered(about, outcome, now_ms)
        return self._take()

    def heard(self, value: bytes | None, version: int, now_ms: int) -> list[Effect]:
        """A watch reports the entry under the node's own key."""
        if version > self._last_heard[0]:
            self._last_heard = (version, value)
        if self._lease is not None:
            self._judge(self._lease, value, version, now_ms)
        return self._take()

    def _judge(self, lease: HeldLease, value: bytes | None, version: int, now_ms: int) -> None:
        """Drops the lease if the entry under the node's key since this version is not its own."""
        if version <= self._floor or self._started_of(value) == self.started_ms:
            return
        if value is None:
            self._lose(lease, _ENTRY_GONE, now_ms)
        else:
            self._lose(lease, "another process has registered under its name", now_ms, pause_ms=RETRY_MS)

    def say_positions(self, positions: dict[int, Position], now_ms: int) -> list[Effect]:
        """How far the logs go that the node is asked about."""
        if positions != self._positions:
            self._positions = positions
            self._wanted_said = b""
            if self._lease is not None and not self._has_left:
                self._keep(self._lease, now_ms)
        return self._take()

    def say_leaving(self, now_ms: int) -> list[Effect]:
        """The node is about to stop: it is given nothing more."""
        self.entry = msgspec.structs.replace(self.entry, leaving=True)
        self._wanted_node = b""
        if self._lease is not None and not self._has_left:
            self._keep(self._lease, now_ms)
        return self._take()

    def leave(self) -> list[Effect]:
        """A clean stop. A node that acknowledges alone stops before another one can be elected."""
        self._has_left = True
        self._effects.append(CountOn(0))
        if self._lease is not None:
            self._ask(Revoke(self._lease.number))
        if self._attempt is not None and self._attempt.lease is not None:
            self._ask(Revoke(self._attempt.lease))
        self._lease = self._attempt = None
        self.is_registered = False
        return self._take()

    # -- what is asked ---------------------------------------------------------------------------------------

    @property
    def started_ms(self) -> int:
        """The number of this life."""
        return self.entry.started_ms

    @property
    def leaving_is_said(self) -> bool:
        """Whether the store knows that the node is about to stop."""
        return self._lease is not None and self.entry.leaving and self._node.value == encode(self.entry)

    # -- registering -----------------------------------------------------------------------------------------

    def _go_on(self, attempt: _Attempt, outcome: Outcome, now_ms: int) -> None:
        match outcome:
            case Found(value, version) if attempt.step == "look":
                started_ms = self._started_of(value)
                if started_ms is not None and started_ms >= self.started_ms:
                    self._may_be_seen = True  # the number has been used
                    self.entry = msgspec.structs.replace(self.entry, started_ms=started_ms)
                attempt.version, attempt.step, attempt.began_ms = version, "grant", now_ms
                self._ask(Grant(self._lease_ms), attempt)
            case Granted(lease) if attempt.step == "grant":
                attempt.lease, attempt.step = lease, "put"
                if self._may_be_seen:
                    self._begin_new_life(now_ms)
                self._may_be_seen = True
                attempt.value = encode(self.entry)
                self._ask(Put(self._node.key, attempt.value, attempt.version, lease), attempt)
            case Done(version) if attempt.step == "put" and attempt.lease is not None:
                self._registered(attempt, attempt.lease, version, now_ms)
            case Conflict() | LeaseEnded() if attempt.step == "put":
                self._may_be_seen = False  # nothing was written, and this number was never tried before
                self._give_up(attempt, "its entry was changed meanwhile", now_ms)
            case Unknown(why):
                self._give_up(attempt, why, now_ms)
            case _:
                self._give_up(attempt, f"the store answered {outcome}", now_ms)

    def _begin_new_life(self, now_ms: int) -> None:
        started_ms = max(now_ms, self.started_ms + 1)
        self.entry = msgspec.structs.replace(self.entry, started_ms=started_ms)
        self._wanted_said = b""
        self._effects.append(NewLife(started_ms))

    def _registered(self, attempt: _Attempt, lease: int, version: int, now_ms: int) -> None:
        self._attempt = None
        self._lease = HeldLease(lease, self._lease_ms, self._renew_ms, RETRY_MS, attempt.began_ms)
        self._floor = version
        self._look_ms = now_ms + LOOK_MS
        self._node = OwnEntry(self._node.key, version, attempt.value)
        # The entry of an earlier life may still exist; then the first write finds out.
        self._said = OwnEntry(self._said.key, ABSENT, None)
        self._effects.append(CountOn(self._lease.until_ms))
        self.is_registered = True
        if not self._was_registered:
            self._was_registered = True
            self._effects.append(Registered())
        elif self._fails:
            self._effects.append(Note(f"node {self.entry.node} is registered again"))
        self._fails = False
        self._wanted_node = b""
        self._keep(self._lease, now_ms)
        heard, value = self._last_heard
        self._judge(self._lease, value, heard, now_ms)

    def _give_up(self, attempt: _Attempt, why: str, now_ms: int) -> None:
        self._attempt = None
        self._retry_ms = now_ms + RETRY_MS
        if attempt.lease is not None:
            self._ask(Revoke(attempt.lease))
        self._note_failure(f"could not register: {why}")

    # -- staying registered ----------------------------------------------------------------------------------

    def _keep(self, lease: HeldLease, now_ms: int) -> None:
        """Renews the lease and writes what has changed, where that is due."""
        if lease.is_due(now_ms):
            self._last_question += 1
            self._questions[self._last_question] = lease
            lease.asked(self._last_question, now_ms)
            self._effects.append(Ask(self._last_question, Renew(lease.number)))
        if now_ms >= self._look_ms and not self._node.is_asking:
            # Followers of the store may have missed that the entry was gone, and then the node is assigned nothing.
            self._look_ms = now_ms + LOOK_MS
            self._ask(self._node.look(), self._node)
        for own, wanted in self._entries():
            request = own.next_request(wanted, lease.number, now_ms)
            if request is not None:
                self._ask(request, own)

    def _entries(self) -> list[tuple[OwnEntry, bytes]]:
        """The node's entries, and their next values."""
        if not self._wanted_node:
            self._wanted_node = encode(self.entry)
        entries = [(self._node, self._wanted_node)]
        if self._positions or self._said.value is not None or self._said.version is None:
            if not self._wanted_said:
                self._wanted_said = encode(
                    PositionsEntry(
                        node=self.entry.node, started_ms=self.started_ms, positions=self._positions
                    )
                )
            entries.append((self._said, self._wanted_said))
        return entries

    def _renewal_answered(self, lease: HeldLease, question: int, outcome: Outcome, now_ms: int) -> None:
        until_ms = lease.until_ms
        if not lease.answered(question, outcome, now_ms):
            self._lose(lease, _LEASE_ENDED, now_ms)
            return
        if lease.until_ms > until_ms:
            self._effects.append(CountOn(lease.until_ms))
            if self._fails:
                self._fails = False
                self._effects.append(Note(f"node {self.entry.node} renews its registration again"))
        elif isinstance(outcome, Unknown):
            self._note_failure(f"could not renew its registration: {outcome.why}")

    def _entry_answered(self, own: OwnEntry, outcome: Outcome, now_ms: int) -> None:
        lease = self._lease
        if lease is None:
            return
        if isinstance(outcome, LeaseEnded):
            self._lose(lease, _LEASE_ENDED, now_ms)
            return
        own.answered(outcome, now_ms, RETRY_MS)
        if (
            own is self._node
            and isinstance(outcome, Found)
            and self._started_of(outcome.value) != self.started_ms
        ):
            self._lose(lease, _ENTRY_GONE, now_ms)
        else:
            self._keep(lease, now_ms)

    def _lose(self, lease: HeldLease, why: str, now_ms: int, pause_ms: int = 0) -> None:
        """Nothing is counted on any more; the node registers again, as another life."""
        self._effects += [CountOn(0), Note(f"node {self.entry.node} registers again: {why}")]
        self._ask(Revoke(lease.number))  # it may live on, where only the entry is gone
        self._lease = None
        self.is_registered = False
        self._fails = True
        self._retry_ms = now_ms + pause_ms
        self._begin_if_due(now_ms)

    def _begin_if_due(self, now_ms: int) -> None:
        if now_ms >= self._retry_ms and self._attempt is None and self._lease is None:
            self._attempt = _Attempt(now_ms)
            self._ask(Look(self._node.key), self._attempt)

    # -- help ------------------------------------------------------------------------------------------------

    def _ask(self, request: Request, about: _Attempt | OwnEntry | None = None) -> None:
        self._last_question += 1
        self._questions[self._last_question] = about
        self._effects.append(Ask(self._last_question, request))

    def _note_failure(self, what: str) -> None:
        if not self._fails:
            self._effects.append(Note(f"node {self.entry.node} {what}"))
        self._fails = True

    def _started_of(self, value: bytes | None) -> int | None:
        """The `started_ms` of an entry under the node's key; None where there is none, or it cannot be read."""
        try:
            return decode_node(value).started_ms if value is not None else None
        except msgspec.MsgspecError:
            return None

    def _take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects
