"""A parsed request: its action, queue, parameters and protocol."""

from __future__ import annotations

import msgspec

from penstock.sqs.actions import ACTIONS, Action
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.names import QueueAddress, parse_host, parse_path, parse_queue_url
from penstock.sqs.protocols import json_protocol, query_protocol
from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.protocols.protocol import Protocol
from penstock.sqs.protocols.query_form import parse_form
from penstock.sqs.refusals import malformed, missing_parameter, unknown_operation
from penstock.sqs.shapes.kinds import QueueRequest, Request

_TARGETS = {json_protocol.TARGET_PREFIX + name: action for name, action in ACTIONS.items()}


class Call(msgspec.Struct, frozen=True):
    """One call of the API; `queue` is the queue of an action on a queue, None for the others."""

    action: Action
    parameters: Request
    protocol: Protocol
    queue: QueueAddress | None
    escapes: bool = True
    """Whether a text may have been written with escapes; one in JSON without any holds no control character."""

    @property
    def entries(self) -> int:
        """How many messages it is about, as throttling counts: those of a batch, else 1."""
        return max(1, len(getattr(self.parameters, "entries", ())))


def read_call(request: HttpRequest, protocol: Protocol) -> Call:
    """The call of a request; raises the error for the caller."""
    escapes = True
    if protocol is Protocol.JSON:
        escapes = b"\\" in request.body
        target = request.headers.get("x-amz-target", "")
        action = _TARGETS.get(target) or _refuse_action(target.removeprefix(json_protocol.TARGET_PREFIX))
        parameters = json_protocol.decode_parameters(action, request.body)
    elif protocol is Protocol.NONE:
        raise unknown_operation("")
    else:
        form = parse_form(request.query, *_form_body(request))
        name = form.text("Action") or ""
        action = ACTIONS.get(name) or _refuse_action(name)
        if action.refused_on_queue_path and parse_path(request.path) is not None:
            raise unknown_operation(name)
        parameters = query_protocol.decode_parameters(action, form)
    queue = _queue_of(request, parameters) if isinstance(parameters, QueueRequest) else None
    for field, shown in action.required:
        value = getattr(parameters, field)
        if value is None or value == "" or value == {}:
            raise missing_parameter(shown)
    return Call(action, parameters, protocol, queue, escapes)


def _refuse_action(name: str) -> Action:
    raise unknown_operation(name)


def _form_body(request: HttpRequest) -> tuple[str, ...]:
    if request.method != "POST" or not request.body:
        return ()
    try:
        return (request.body.decode(),)
    except UnicodeDecodeError:
        raise malformed("The request is not valid UTF-8.") from None


def _queue_of(request: HttpRequest, parameters: QueueRequest) -> QueueAddress:
    """The parameter wins over the path, the path over the host."""
    if parameters.queue_url:
        return parse_queue_url(parameters.queue_url)
    address = parse_path(request.path)
    if address is not None:
        return address
    if request.path != "/":
        raise SqsError(
            ErrorKind.INVALID_ADDRESS, f"The address {request.path[:256]} is not valid for this endpoint."
        )
    address = parse_host(request.headers.get("host", ""))
    if address is None:
        raise missing_parameter("QueueUrl")
    return address
