"""Settlements of a simulated consumer with the code of the client library (`client_core.settling`), and their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.client_core.call import Call
from penstock.client_core.lease import Lease
from penstock.client_core.settling import SettleAction, Settlement, Settling, WholeReceipt
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import runs_of
from penstock.simulation.client_link import SimulatedLink
from penstock.simulation.message_history import DeliveredMessage, QueueLife
from penstock.simulation.message_history import Settlement as Asked
from penstock.simulation.recorder import sequences_of
from penstock.simulation.workload.stage import Stage
from penstock.wire.messages import Delete, Extend, Failed, Receipt, ReceiptOutcome, Release


class Pushed:
    """A delivery at its consumer."""

    def __init__(self, life: QueueLife, lease: Lease, messages: list[DeliveredMessage]) -> None:
        self.life = life
        self.lease = lease
        self.messages = messages

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[DeliveredMessage]:
        return iter(self.messages)


class LibrarySettling(Settling):
    """Settles messages of one consumer, over its link."""

    def __init__(
        self, stage: Stage, name: str, link: SimulatedLink, was_settled_again: Callable[[bytes], bool]
    ) -> None:
        super().__init__(name)
        self._stage = stage
        self._name = name
        self._link = link
        self._was_settled_again = was_settled_again
        """Whether a front end has asked a node again to settle messages of a token."""
        self._calls: dict[tuple[str, bytes], Call] = {}
        """By kind and token: the last request that was sent."""

    def _turn_began(self) -> None:
        self._stage.schedule.after(0, self.end_turn)

    def _start(self, call: Call, request: Delete | Release | Extend) -> None:
        kind = type(request).__name__.lower()
        for receipt in request.receipts:
            self._calls[kind, receipt.token] = call
        call.message = request
        self._link.transmit(call)

    # -- asking ----------------------------------------------------------------------------------------------

    def whole(
        self, action: SettleAction, pushed: Pushed, lease: Lease | None = None
    ) -> list[WholeWaiter | SingleWaiter]:
        """Settles all open messages of a delivery, if there are any."""
        lease = lease or pushed.lease
        receipt = lease.receipt()
        return [self._add(action, pushed, lease, receipt)] if receipt is not None else []

    def chosen(self, action: SettleAction, pushed: Pushed, sequences: Sequence[int]) -> WholeWaiter:
        """Settles some messages of a delivery together."""
        receipt = Receipt(pushed.lease.token, runs_of(sorted(sequences)))
        return self._add(action, pushed, pushed.lease, receipt)

    def _add(self, action: SettleAction, pushed: Pushed, lease: Lease, receipt: Receipt) -> WholeWaiter:
        chosen = set(sequences_of(receipt.runs))
        messages = [message for message in pushed.messages if message.sequence in chosen]
        waiter = WholeWaiter(self, action, messages)
        self.add_whole(action, [WholeReceipt(lease, receipt, waiter)])
        return waiter

    def one(self, action: SettleAction, pushed: Pushed, message: DeliveredMessage) -> SingleWaiter:
        """Settles one message."""
        waiter = SingleWaiter(self, action, [message])
        self.add_one(action, pushed.lease, message.sequence, waiter)
        return waiter

    # -- answers ---------------------------------------------------------------------------------------------

    def asked(self, action: SettleAction, messages: Sequence[DeliveredMessage]) -> list[Asked]:
        """Writes down that messages are settled now."""
        return self._stage.recorder.settling(messages, action.kind, action.milliseconds)

    def _again(self, action: SettleAction, token: bytes) -> bool:
        call = self._calls.get((action.kind, token))
        return (call is not None and call.resent > 0) or self._was_settled_again(token)

    def answered(
        self,
        action: SettleAction,
        messages: Sequence[DeliveredMessage],
        asked: Sequence[Asked],
        outcome: ReceiptOutcome,
    ) -> None:
        """Records the outcome."""
        again = self._again(action, messages[0].token)
        self._stage.recorder.settled(messages, asked, outcome, again=again)
        self._trace(action, messages, f"{outcome.done} done, {outcome.gone} gone, stale {outcome.stale}")

    def failed(
        self,
        action: SettleAction,
        messages: Sequence[DeliveredMessage],
        asked: Sequence[Asked],
        error: PenstockError,
    ) -> None:
        """Records the refusal. If others were settled with them, some may have been settled before it."""
        life = messages[0].life
        if error.code is ErrorCode.QUEUE_DAMAGED:
            self._stage.recorder.damage_seen(life)
        call = self._calls.get((action.kind, messages[0].token))
        request = call.message if call is not None else None
        is_alone = isinstance(request, Delete | Release | Extend) and len(request.receipts) == 1
        is_known = error.code not in _UNCERTAIN and is_alone and not self._again(action, messages[0].token)
        self._stage.recorder.not_settled(asked, Failed(error.code, error.message) if is_known else None)
        self._trace(action, messages, str(error.code))

    def _trace(self, action: SettleAction, messages: Sequence[DeliveredMessage], what: str) -> None:
        numbers = [message.sequence for message in messages]
        first = messages[0]
        self._stage.trace.add(
            self._name, f"{action.kind} {numbers} of {first.life.name} under lease {first.lease}: {what}"
        )


_UNCERTAIN = (
    *(ErrorCode.UNREACHABLE, ErrorCode.INTERNAL, ErrorCode.METADATA_UNAVAILABLE),
    *(ErrorCode.BAD_REQUEST, ErrorCode.SHUTTING_DOWN),
)
"""After these errors the outcome of a settlement is unknown; `bad-request` is the error of a closed link."""


class _Waiter:
    """Waits for the outcome of messages, and records it."""

    def __init__(
        self, settling: LibrarySettling, action: SettleAction, messages: list[DeliveredMessage]
    ) -> None:
        self._settling = settling
        self._action = action
        self._messages = messages
        self._asked = settling.asked(action, messages)
        self.is_done = False
        self._is_cancelled = False

    def done(self) -> bool:
        """See `SettlementWaiter`."""
        return self.is_done

    def cancelled(self) -> bool:
        """See `SettlementWaiter`."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Stops waiting: the outcome stays unknown."""
        if not self.is_done:
            self.is_done = self._is_cancelled = True
            for one in self._asked:
                one.result = "lost"

    def set_exception(self, exception: PenstockError, /) -> None:
        """See `SettlementWaiter`."""
        self.is_done = True
        if exception.code is ErrorCode.STALE_RECEIPT:
            self._answered(Settlement(0, 0, [message.sequence for message in self._messages]))
        else:
            self._settling.failed(self._action, self._messages, self._asked, exception)

    def _answered(self, settlement: Settlement) -> None:
        outcome = ReceiptOutcome(settlement.done, settlement.gone, runs_of(sorted(settlement.stale)))
        self._settling.answered(self._action, self._messages, self._asked, outcome)


class WholeWaiter(_Waiter):
    """Waits for messages that are settled together."""

    def set_result(self, result: Settlement, /) -> None:
        """See `SettlementWaiter`."""
        self.is_done = True
        self._answered(result)


class SingleWaiter(_Waiter):
    """Waits for one message: it is settled as requested now, or was gone already."""

    def set_result(self, _: None, /) -> None:
        """See `SettlementWaiter`."""
        self.is_done = True
        self._answered(Settlement(1, 1, []))
