"""What a load process is asked to do through the SQS server."""

from __future__ import annotations

import msgspec


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a queue is, and the key to it."""

    host: str
    port: int
    access_key: str
    secret: str
    queue_url: str


class Send(msgspec.Struct, frozen=True, kw_only=True, tag="sqs-send"):
    """Sends messages over several connections, one request on its way on each."""

    endpoint: Endpoint
    connections: int
    messages: int
    size_bytes: int
    batch_messages: int
    """1: SendMessage; more: SendMessageBatch."""


class ReceiveAndDelete(msgspec.Struct, frozen=True, kw_only=True, tag="sqs-receive"):
    """ReceiveMessage of ten, DeleteMessageBatch of what came, over several connections, until all are gone."""

    endpoint: Endpoint
    connections: int
    messages: int
    size_bytes: int


class SendSingly(msgspec.Struct, frozen=True, kw_only=True, tag="sqs-send-singly"):
    """Sends one message, waits for its answer, sends the next."""

    endpoint: Endpoint
    messages: int
    size_bytes: int


class LongPoll(msgspec.Struct, frozen=True, kw_only=True, tag="sqs-long-poll"):
    """A receiver waits, then a message is sent: how long after the send's answer the receiver has it."""

    endpoint: Endpoint
    messages: int
    size_bytes: int


class HoldConnections(msgspec.Struct, frozen=True, kw_only=True, tag="sqs-hold-connections"):
    """Opens connections, asks once on each, and lets them rest until told to go on; then asks again on each."""

    endpoint: Endpoint
    connections: int


class HoldPolls(msgspec.Struct, frozen=True, kw_only=True, tag="sqs-hold-polls"):
    """Lets long polls wait until told to go on; then sends as many messages, so that each of them gets one."""

    endpoint: Endpoint
    polls: int
    size_bytes: int


SqsTask = Send | ReceiveAndDelete | SendSingly | LongPoll | HoldConnections | HoldPolls
