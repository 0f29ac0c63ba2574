"""Shapes of the actions on single messages: send, receive, delete, change visibility."""

from __future__ import annotations

from msgspec import Struct, field

from penstock.sqs.shapes.kinds import Integer, QueueRequest, Result


class MessageAttributeValue(Struct, frozen=True, kw_only=True, rename="pascal", omit_defaults=True, gc=False):
    """One typed attribute: a text or bytes, and the type that says which. The lists exist to be refused."""

    string_value: str | None = None
    binary_value: bytes | None = None
    string_list_values: list[str] | None = None
    binary_list_values: list[bytes] | None = None
    data_type: str = ""


class SendMessageRequest(QueueRequest, frozen=True, kw_only=True):
    """SendMessage."""

    message_body: str = ""
    delay_seconds: Integer | None = None
    message_attributes: dict[str, MessageAttributeValue] = field(default_factory=dict)
    message_system_attributes: dict[str, MessageAttributeValue] = field(default_factory=dict)
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessageResult(Result, frozen=True, kw_only=True):
    """SendMessage's answer."""

    md5_of_message_body: str = field(name="MD5OfMessageBody")
    md5_of_message_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    md5_of_message_system_attributes: str | None = field(default=None, name="MD5OfMessageSystemAttributes")
    message_id: str
    sequence_number: str | None = None


class ReceiveMessageRequest(QueueRequest, frozen=True, kw_only=True):
    """ReceiveMessage; `AttributeNames` is the old name of `MessageSystemAttributeNames`, and both are used."""

    attribute_names: list[str] = field(default_factory=list)
    message_system_attribute_names: list[str] = field(default_factory=list)
    message_attribute_names: list[str] = field(default_factory=list)
    max_number_of_messages: Integer | None = None
    visibility_timeout: Integer | None = None
    wait_time_seconds: Integer | None = None
    receive_request_attempt_id: str | None = None


class Message(Result, frozen=True, kw_only=True):
    """One received message."""

    message_id: str
    receipt_handle: str | None = None
    """None if it was only peeked at."""
    md5_of_body: str = field(name="MD5OfBody")
    body: str
    attributes: dict[str, str] = field(default_factory=dict)
    md5_of_message_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    message_attributes: dict[str, MessageAttributeValue] = field(default_factory=dict)


class ReceiveMessageResult(Result, frozen=True, kw_only=True):
    """ReceiveMessage's answer."""

    messages: list[Message] = field(default_factory=list)


class DeleteMessageRequest(QueueRequest, frozen=True, kw_only=True):
    """DeleteMessage."""

    receipt_handle: str = ""


class ChangeMessageVisibilityRequest(QueueRequest, frozen=True, kw_only=True):
    """ChangeMessageVisibility."""

    receipt_handle: str = ""
    visibility_timeout: Integer | None = None
