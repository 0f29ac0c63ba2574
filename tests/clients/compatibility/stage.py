"""What the probes work on: a client, queues of their own, and short ways to say what they do."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from botocore.exceptions import ClientError

MOVE_SECONDS = 60


class Stage:
    """One client, and the queues that the probes make with it."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._made: list[str] = []

    def queue(self, **attributes: object) -> str:
        """The URL of a new queue."""
        suffix = ".fifo" if attributes.get("FifoQueue") == "true" else ""
        values = {name: str(value) for name, value in attributes.items()}
        url: str = self.client.create_queue(
            QueueName=f"probe-{uuid.uuid4().hex[:12]}{suffix}", Attributes=values
        )["QueueUrl"]
        self._made.append(url)
        return url

    def clean_up(self) -> None:
        """Deletes what is left of the queues."""
        for url in self._made:
            try:
                self.client.delete_queue(QueueUrl=url)
            except self.client.exceptions.QueueDoesNotExist:
                continue

    def attribute(self, url: str, name: str) -> str | None:
        """One attribute of a queue, or None when it has no value."""
        found = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        value: str | None = found.get("Attributes", {}).get(name)
        return value

    def arn(self, url: str) -> str:
        """The ARN of a queue."""
        return str(self.attribute(url, "QueueArn"))

    def one(self, url: str, **more: Any) -> dict[str, Any]:
        """The next message, which must come."""
        (message,) = self.client.receive_message(QueueUrl=url, WaitTimeSeconds=5, **more)["Messages"]
        return dict(message)

    def dead_letters(self, count: int) -> tuple[str, str]:
        """A dead-letter queue that holds messages, and the queue in which they died."""
        dead = self.queue()
        policy = json.dumps({"deadLetterTargetArn": self.arn(dead), "maxReceiveCount": 1})
        source = self.queue(VisibilityTimeout=0, RedrivePolicy=policy)
        for number in range(count):
            self.client.send_message(QueueUrl=source, MessageBody=str(number))
        for _ in range(3 * count):
            self.client.receive_message(QueueUrl=source, MaxNumberOfMessages=10)
            if self.attribute(dead, "ApproximateNumberOfMessages") == str(count):
                return dead, source
        raise AssertionError("the messages did not die")

    def finished_move(self, arn: str) -> dict[str, Any]:
        """The newest move task of a queue, once it no longer runs."""
        until = time.monotonic() + MOVE_SECONDS
        while time.monotonic() < until:
            newest = dict(self.client.list_message_move_tasks(SourceArn=arn, MaxResults=10)["Results"][0])
            if newest["Status"] not in {"RUNNING", "CANCELLING"}:
                return newest
        raise AssertionError("the task did not end")

    def refused(self, code: str, action: str, **arguments: Any) -> str:
        """Makes a call that must be refused with this code; returns the message."""
        try:
            getattr(self.client, action)(**arguments)
        except ClientError as error:
            found = error.response["Error"]
            assert found["Code"] == code, f"{action} answers {found['Code']}, not {code}"
            return str(found["Message"])
        raise AssertionError(f"{action} was not refused with {code}")


MISSING = "AWS.SimpleQueueService.NonExistentQueue"
