"""A queue and its messages, through the actions of a front end."""

from __future__ import annotations

from typing import Any

from penstock.frontend.actions.change_message_visibility import (
    change_message_visibility,
    change_message_visibility_batch,
)
from penstock.frontend.actions.create_queue import create_queue
from penstock.frontend.actions.delete_message import delete_message, delete_message_batch
from penstock.frontend.actions.receive_message import receive_message
from penstock.frontend.actions.send_message import send_message, send_message_batch
from penstock.sqs.errors import SqsError
from penstock.sqs.shapes.batches import (
    ChangeMessageVisibilityBatchResult,
    DeleteMessageBatchResult,
    SendMessageBatchResult,
)
from penstock.sqs.shapes.messages import Message, SendMessageResult
from tests.frontend.harness import FrontEnd


class Queue:
    """Calls on one queue."""

    def __init__(self, front: FrontEnd, name: str = "orders", **attributes: str) -> None:
        self.front = front
        self.name = name
        if name.endswith(".fifo"):
            attributes["FifoQueue"] = "true"
        front.call(create_queue, "CreateQueue", QueueName=name, Attributes=attributes)
        self.url = front.url(name)

    def send(self, body: str = "hello", **members: Any) -> SendMessageResult:
        return self.front.call(send_message, "SendMessage", QueueUrl=self.url, MessageBody=body, **members)

    def send_refused(self, body: str = "hello", **members: Any) -> SqsError:
        return self.front.refuse(send_message, "SendMessage", QueueUrl=self.url, MessageBody=body, **members)

    def send_batch(self, *entries: dict[str, Any]) -> SendMessageBatchResult:
        return self.front.call(
            send_message_batch, "SendMessageBatch", QueueUrl=self.url, Entries=list(entries)
        )

    def receive(self, most: int = 10, **members: Any) -> list[Message]:
        return self.front.call(
            receive_message, "ReceiveMessage", QueueUrl=self.url, MaxNumberOfMessages=most, **members
        ).messages

    def receive_refused(self, **members: Any) -> SqsError:
        return self.front.refuse(receive_message, "ReceiveMessage", QueueUrl=self.url, **members)

    def receive_one(self, **members: Any) -> Message:
        (message,) = self.receive(1, **members)
        return message

    def bodies(self, **members: Any) -> list[str]:
        return [message.body for message in self.receive(**members)]

    def delete(self, handle: str | None) -> None:
        self.front.call(delete_message, "DeleteMessage", QueueUrl=self.url, ReceiptHandle=handle)

    def delete_refused(self, handle: str | None) -> SqsError:
        return self.front.refuse(delete_message, "DeleteMessage", QueueUrl=self.url, ReceiptHandle=handle)

    def delete_batch(self, handles: dict[str, str | None]) -> DeleteMessageBatchResult:
        entries = [{"Id": key, "ReceiptHandle": handle} for key, handle in handles.items()]
        return self.front.call(delete_message_batch, "DeleteMessageBatch", QueueUrl=self.url, Entries=entries)

    def change(self, handle: str | None, seconds: int) -> None:
        self.front.call(
            change_message_visibility,
            "ChangeMessageVisibility",
            QueueUrl=self.url,
            ReceiptHandle=handle,
            VisibilityTimeout=seconds,
        )

    def change_refused(self, handle: str | None, seconds: int) -> SqsError:
        return self.front.refuse(
            change_message_visibility,
            "ChangeMessageVisibility",
            QueueUrl=self.url,
            ReceiptHandle=handle,
            VisibilityTimeout=seconds,
        )

    def change_batch(self, changes: dict[str, tuple[str | None, int]]) -> ChangeMessageVisibilityBatchResult:
        entries = [
            {"Id": key, "ReceiptHandle": handle, "VisibilityTimeout": seconds}
            for key, (handle, seconds) in changes.items()
        ]
        return self.front.call(
            change_message_visibility_batch,
            "ChangeMessageVisibilityBatch",
            QueueUrl=self.url,
            Entries=entries,
        )
