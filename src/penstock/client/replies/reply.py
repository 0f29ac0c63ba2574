"""Requests and their replies in messages: attributes whose names begin with `penstock.`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from penstock.client.connection.failure import refused
from penstock.client.consume.message import MessageView
from penstock.client.produce.outgoing import AttributeValue, Body, OutgoingMessage
from penstock.model.errors import ErrorCode, PenstockError

REPLY_PREFIX = "reply-"
"""The prefix of reply queues: characters that SQS allows, so that a consumer that received a request through SQS can reply
through SQS.
"""
RESERVED = "penstock."
REPLY_TO = "penstock.reply-to"
CORRELATION_ID = "penstock.correlation-id"
OUTCOME = "penstock.outcome"
ERROR = "penstock.error"

Outcome = Literal["succeeded", "failed"]


class Reply(NamedTuple):
    """The answer to a request."""

    body: bytes
    outcome: Outcome
    error: str | None
    """The error, if the replier gave one."""
    attributes: dict[str, AttributeValue]
    """Those it was replied with."""
    correlation_id: str

    def text(self, encoding: str = "utf-8") -> str:
        """The body as text."""
        return self.body.decode(encoding)

    def raise_for_outcome(self) -> Reply:
        """The reply itself, if the request succeeded; raises `request-failed` with the error if it did not."""
        if self.outcome == "succeeded":
            return self
        raise PenstockError(
            ErrorCode.REQUEST_FAILED,
            f"request {self.correlation_id} failed: {self.error or 'its reply gives no reason'}",
        )


class ReturnAddress(NamedTuple):
    """The queue for the reply to a message, and the id that it must name."""

    queue: str
    correlation_id: str


def return_address(message: MessageView) -> ReturnAddress | None:
    """Where to reply; None: the message is no request."""
    attributes = message.attributes
    queue, correlation_id = attributes.get(REPLY_TO), attributes.get(CORRELATION_ID)
    if isinstance(queue, str) and isinstance(correlation_id, str):
        return ReturnAddress(queue, correlation_id)
    return None


def check_address(address: ReturnAddress, to: str | None) -> None:
    """Raises if a reply would go to a queue that is not for replies, and that the replier has not named.

    The sender of a request can write any name into it, and the worker may have the right to send to queues where the
    sender has none.
    """
    if address.queue == to or (to is None and address.queue.startswith(REPLY_PREFIX)):
        return
    if to is not None:
        raise refused(f"the request asks for its reply in {address.queue!r}, not in {to!r}")
    raise refused(
        f"the request asks for its reply in {address.queue!r}, whose name does not begin with {REPLY_PREFIX!r}: a request may "
        f"name any queue. If you trust it, reply with to={address.queue!r}"
    )


def request_attributes(
    attributes: Mapping[str, AttributeValue] | None, address: ReturnAddress
) -> dict[str, AttributeValue]:
    """The attributes of a request: the user's, and where the reply is to go."""
    return {**_own(attributes), REPLY_TO: address.queue, CORRELATION_ID: address.correlation_id}


def reply_message(
    address: ReturnAddress,
    body: Body,
    outcome: Outcome,
    error: str | None,
    attributes: Mapping[str, AttributeValue] | None,
) -> OutgoingMessage:
    """The message for the requester's queue."""
    if outcome not in ("succeeded", "failed"):
        raise refused(f"outcome is {outcome!r}: use 'succeeded' or 'failed'")
    if error is not None and outcome != "failed":
        raise refused("an error needs outcome='failed'")
    carried = {**_own(attributes), CORRELATION_ID: address.correlation_id, OUTCOME: outcome}
    if error is not None:
        carried[ERROR] = error
    return OutgoingMessage(body, carried)


def read_reply(message: MessageView) -> Reply | None:
    """The reply in a message; None: it is none, from any sender."""
    try:
        attributes = message.attributes
    except PenstockError:
        return None
    correlation_id, error = attributes.get(CORRELATION_ID), attributes.get(ERROR)
    if not isinstance(correlation_id, str):
        return None
    failed = attributes.get(OUTCOME, "succeeded" if error is None else "failed") == "failed"
    return Reply(
        message.body,
        "failed" if failed else "succeeded",
        None if error is None else str(error),
        {name: value for name, value in attributes.items() if not name.startswith(RESERVED)},
        correlation_id,
    )


def _own(attributes: Mapping[str, AttributeValue] | None) -> dict[str, AttributeValue]:
    own = dict(attributes or {})
    for name in own:
        if str(name).startswith(RESERVED):
            raise refused(f"attribute {name!r}: names that begin with {RESERVED!r} are reserved")
    return own
