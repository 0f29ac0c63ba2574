"""Valid calls of every action, drawn from seeded dice: where every mutation starts from."""

from __future__ import annotations

import base64
import json
import random
from collections import deque
from collections.abc import Callable
from typing import Any

Parameters = dict[str, Any]

ACCOUNT = "000000000000"
REGION = "us-east-1"
STANDARD_QUEUES = tuple(f"fuzz-{number}" for number in range(8))
FIFO_QUEUES = tuple(f"fuzz-{number}.fifo" for number in range(4))
QUEUES = STANDARD_QUEUES + FIFO_QUEUES
TEXTS = (
    "a",
    "message body é € 😀",
    "<&>\"'\r\n\t",
    "x" * 1024,
    '{"json": [1, 2, {"deep": null}]}',
    "Root=1-5759e988-bd862e3fe1be46a994272793",
)
SYSTEM_ATTRIBUTES = (
    "All",
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "AWSTraceHeader",
    "MessageGroupId",
)
QUEUE_ATTRIBUTES = (
    *("All", "Policy", "VisibilityTimeout", "MaximumMessageSize", "MessageRetentionPeriod", "QueueArn"),
    *("ApproximateNumberOfMessages", "CreatedTimestamp", "DelaySeconds", "RedrivePolicy", "FifoQueue"),
    *("Penstock.MaximumMessages", "Penstock.OverflowPolicy", "KmsMasterKeyId", "SqsManagedSseEnabled"),
)


class Known:
    """What answers have taught: handles that were given out; bounded, so that old ones make room."""

    def __init__(self) -> None:
        self.receipts: deque[tuple[str, str]] = deque(maxlen=200)
        """Queues, and handles of their messages."""
        self.tasks: deque[str] = deque(maxlen=20)
        self.tokens: deque[str] = deque(maxlen=20)

    def learn(self, queue_url: str, body: bytes) -> None:
        """Takes handles from the body of a JSON answer."""
        if receipt := _member(body, b'"ReceiptHandle":"'):
            self.receipts.append((queue_url, receipt))
        if task := _member(body, b'"TaskHandle":"'):
            self.tasks.append(task)
        if token := _member(body, b'"NextToken":"'):
            self.tokens.append(token)


def _member(body: bytes, name: bytes) -> str:
    """The first value of a member, or nothing."""
    start = body.find(name) + len(name)
    end = body.find(b'"', start)
    return body[start:end].decode("latin-1") if start >= len(name) and end > 0 else ""


class Grammar:
    """Calls that the service takes."""

    def __init__(self, known: Known, host: str) -> None:
        self._known = known
        self._host = host

    def call(self, dice: random.Random) -> tuple[str, Parameters]:
        """An action and its parameters."""
        action = dice.choice(ACTIONS)
        return action, _CALLS[action](self, dice)

    # -- parts -----------------------------------------------------------------------------------------------

    def url(self, dice: random.Random) -> str:
        name = dice.choice(QUEUES)
        return dice.choice(
            (
                f"http://{self._host}/{ACCOUNT}/{name}",
                f"/{ACCOUNT}/{name}",
                name,
                f"https://elsewhere/queue/{name}",
            )
        )

    def arn(self, dice: random.Random) -> str:
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{dice.choice(QUEUES)}"

    def receipt(self, dice: random.Random) -> str:
        known = self._known.receipts
        if known and dice.random() < 0.8:
            return known[dice.randrange(len(known))][1]
        return base64.b64encode(dice.randbytes(dice.randint(0, 80))).decode()

    def task(self, dice: random.Random) -> str:
        known = self._known.tasks
        if known and dice.random() < 0.8:
            return known[dice.randrange(len(known))]
        handle = {"taskId": "6b1c4b4c-0b6b-4b1c-8b1c-4b4c0b6b4b1c", "sourceArn": self.arn(dice)}
        return base64.b64encode(json.dumps(handle).encode()).decode()

    def token(self, dice: random.Random) -> str:
        known = self._known.tokens
        return dice.choice(known) if known else base64.b64encode(dice.choice(QUEUES).encode()).decode()

    def text(self, dice: random.Random) -> str:
        return dice.choice(TEXTS) if dice.random() < 0.9 else "b" * dice.randint(1, 20_000)

    def typed(self, dice: random.Random) -> Parameters:
        match dice.randrange(3):
            case 0:
                return {"DataType": "String", "StringValue": self.text(dice)}
            case 1:
                return {"DataType": "Number.int", "StringValue": str(dice.randint(-(10**12), 10**12))}
            case _:
                return {"DataType": "Binary", "BinaryValue": dice.randbytes(dice.randint(1, 40))}

    def message(self, dice: random.Random, *, fifo: bool) -> Parameters:
        message: Parameters = {"MessageBody": self.text(dice)}
        if dice.random() < 0.3:
            names = ("a", "Penstock.Priority", "Penstock.TimeToLiveSeconds", "name.with.dots")
            message["MessageAttributes"] = {
                dice.choice(names): self.typed(dice) for _ in range(dice.randint(1, 4))
            }
        if dice.random() < 0.1:
            header = {"DataType": "String", "StringValue": TEXTS[-1]}
            message["MessageSystemAttributes"] = {"AWSTraceHeader": header}
        if fifo or dice.random() < 0.1:
            message["MessageGroupId"] = dice.choice(("g", "group-2"))
        if fifo and dice.random() < 0.8:
            message["MessageDeduplicationId"] = str(dice.randrange(50))
        if not fifo and dice.random() < 0.2:
            message["DelaySeconds"] = dice.randint(0, 5)
        return message

    def policy(self, dice: random.Random) -> str:
        statement: Parameters = {
            "Sid": "one",
            "Effect": "Allow",  # a denial would close a queue to everything that follows
            "Principal": dice.choice(
                ("*", {"AWS": "*"}, {"AWS": [f"arn:aws:iam::{ACCOUNT}:root", "123456789012"]})
            ),
            "Action": dice.choice(("sqs:*", ["sqs:SendMessage", "SQS:Receive*"])),
            "Resource": self.arn(dice),
        }
        if dice.random() < 0.5:
            statement["Condition"] = dice.choice(
                (
                    {"IpAddress": {"aws:SourceIp": ["127.0.0.0/8", "::1/128"]}},
                    {"StringLike": {"aws:username": "f*"}},
                    {"DateGreaterThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}},
                    {"NumericLessThan": {"aws:EpochTime": "99999999999"}},
                    {"Bool": {"aws:SecureTransport": "false"}},
                    {"ArnLike": {"aws:SourceArn": "arn:aws:*:*:*:*"}},
                )
            )
        return json.dumps({"Version": "2012-10-17", "Id": "fuzz", "Statement": [statement]})

    def attributes(self, dice: random.Random, *, fifo: bool) -> dict[str, str]:
        values: dict[str, Callable[[], str]] = {
            "VisibilityTimeout": lambda: str(dice.randint(0, 60)),
            "DelaySeconds": lambda: "0",
            "MaximumMessageSize": lambda: str(dice.choice((1024, 262_144, 1_048_576))),
            "MessageRetentionPeriod": lambda: str(dice.randint(60, 1_209_600)),
            "ReceiveMessageWaitTimeSeconds": lambda: "0",
            "Policy": lambda: self.policy(dice),
            "RedrivePolicy": lambda: json.dumps(
                {"deadLetterTargetArn": self.arn(dice), "maxReceiveCount": str(dice.randint(1, 10))}
            ),
            "RedriveAllowPolicy": lambda: json.dumps(
                {"redrivePermission": dice.choice(("allowAll", "denyAll"))}
            ),
            "KmsMasterKeyId": lambda: "alias/aws/sqs",
            "SqsManagedSseEnabled": lambda: dice.choice(("true", "false")),
            "Penstock.MaximumMessages": lambda: dice.choice(("", "1000")),
            "Penstock.OverflowPolicy": lambda: "reject",
        }
        names = dice.sample(sorted(values), dice.randint(1, 3))
        chosen = {name: values[name]() for name in names}
        if fifo:
            chosen["FifoQueue"] = "true"
            if dice.random() < 0.5:
                chosen["ContentBasedDeduplication"] = "true"
        return chosen

    # -- actions ---------------------------------------------------------------------------------------------

    def on_queue(self, dice: random.Random) -> Parameters:
        return {"QueueUrl": self.url(dice)}

    def create_queue(self, dice: random.Random) -> Parameters:
        name = dice.choice(QUEUES)
        parameters: Parameters = {"QueueName": name}
        fifo = name.endswith(".fifo")
        if dice.random() < 0.5:
            parameters["Attributes"] = self.attributes(dice, fifo=fifo)
        elif fifo:
            parameters["Attributes"] = {"FifoQueue": "true"}
        if dice.random() < 0.2:
            parameters["tags"] = {"team": "é", "cost": ""}
        return parameters

    def send_message(self, dice: random.Random) -> Parameters:
        url = self.url(dice)
        return {"QueueUrl": url, **self.message(dice, fifo=url.endswith(".fifo"))}

    def send_message_batch(self, dice: random.Random) -> Parameters:
        url = self.url(dice)
        entries = [
            {"Id": f"e{number}", **self.message(dice, fifo=url.endswith(".fifo"))}
            for number in range(dice.randint(1, 10))
        ]
        return {"QueueUrl": url, "Entries": entries}

    def receive_message(self, dice: random.Random) -> Parameters:
        parameters: Parameters = {"QueueUrl": self.url(dice), "MaxNumberOfMessages": dice.randint(1, 10)}
        if dice.random() < 0.5:
            parameters["AttributeNames"] = dice.sample(SYSTEM_ATTRIBUTES, 2)
        if dice.random() < 0.3:
            parameters["MessageAttributeNames"] = dice.sample(("All", ".*", "a", "Penstock.*"), 2)
        if dice.random() < 0.3:
            parameters["VisibilityTimeout"] = dice.randint(0, 30)
        if dice.random() < 0.2:
            parameters["ReceiveRequestAttemptId"] = "attempt"
        return parameters

    def on_receipt(self, dice: random.Random) -> Parameters:
        if self._known.receipts and dice.random() < 0.7:
            url, receipt = self._known.receipts[-1 - dice.randrange(min(8, len(self._known.receipts)))]
            return {"QueueUrl": url, "ReceiptHandle": receipt}
        return {"QueueUrl": self.url(dice), "ReceiptHandle": self.receipt(dice)}

    def change_visibility(self, dice: random.Random) -> Parameters:
        return {**self.on_receipt(dice), "VisibilityTimeout": dice.randint(0, 30)}

    def delete_batch(self, dice: random.Random) -> Parameters:
        count = dice.randint(1, 10)
        entries = [{"Id": f"e{number}", "ReceiptHandle": self.receipt(dice)} for number in range(count)]
        return {"QueueUrl": self.url(dice), "Entries": entries}

    def change_batch(self, dice: random.Random) -> Parameters:
        batch = self.delete_batch(dice)
        for entry in batch["Entries"]:
            entry["VisibilityTimeout"] = dice.randint(0, 30)
        return batch

    def get_attributes(self, dice: random.Random) -> Parameters:
        return {"QueueUrl": self.url(dice), "AttributeNames": dice.sample(QUEUE_ATTRIBUTES, 3)}

    def set_attributes(self, dice: random.Random) -> Parameters:
        url = self.url(dice)
        attributes = self.attributes(dice, fifo=url.endswith(".fifo"))
        return {"QueueUrl": url, "Attributes": attributes}

    def tag(self, dice: random.Random) -> Parameters:
        return {"QueueUrl": self.url(dice), "Tags": {dice.choice(("team", "é", "k")): "v" for _ in range(2)}}

    def untag(self, dice: random.Random) -> Parameters:
        return {"QueueUrl": self.url(dice), "TagKeys": ["team", "k"]}

    def list_queues(self, dice: random.Random) -> Parameters:
        parameters: Parameters = {}
        if dice.random() < 0.5:
            parameters["QueueNamePrefix"] = dice.choice(("fuzz", "f", ""))
        if dice.random() < 0.5:
            parameters["MaxResults"] = dice.randint(1, 5)
            if dice.random() < 0.5:
                parameters["NextToken"] = self.token(dice)
        return parameters

    def dead_letter_sources(self, dice: random.Random) -> Parameters:
        return {**self.on_queue(dice), "MaxResults": dice.randint(1, 1000)}

    def get_url(self, dice: random.Random) -> Parameters:
        parameters: Parameters = {"QueueName": dice.choice(QUEUES)}
        if dice.random() < 0.3:
            parameters["QueueOwnerAWSAccountId"] = dice.choice((ACCOUNT, "123456789012"))
        return parameters

    def add_permission(self, dice: random.Random) -> Parameters:
        actions = dice.sample(("SendMessage", "ReceiveMessage", "*", "DeleteMessage"), 2)
        label = f"label-{dice.randrange(5)}"
        return {**self.on_queue(dice), "Label": label, "AWSAccountIds": ["123456789012"], "Actions": actions}

    def remove_permission(self, dice: random.Random) -> Parameters:
        return {**self.on_queue(dice), "Label": f"label-{dice.randrange(5)}"}

    def start_move(self, dice: random.Random) -> Parameters:
        parameters: Parameters = {"SourceArn": self.arn(dice)}
        if dice.random() < 0.5:
            parameters["DestinationArn"] = self.arn(dice)
        if dice.random() < 0.5:
            parameters["MaxNumberOfMessagesPerSecond"] = dice.randint(1, 500)
        return parameters

    def list_moves(self, dice: random.Random) -> Parameters:
        return {"SourceArn": self.arn(dice), "MaxResults": dice.randint(1, 10)}

    def cancel_move(self, dice: random.Random) -> Parameters:
        return {"TaskHandle": self.task(dice)}


_CALLS: dict[str, Callable[[Grammar, random.Random], Parameters]] = {
    "CreateQueue": Grammar.create_queue,
    "GetQueueUrl": Grammar.get_url,
    "ListQueues": Grammar.list_queues,
    "DeleteQueue": Grammar.on_queue,
    "PurgeQueue": Grammar.on_queue,
    "ListDeadLetterSourceQueues": Grammar.dead_letter_sources,
    "GetQueueAttributes": Grammar.get_attributes,
    "SetQueueAttributes": Grammar.set_attributes,
    "TagQueue": Grammar.tag,
    "UntagQueue": Grammar.untag,
    "ListQueueTags": Grammar.on_queue,
    "AddPermission": Grammar.add_permission,
    "RemovePermission": Grammar.remove_permission,
    "SendMessage": Grammar.send_message,
    "SendMessageBatch": Grammar.send_message_batch,
    "ReceiveMessage": Grammar.receive_message,
    "DeleteMessage": Grammar.on_receipt,
    "DeleteMessageBatch": Grammar.delete_batch,
    "ChangeMessageVisibility": Grammar.change_visibility,
    "ChangeMessageVisibilityBatch": Grammar.change_batch,
    "StartMessageMoveTask": Grammar.start_move,
    "ListMessageMoveTasks": Grammar.list_moves,
    "CancelMessageMoveTask": Grammar.cancel_move,
}
NAMES = tuple(_CALLS)
# What makes queues and messages comes up more often, so that there is something for the others to work on.
_OFTEN = ("CreateQueue",) * 8 + ("SendMessage", "SendMessageBatch", "ReceiveMessage") * 3
ACTIONS = NAMES + _OFTEN
