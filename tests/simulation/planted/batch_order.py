"""Planted bugs about the order in which batches of a producer are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from penstock.client_core.send_line import SendCall, SendLine
from penstock.cluster.layout.serving import Leader
from penstock.model.errors import PenstockError
from penstock.routing.attempts import Attempts
from penstock.routing.line import Line
from penstock.routing.line_call import Call, Route, Transmit
from penstock.routing.partition_line import PartitionLines
from penstock.routing.send_turns import SendTurns, Turn
from penstock.simulation.patching import Patch
from penstock.wire.messages import Request, Send
from penstock.wire.send_order import SendOrder


def batches_follow_nothing() -> Sequence[Patch]:
    """The client says of no batch which one it follows."""

    def sending(self: SendLine, call: SendCall) -> None:
        real(self, call)
        call.after = 0

    real = SendLine.sending
    return [(SendLine, "sending", sending)]


def any_batch_is_taken() -> Sequence[Patch]:
    """Servers do not look at what a batch follows."""

    def check(self: SendOrder, connection: int, request: Send, epoch: int = 0) -> None:
        pass

    return [(SendOrder, "check", check)]


def lines_are_jumped() -> Sequence[Patch]:
    """A front end sends a batch though others wait for a leader, and nodes, which have an epoch, do not notice."""

    def holds_back(self: Line, route: Route) -> bool:
        return False

    def check(self: SendOrder, connection: int, request: Send, epoch: int = 0) -> None:
        if not epoch:
            real(self, connection, request)

    real = SendOrder.check
    return [(Line, "holds_back", holds_back), (SendOrder, "check", check)]


def failed_sends_break_nothing() -> Sequence[Patch]:
    """A front end sends what follows a batch of which a share has failed, or that failed before its turn."""

    def follow_failed(self: Turn) -> None:
        pass

    def is_broken(self: SendTurns, queue_id: int, producer: int) -> bool:
        return False

    return [(Turn, "follow_failed", follow_failed), (SendTurns, "is_broken", is_broken)]


def held_sends_break_nothing() -> Sequence[Patch]:
    """A node stores what follows a batch that it held for the clock and refused then."""

    def refused(self: SendOrder, connection: int, request: Send) -> None:
        pass

    return [(SendOrder, "refused", refused)]


def refused_batches_go_to_the_end() -> Sequence[Patch]:
    """The client sends a batch that was refused again behind those that follow it."""

    def refused(self: SendLine, call: SendCall, error: PenstockError, now: float) -> bool:
        is_sent_again = real(self, call, error, now)
        before, behind, last = call.before, call.behind, self._last
        if is_sent_again and behind is not None and last is not None:
            behind.before = before
            if before is None:
                self._first = behind
            else:
                before.behind = behind
            call.before, call.behind = last, None
            last.behind = self._last = call
        return is_sent_again

    real = SendLine.refused
    return [(SendLine, "refused", refused)]


def _changes_what_is_sent_again(change: Callable[[Send, int], Send]) -> Sequence[Patch]:
    """What a front end sends again, which attempt it is."""

    def fly(self: PartitionLines, line: Line, call: Call, leader: Leader, wire: int, now: float) -> None:
        real(self, line, call, leader, wire, now)
        sent = self._effects[-1]
        if isinstance(sent, Transmit) and isinstance(sent.request, Send) and sent.attempt > 1:
            self._effects[-1] = sent._replace(request=change(sent.request, sent.attempt))

    real = PartitionLines._fly
    return [(PartitionLines, "_fly", fly)]


def what_is_sent_again_follows_nothing() -> Sequence[Patch]:
    """A front end does not say which batch one follows that it sends again."""
    return _changes_what_is_sent_again(lambda send, attempt: msgspec.structs.replace(send, after=0))


def what_is_sent_again_is_new() -> Sequence[Patch]:
    """A front end gives a batch that it sends again another number."""
    return _changes_what_is_sent_again(
        lambda send, attempt: msgspec.structs.replace(send, number=send.number + (attempt << 40))
    )


def deposed_primaries_are_believed() -> Sequence[Patch]:
    """A front end takes it that nothing was done by an attempt that a deposed primary did not answer, or only with `unreachable`."""

    def asks_again(self: Attempts, request: Request, error: PenstockError, *, others_have_it: bool) -> bool:
        was_uncertain = self.uncertain
        is_asked_again = real_asks(self, request, error, others_have_it=others_have_it)
        self.uncertain = was_uncertain
        return is_asked_again

    def abandon(self: PartitionLines, line: Line, leader: Leader, now: float) -> None:
        calls = line.asked_before(leader)
        real_abandon(self, line, leader, now)
        for call in calls:
            call.uncertain = False

    real_asks, real_abandon = Attempts.asks_again, PartitionLines._abandon
    return [(Attempts, "asks_again", asks_again), (PartitionLines, "_abandon", abandon)]
