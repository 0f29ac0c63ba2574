"""Deleting, releasing and extending delivered messages.

What is settled in one turn of the event loop, single messages, whole deliveries or batches of messages, travels in one
request; the answer resolves each of them. A request costs a server as much as the record of a whole delivery does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from penstock.client.duration import Duration, milliseconds
from penstock.client.lease import Lease
from penstock.client.link import Link
from penstock.client.replier import Replier
from penstock.client_core.call import THROTTLED, Call, unexpected
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import Runs, runs_of
from penstock.wire.messages import Answer, Delete, Extend, Receipt, Release, Settled

RUNS_PER_REQUEST = 100_000
"""Keeps the head of a request well inside its limit, however scattered the messages are."""


class Settlement(NamedTuple):
    """What became of messages that were settled together."""

    done: int
    """As asked, now."""
    gone: int
    """No longer in the queue: deleted before, expired or purged."""
    stale: list[int]
    """Sequence numbers of messages whose lease had ended: they may be with another consumer, or ready again."""


class Action(NamedTuple):
    """What to do with messages, and its time: the delay of a release, the timeout of an extension."""

    kind: Literal["delete", "release", "extend"]
    milliseconds: int = 0
    error: str = ""
    """Of a release: what went wrong."""

    def request(self, receipts: list[Receipt]) -> Delete | Release | Extend:
        """The request that does it."""
        match self.kind:
            case "delete":
                return Delete(receipts)
            case "release":
                return Release(receipts, self.milliseconds, error=self.error)
            case "extend":
                return Extend(receipts, self.milliseconds)


DELETE = Action("delete")


def giving_back(delay: Duration, error: str | BaseException = "") -> Action:
    """A release; of what went wrong as much is told as a server keeps."""
    if isinstance(error, BaseException):
        error = f"{type(error).__name__}: {error}"
    return Action("release", milliseconds(delay, "delay"), error[: limits.RELEASE_ERROR_CHARACTERS])


class Settler:
    """Settles messages of one queue."""

    def __init__(self, queue: str, link: Link, replier: Replier | None = None) -> None:
        self._queue = queue
        self._link = link
        self.replier = replier
        """Sends replies to messages that ask for one; None: there are none here."""
        self._turn: dict[Action, dict[Lease, list[tuple[int, asyncio.Future[None]]]]] = {}
        self._whole: dict[Action, list[_Whole]] = {}
        """Receipts of this turn, each with all or many messages of a delivery."""

    # -- one by one ------------------------------------------------------------------------------------------

    def one(self, action: Action, lease: Lease, sequence: int) -> asyncio.Future[None]:
        """Settles one message, together with all others of this turn; raises `stale-receipt` when too late."""
        future: asyncio.Future[None] = self._link.loop.create_future()
        self._begin_turn()
        self._turn.setdefault(action, {}).setdefault(lease, []).append((sequence, future))
        return future

    def _begin_turn(self) -> None:
        if not (self._turn or self._whole):
            self._link.loop.call_soon(self._turn_ended)
            self._link.background.add(self)

    async def close(self) -> None:
        """The link is about to end: what was settled in this turn leaves before."""
        self._turn_ended()

    def _turn_ended(self) -> None:
        turn, self._turn = self._turn, {}
        whole, self._whole = self._whole, {}
        for action, deliveries in whole.items():
            for some in _portions(deliveries):
                self._send(_WholeCall(action, some), action, [entry.receipt for entry in some])
        for action, leases in turn.items():
            entries = list(leases.items())
            for start in range(0, len(entries), limits.RECEIPTS_PER_REQUEST):
                self._send_turn(action, entries[start : start + limits.RECEIPTS_PER_REQUEST])

    def _send_turn(
        self, action: Action, entries: list[tuple[Lease, list[tuple[int, asyncio.Future[None]]]]]
    ) -> None:
        call = _TurnCall(self._queue, action, entries)
        receipts = [
            Receipt(lease.token, runs_of(sorted({sequence for sequence, _ in waiting})))
            for lease, waiting in entries
        ]
        self._send(call, action, receipts)

    def _send(self, call: Call, action: Action, receipts: list[Receipt]) -> None:
        try:
            self._link.start(call, action.request(receipts))
        except PenstockError as error:
            call.fail(error)

    # -- together --------------------------------------------------------------------------------------------

    def together(self, action: Action, lease: Lease) -> asyncio.Future[Settlement]:
        """Settles all open messages of a delivery, together with others of this turn."""
        future: asyncio.Future[Settlement] = self._link.loop.create_future()
        receipt = lease.receipt()
        if receipt is None:
            future.set_result(Settlement(0, 0, []))
        else:
            self._begin_turn()
            self._whole.setdefault(action, []).append(_Whole(lease, receipt, future))
        return future

    async def all_of(self, action: Action, leases: Iterable[Lease]) -> Settlement:
        """Settles all open messages of any number of deliveries."""
        return await self._all_settled(
            action, [(lease, receipt) for lease in leases if (receipt := lease.receipt()) is not None]
        )

    async def chosen(self, action: Action, chosen: Iterable[tuple[Lease, int]]) -> Settlement:
        """Settles chosen messages, of any number of deliveries."""
        by_lease: dict[Lease, set[int]] = {}
        for lease, sequence in chosen:
            by_lease.setdefault(lease, set()).add(sequence)
        pairs = [
            (lease, Receipt(lease.token, runs_of(sorted(numbers)))) for lease, numbers in by_lease.items()
        ]
        return await self._all_settled(action, pairs)

    async def _all_settled(self, action: Action, pairs: list[tuple[Lease, Receipt]]) -> Settlement:
        create = self._link.loop.create_future
        entries = [_Whole(lease, receipt, create()) for lease, receipt in pairs]
        if entries:
            self._begin_turn()
            self._whole.setdefault(action, []).extend(entries)
        settlements = await asyncio.gather(*(entry.future for entry in entries))
        return Settlement(
            sum(one.done for one in settlements),
            sum(one.gone for one in settlements),
            [sequence for one in settlements for sequence in one.stale],
        )


class _Whole(NamedTuple):
    """Messages of one delivery that are settled together, and who waits for it."""

    lease: Lease
    receipt: Receipt
    future: asyncio.Future[Settlement]


def _portions(entries: list[_Whole]) -> Iterator[list[_Whole]]:
    """Cuts what is to be settled into requests of a bounded size."""
    portion: list[_Whole] = []
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
"""A front end that has not heard of a queue yet knows it a moment later; what is settled is not worth an error."""


class _WholeCall(Call):
    """Deliveries that are settled in one request."""

    __slots__ = ("_action", "_entries")

    waits_out = _WAITS_OUT

    def __init__(self, action: Action, entries: list[_Whole]) -> None:
        super().__init__()
        self._action = action
        self._entries = entries

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """Resolves each by the outcome of its receipt."""
        if not isinstance(answer, Settled) or len(answer.outcomes) != len(self._entries):
            self.fail(unexpected(answer))
            return
        action = self._action
        for (lease, receipt, future), outcome in zip(self._entries, answer.outcomes, strict=True):
            done = outcome.done
            stale: list[int] = []
            if action.kind != "extend":
                lease.close_runs(receipt.runs)
            elif outcome.stale:
                lease.close_runs(outcome.stale)
            if outcome.stale:
                numbers = [number for first, count in outcome.stale for number in range(first, first + count)]
                if _was_done_before(action, self):
                    done += len(numbers)
                else:
                    stale = numbers
            if not future.done():
                future.set_result(Settlement(done, outcome.gone, stale))

    def fail(self, error: PenstockError) -> None:
        """All fail alike."""
        for entry in self._entries:
            if not entry.future.done():
                entry.future.set_exception(error)

    def abandoned(self) -> bool:
        """Whether everybody who waited was cancelled."""
        return all(entry.future.cancelled() for entry in self._entries)


def _was_done_before(action: Action, call: Call) -> bool:
    """A release that is sent again finds the lease ended, by itself."""
    return action.kind == "release" and call.resent > 0


class _TurnCall(Call):
    """Single messages that were settled in one turn."""

    __slots__ = ("_action", "_entries", "_queue")

    waits_out = _WAITS_OUT

    def __init__(
        self, queue: str, action: Action, entries: list[tuple[Lease, list[tuple[int, asyncio.Future[None]]]]]
    ) -> None:
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
            stale = [] if _was_done_before(self._action, self) else outcome.stale
            # Nobody can keep a message that is no longer there: all of them gone, extending has failed.
            all_gone = self._action.kind == "extend" and outcome.gone > 0 and outcome.done == 0
            if self._action.kind != "extend":
                lease.close([sequence for sequence, _ in waiting])
            elif outcome.stale:
                lease.close_runs(outcome.stale)
            for sequence, future in waiting:
                if future.done():
                    continue
                if (stale and _within(stale, sequence)) or all_gone:
                    future.set_exception(self._stale(sequence))
                else:
                    future.set_result(None)

    def fail(self, error: PenstockError) -> None:
        """Every message fails alike."""
        for _, waiting in self._entries:
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)

    def _stale(self, sequence: int) -> PenstockError:
        return PenstockError(
            ErrorCode.STALE_RECEIPT,
            f"too late to {self._action.kind} message {sequence} of {self._queue!r}: its lease has ended and it may be "
            "with another consumer. Use a longer visibility_timeout, extend(), or heartbeat=True",
        )


def _within(runs: Runs, sequence: int) -> bool:
    return any(first <= sequence < first + count for first, count in runs)
