"""Deletes, releases and extends delivered messages.

Everything that is settled in one turn, single messages, whole deliveries or batches of messages, goes into one request,
and its answer resolves each of them. A request costs a server as much as the record of a whole delivery does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol, TypeVar

from penstock.client_core.call import THROTTLED, Call, unexpected
from penstock.client_core.lease import Lease
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import Runs, runs_of
from penstock.wire.messages import Answer, Delete, Extend, Receipt, Release, Settled

RUNS_PER_REQUEST = 100_000
"""Keeps the head of a request well inside its limit, however scattered the messages are."""

Result = TypeVar("Result", contravariant=True)


class Settlement(NamedTuple):
    """The outcome for messages that were settled together."""

    done: int
    """As asked, now."""
    gone: int
    """No longer in the queue: deleted before, expired or purged."""
    stale: list[int]
    """Sequence numbers of messages whose lease had ended: another consumer may have them, or they are ready again."""


class SettleAction(NamedTuple):
    """What to do with messages, and its time: the delay of a release, the timeout of an extension."""

    kind: Literal["delete", "release", "extend"]
    milliseconds: int = 0
    error: str = ""
    """Of a release: the error."""
    unreceived: bool = False
    """Of a release: no program has seen the messages, so they do not count as received."""

    def request(self, receipts: list[Receipt]) -> Delete | Release | Extend:
        """The request that does it."""
        match self.kind:
            case "delete":
                return Delete(receipts)
            case "release":
                return Release(receipts, self.milliseconds, self.unreceived, self.error)
            case "extend":
                return Extend(receipts, self.milliseconds)


DELETE = SettleAction("delete")
GIVE_BACK = SettleAction("release", unreceived=True)
"""For messages that were sent ahead and not taken. If it counted, messages that no program ever saw would become dead letters."""


class SettlementWaiter(Protocol[Result]):
    """Whoever waits for a settlement: a future of an event loop, or what stands for it."""

    def done(self) -> bool:
        """Whether it has its result, or is cancelled."""
        ...

    def cancelled(self) -> bool:
        """Whether the caller no longer waits."""
        ...

    def set_result(self, result: Result, /) -> None:
        """The outcome."""
        ...

    def set_exception(self, exception: PenstockError, /) -> None:
        """It failed."""
        ...


class WholeReceipt(NamedTuple):
    """Messages of one delivery that are settled together, and the caller that waits."""

    lease: Lease
    receipt: Receipt
    waiter: SettlementWaiter[Settlement]


SingleMessages = tuple[Lease, list[tuple[int, SettlementWaiter[None]]]]
"""Messages of one delivery that are settled one by one, and who waits for each."""


class Settling(ABC):
    """Settles messages of one queue, those of one turn together."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._turn: dict[SettleAction, dict[Lease, list[tuple[int, SettlementWaiter[None]]]]] = {}
        self._whole: dict[SettleAction, list[WholeReceipt]] = {}
        """Receipts of this turn, each with all or many messages of a delivery."""

    @abstractmethod
    def _turn_began(self) -> None:
        """The first of a turn: `end_turn` is to be called after it."""

    @abstractmethod
    def _start(self, call: Call, request: Delete | Release | Extend) -> None:
        """Sends a request whose answer goes to the call; raises if that can never be done."""

    def add_one(
        self, action: SettleAction, lease: Lease, sequence: int, waiter: SettlementWaiter[None]
    ) -> None:
        """Settles one message with this turn; `stale-receipt` when it is too late."""
        self._begin_turn()
        self._turn.setdefault(action, {}).setdefault(lease, []).append((sequence, waiter))

    def add_whole(self, action: SettleAction, entries: list[WholeReceipt]) -> None:
        """Settles many messages with this turn."""
        self._begin_turn()
        self._whole.setdefault(action, []).extend(entries)

    def _begin_turn(self) -> None:
        if not (self._turn or self._whole):
            self._turn_began()

    def end_turn(self) -> None:
        """Sends what was settled in this turn."""
        turn, self._turn = self._turn, {}
        whole, self._whole = self._whole, {}
        for action, deliveries in whole.items():
            for some in _portions(deliveries):
                self._send(WholeCall(action, some), action, [entry.receipt for entry in some])
        for action, leases in turn.items():
            entries = list(leases.items())
            for start in range(0, len(entries), limits.RECEIPTS_PER_REQUEST):
                self._send_turn(action, entries[start : start + limits.RECEIPTS_PER_REQUEST])

    def _send_turn(self, action: SettleAction, entries: list[SingleMessages]) -> None:
        receipts = [
            Receipt(lease.token, runs_of(sorted({sequence for sequence, _ in waiting})))
            for lease, waiting in entries
        ]
        self._send(TurnCall(self._queue, action, entries), action, receipts)

    def _send(self, call: Call, action: SettleAction, receipts: list[Receipt]) -> None:
        try:
            self._start(call, action.request(receipts))
        except PenstockError as error:
            call.fail(error)


def _portions(entries: list[WholeReceipt]) -> Iterator[list[WholeReceipt]]:
    """Cuts what is to be settled into requests of a bounded size."""
    portion: list[WholeReceipt] = []
    runs = 0
    for entry in entries:
        if portion and (len(portion) == limits.RECEIPTS_PER_REQUEST or runs > RUNS_PER_REQUEST):
            yield portion
            portion, runs = [], 0
        portion.append(entry)
        runs += len(entry.receipt.runs)
    if portion:
        yield portion


_WAITS_OUT = THROTTLED | {ErrorCode.METADATA_UNAVAILABLE}
"""A front end that does not know a queue yet will know it a moment later, so settling does not fail at once."""


class WholeCall(Call):
    """Deliveries that are settled in one request."""

    __slots__ = ("_action", "_entries")

    waits_out = _WAITS_OUT

    def __init__(self, action: SettleAction, entries: list[WholeReceipt]) -> None:
        super().__init__()
        self._action = action
        self._entries = entries

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """Resolves each by the outcome of its receipt."""
        if not isinstance(answer, Settled) or len(answer.outcomes) != len(self._entries):
            self.fail(unexpected(answer))
            return
        action = self._action
        for (lease, receipt, waiter), outcome in zip(self._entries, answer.outcomes, strict=True):
            done = outcome.done
            stale: list[int] = []
            if action.kind != "extend":
                lease.close_runs(receipt.runs)
            elif outcome.stale:
                lease.close_runs(outcome.stale)
            if outcome.stale:
                numbers = [number for first, count in outcome.stale for number in range(first, first + count)]
                if was_done_before(action, self):
                    done += len(numbers)
                else:
                    stale = numbers
            if not waiter.done():
                waiter.set_result(Settlement(done, outcome.gone, stale))

    def fail(self, error: PenstockError) -> None:
        """All fail with the same error."""
        for entry in self._entries:
            if not entry.waiter.done():
                entry.waiter.set_exception(error)

    def abandoned(self) -> bool:
        """Whether all callers that waited were cancelled."""
        return all(entry.waiter.cancelled() for entry in self._entries)


def was_done_before(action: SettleAction, call: Call) -> bool:
    """A release that is sent again finds the lease ended, by itself."""
    return action.kind == "release" and call.resent > 0


class TurnCall(Call):
    """Single messages that were settled in one turn."""

    __slots__ = ("_action", "_entries", "_queue")

    waits_out = _WAITS_OUT

    def __init__(self, queue: str, action: SettleAction, entries: list[SingleMessages]) -> None:
        super().__init__()
        self._queue = queue
        self._action = action
        self._entries = entries

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """Resolves every message by the outcome of its receipt."""
        if not isinstance(answer, Settled) or len(answer.outcomes) != len(self._entries):
            self.fail(unexpected(answer))
            return
        for (lease, waiting), outcome in zip(self._entries, answer.outcomes, strict=True):
            stale = [] if was_done_before(self._action, self) else outcome.stale
            # Messages that no longer exist cannot be kept: if all are gone, extending has failed.
            all_gone = self._action.kind == "extend" and outcome.gone > 0 and outcome.done == 0
            if self._action.kind != "extend":
                lease.close([sequence for sequence, _ in waiting])
            elif outcome.stale:
                lease.close_runs(outcome.stale)
            for sequence, waiter in waiting:
                if waiter.done():
                    continue
                if (stale and _within(stale, sequence)) or all_gone:
                    waiter.set_exception(self._stale(sequence))
                else:
                    waiter.set_result(None)

    def fail(self, error: PenstockError) -> None:
        """Every message fails with the same error."""
        for _, waiting in self._entries:
            for _, waiter in waiting:
                if not waiter.done():
                    waiter.set_exception(error)

    def _stale(self, sequence: int) -> PenstockError:
        return PenstockError(
            ErrorCode.STALE_RECEIPT,
            f"too late to {self._action.kind} message {sequence} of {self._queue!r}: its lease has ended and it may be "
            "with another consumer. Use a longer visibility_timeout, extend(), or heartbeat=True",
        )


def _within(runs: Runs, sequence: int) -> bool:
    return any(first <= sequence < first + count for first, count in runs)
