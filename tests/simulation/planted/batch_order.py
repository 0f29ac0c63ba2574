"""Planted bugs about the order in which batches of a producer are stored."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.client_core.send_line import SendCall, SendLine
from penstock.routing.line import Line
from penstock.routing.line_call import Route
from penstock.routing.send_turns import SendTurns, Turn
from penstock.simulation.patching import Patch
from penstock.wire.messages import Send
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
