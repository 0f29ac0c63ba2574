"""A campaign for an office: one of several candidates holds it, for as long as it renews its lease.

The holder is the candidate that created the office's entry. The entry exists as long as the candidate's lease. Its version
rises from holder to holder, so it serves as an epoch.

Events and ticks come in, effects go out; `metadata/election.py`, `runtime/cluster/manager.py` and the simulation carry
them out.

Invariants:
- `holds(now_ms)` is true only while the store has certainly not ended the lease under which the entry was created
  (`held_lease`). So two
  candidates never hold the office at the same time, even if answers of the store are late or missing.
- A candidate that has lost the office, or may have, reports this (`Deposed`) and revokes its lease before it stands again.
- A candidate whose attempt has an unknown outcome revokes that lease too, because its entry may have been created.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from penstock.cluster.membership.held_lease import HeldLease
from penstock.cluster.membership.store_requests import (
    ABSENT,
    Ask,
    Conflict,
    Done,
    Found,
    Grant,
    Granted,
    Look,
    Outcome,
    Put,
    Renew,
    Request,
    Revoke,
    Unknown,
)

ELECTIONS = "elections/"
RENEWALS_PER_LEASE = 3
RETRY_MS = 500


class Elected(NamedTuple):
    """An effect: the candidate leads from now on."""

    epoch: int


class Deposed(NamedTuple):
    """An effect: it no longer holds the office, or may not."""

    why: str


Effect = Ask | Elected | Deposed


class Campaign:
    """One candidate in one election, for as long as it wants to lead."""

    def __init__(
        self, election: str, candidate: str, lease_ms: int, now_ms: int, retry_ms: int = RETRY_MS
    ) -> None:
        self.key = ELECTIONS + election
        self.epoch = ABSENT
        """The version of the entry that this candidate made, while it leads."""
        self.wants_to_lead = True
        """Whether it stands when no candidate leads."""
        self.error = ""
        """Why the last attempt had no outcome; empty where it had one."""
        self._candidate = candidate.encode()
        self._lease_ms = lease_ms
        self._retry_ms = retry_ms
        self._next_ms = now_ms
        self._step: Literal["idle", "look", "grant", "make"] = "idle"
        self._question: int | None = None
        """The question of the present step."""
        self._began_ms = 0
        self._granted: int | None = None
        self._lease: HeldLease | None = None
        self._known: tuple[int, bool] | None = None
        """The version of the store at which the office was last seen, and whether it was held."""
        self._last_question = 0
        self._effects: list[Effect] = []

    # -- what is asked ---------------------------------------------------------------------------------------

    def holds(self, now_ms: int) -> bool:
        """Whether this candidate certainly leads."""
        return self._lease is not None and self._lease.holds(now_ms)

    def next_ms(self) -> int | None:
        """When to tick at the latest."""
        if self._lease is not None:
            next_ms = self._lease.next_ms
            return self._lease.until_ms if next_ms is None else min(next_ms, self._lease.until_ms)
        return self._next_ms if self._may_stand else None

    @property
    def _is_taken(self) -> bool:
        return self._known is not None and self._known[1]

    @property
    def _may_stand(self) -> bool:
        return self.wants_to_lead and self._step == "idle" and not self._is_taken

    # -- events ----------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> list[Effect]:
        """Time has passed."""
        if self._lease is not None:
            self._keep(self._lease, now_ms)
        else:
            self._stand_if_due(now_ms)
        return self._take()

    def answered(self, question: int, outcome: Outcome, now_ms: int) -> list[Effect]:
        """The store has answered, or will not."""
        lease = self._lease
        if question == self._question:
            self._question = None
            self._go_on(outcome, now_ms)
        elif isinstance(outcome, Granted):
            self._ask(Revoke(outcome.lease))  # it was given up meanwhile
        elif lease is not None and lease.awaits(question) and not lease.answered(question, outcome, now_ms):
            self._depose("its lease has ended", now_ms)
        elif lease is not None:
            self._keep(lease, now_ms)
        return self._take()

    def heard(self, value: bytes | None, version: int, now_ms: int) -> list[Effect]:
        """A watch reports the holder of the office; None: it is vacant."""
        if self._known is None or version > self._known[0]:
            self._known = (version, value is not None)
            if self._lease is not None:
                if version > self.epoch:
                    self._depose("another node manages the cluster", now_ms)
            elif value is None and self._step == "idle":
                self._next_ms = now_ms
                self._stand_if_due(now_ms)
        return self._take()

    def renew(self, now_ms: int) -> list[Effect]:
        """Asks for a renewal now, where it leads."""
        if self._lease is not None:
            self._ask_renewal(self._lease, now_ms)
        return self._take()

    def give_up(self, now_ms: int) -> list[Effect]:
        """Gives the office up; if the candidate still wants it, it stands again after a pause."""
        if self._lease is not None:
            self._depose("it gave up the management", now_ms)
        return self._take()

    def resign(self) -> list[Effect]:
        """Leads no more for good; the next candidate is elected at once."""
        self.wants_to_lead = False
        for lease in (self._lease.number if self._lease is not None else None, self._granted):
            if lease is not None:
                self._ask(Revoke(lease))
        self._lease = self._granted = self._question = None
        self._step = "idle"
        return self._take()

    # -- standing for election -----------------------------------------------------------------------------------

    def _stand_if_due(self, now_ms: int) -> None:
        if self._may_stand and now_ms >= self._next_ms:
            self._stand(now_ms)

    def _stand(self, now_ms: int) -> None:
        """Looks first if nothing is known: most of the time the office is held."""
        self._began_ms = now_ms
        if self._known is None:
            self._step, self._question = "look", self._ask(Look(self.key))
        else:
            self._step, self._question = "grant", self._ask(Grant(self._lease_ms))

    def _go_on(self, outcome: Outcome, now_ms: int) -> None:
        self.error = ""
        match outcome:
            case Found(value, version) if self._step == "look":
                self._step = "idle"
                if self._known is None or version >= self._known[0]:
                    self._known = (version, value is not None)
                self._stand_if_due(now_ms)
            case Granted(lease) if self._step == "grant":
                self._granted, self._step = lease, "make"
                self._question = self._ask(Put(self.key, self._candidate, ABSENT, lease))
            case Done(version) if self._step == "make" and self._granted is not None:
                self._step, self.epoch = "idle", version
                renew_ms = self._lease_ms // RENEWALS_PER_LEASE
                self._lease = HeldLease(
                    self._granted, self._lease_ms, renew_ms, self._retry_ms, self._began_ms
                )
                self._granted = None
                self._effects.append(Elected(version))
                if self._known is not None and self._known[0] > version:
                    self._depose("another node manages the cluster", now_ms)
                else:
                    self._keep(self._lease, now_ms)
            case Conflict() if self._step == "make":
                self._drop_grant()
                self._known = None
                self._step, self._next_ms = "idle", now_ms
                self._stand_if_due(now_ms)
            case _:
                if isinstance(outcome, Unknown):
                    self.error = outcome.why
                self._drop_grant()
                self._known = None
                self._step, self._next_ms = "idle", now_ms + self._retry_ms

    def _drop_grant(self) -> None:
        """Its entry may have been made, so it must not stay."""
        if self._granted is not None:
            self._ask(Revoke(self._granted))
            self._granted = None

    # -- holding ---------------------------------------------------------------------------------------------

    def _keep(self, lease: HeldLease, now_ms: int) -> None:
        if not lease.holds(now_ms):
            self._depose("it could not renew its lease in time", now_ms)
        elif lease.is_due(now_ms):
            self._ask_renewal(lease, now_ms)

    def _ask_renewal(self, lease: HeldLease, now_ms: int) -> None:
        lease.asked(self._ask(Renew(lease.number)), now_ms)

    def _depose(self, why: str, now_ms: int) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            self._effects.append(Deposed(why))
            self._ask(Revoke(lease.number))
            self._known = None
            self._step, self._next_ms = "idle", now_ms + self._retry_ms

    # -- help ------------------------------------------------------------------------------------------------

    def _ask(self, request: Request) -> int:
        self._last_question += 1
        self._effects.append(Ask(self._last_question, request))
        return self._last_question

    def _take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects
