"""The routing of each request: the table of the native protocol for a cluster."""

from __future__ import annotations

from collections.abc import Callable

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing import (
    altering,
    browsing,
    creating,
    deleting,
    describing,
    log_reading,
    priority_receiving,
    receiving,
    sending,
    settling,
)
from penstock.routing.context import RoutingContext
from penstock.steps.runner import Handle, StepRunner, World
from penstock.steps.step import Ask, Outcome, Reply, Steps
from penstock.wire import messages


def route(context: RoutingContext, request: messages.Request, body: Buffer) -> Steps[Reply]:
    """The steps that answer a request; raises the client's error."""
    match request:
        case messages.Send():
            return sending.send(context, request, body)
        case messages.Receive():
            return receiving.receive(context, request)
        case messages.Delete() | messages.Release() | messages.Extend():
            return settling.settle(context, request)
        case messages.ReceiveAny():
            return priority_receiving.receive_any(context, request)
        case messages.DescribeQueue():
            return describing.describe(context, request)
        case messages.ListQueues():
            return describing.list_queues(context, request)
        case messages.Peek():
            return browsing.peek(context, request)
        case messages.Purge():
            return browsing.purge(context, request)
        case messages.Redrive():
            return browsing.redrive(context, request)
        case messages.CreateQueue():
            return creating.create(context, request)
        case messages.AlterQueue():
            return altering.alter(context, request)
        case messages.DeleteQueue():
            return deleting.delete(request)
        case messages.ReadLog():
            return log_reading.read_log(context, request)
        case messages.LocateLog():
            return log_reading.locate(context, request)
        case messages.FindOffset():
            return log_reading.find_offset(context, request)
        case messages.CommitOffset():
            return log_reading.commit(context, request)
        case (
            messages.JoinGroup()
            | messages.LeaveGroup()
            | messages.ListGroups()
            | messages.SeekGroup()
            | messages.DeleteGroup()
        ):
            return log_reading.group(context, request)
        case messages.ReadClock() | messages.TakeIds() | messages.DescribeNode():
            return _any_node(request)
        case messages.Ping():
            return _answered(messages.Done())
        case _:
            raise PenstockError(
                ErrorCode.UNKNOWN_REQUEST,
                f"a router does not take {type(request).__name__} as a single request",
            )


def routed(
    context: RoutingContext,
    request: messages.Request,
    body: Buffer,
    world: World[Handle],
    done: Callable[[Outcome], None],
) -> StepRunner[Reply, Handle]:
    """A request in progress; `done` is called once. Raises errors that are known at once."""
    return StepRunner(route(context, request, body), world, lambda result: done(told(result)))


def told(result: Reply | Exception) -> Outcome:
    """The client's answer. A defect becomes an error of this request only."""
    if isinstance(result, Reply | PenstockError):
        return result
    outcome = PenstockError(ErrorCode.INTERNAL, f"a defect of the router: {type(result).__name__}: {result}")
    outcome.__cause__ = result
    return outcome


def _any_node(request: messages.Request) -> Steps[Reply]:
    reply: Reply = yield Ask(request)
    return reply


def _answered(answer: messages.Answer) -> Steps[Reply]:
    yield from ()
    return Reply(answer)
