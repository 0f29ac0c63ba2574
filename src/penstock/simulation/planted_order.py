"""Planted bugs about the order in which batches of a producer are stored; see `planted_bugs`."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.client_core.send_line import SendCall, SendLine
from penstock.routing.line import Line
from penstock.routing.line_call import Route
from penstock.simulation.planted_patches import Patch
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
