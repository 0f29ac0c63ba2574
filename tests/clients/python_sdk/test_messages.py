"""boto3: sending, receiving, deleting and changing visibility on standard queues."""

from __future__ import annotations

import hashlib
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

MakeQueue = Callable[..., str]

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "text": {"DataType": "String", "StringValue": "grüße <&> \r\n\t \U0001f375"},
    "number": {"DataType": "Number", "StringValue": "-12345678901234567890.5"},
    "binary": {"DataType": "Binary", "BinaryValue": bytes(range(256))},
    "labelled": {"DataType": "String.uuid", "StringValue": "e5c1"},
    "typed": {"DataType": "Number.java.lang.Long", "StringValue": "1493147359900"},
    "image": {"DataType": "Binary.png", "BinaryValue": b"\x89PNG\r\n\x1a\n"},
}


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def md5_of_attributes(attributes: dict[str, dict[str, Any]]) -> str:
    """The digest as AWS documents it, written here a second time on purpose."""
    digest = hashlib.md5()
    for name in sorted(attributes):
        value = attributes[name]
        for text in (name, value["DataType"]):
            digest.update(struct.pack("!I", len(text.encode())) + text.encode())
        raw = value["BinaryValue"] if "BinaryValue" in value else value["StringValue"].encode()
        digest.update((b"\x02" if "BinaryValue" in value else b"\x01") + struct.pack("!I", len(raw)) + raw)
    return digest.hexdigest()


def counts(sqs: Any, url: str) -> tuple[int, int, int]:
    """Visible, in flight, delayed."""
    names = ["", "NotVisible", "Delayed"]
    wanted = [f"ApproximateNumberOfMessages{name}" for name in names]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
    visible, out, delayed = (int(found[name]) for name in wanted)
    return visible, out, delayed


# --- one message --------------------------------------------------------------------------------------------


def test_a_message_goes_in_and_comes_out_whole(sqs: Any, queue: str) -> None:
    body = 'one espresso & <two> "ristretti"\r\nper favore \U0001f375\t!'
    sent = sqs.send_message(QueueUrl=queue, MessageBody=body, MessageAttributes=ATTRIBUTES)
    assert sent["MD5OfMessageBody"] == md5(body)
    assert sent["MD5OfMessageAttributes"] == md5_of_attributes(ATTRIBUTES)
    assert "SequenceNumber" not in sent
    (message,) = sqs.receive_message(
        QueueUrl=queue, AttributeNames=["All"], MessageAttributeNames=["All"], WaitTimeSeconds=5
    )["Messages"]
    assert message["MessageId"] == sent["MessageId"]
    assert message["Body"] == body
    assert message["MD5OfBody"] == md5(body)
    assert message["MessageAttributes"] == ATTRIBUTES
    assert message["MD5OfMessageAttributes"] == md5_of_attributes(ATTRIBUTES)
    system = message["Attributes"]
    assert system["ApproximateReceiveCount"] == "1"
    assert abs(int(system["SentTimestamp"]) / 1000 - time.time()) < 120
    assert int(system["ApproximateFirstReceiveTimestamp"]) >= int(system["SentTimestamp"])
    assert system["SenderId"]
    assert counts(sqs, queue) == (0, 1, 0)
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert counts(sqs, queue) == (0, 0, 0)
    # Deleting again is no mistake.
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (["text"], {"text"}),
        ([".*"], set(ATTRIBUTES)),
        (["t.*"], {"text", "typed"}),
        (["nothing", "number"], {"number"}),
    ],
)
def test_only_the_attributes_asked_for_come_back(
    sqs: Any, queue: str, asked: list[str], given: set[str]
) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=ATTRIBUTES)
    (message,) = sqs.receive_message(QueueUrl=queue, MessageAttributeNames=asked, WaitTimeSeconds=5)[
        "Messages"
    ]
    expected = {name: ATTRIBUTES[name] for name in given}
    assert message["MessageAttributes"] == expected
    assert message["MD5OfMessageAttributes"] == md5_of_attributes(expected)
    assert "Attributes" not in message


def test_the_trace_header_travels_as_a_system_attribute(sqs: Any, queue: str) -> None:
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
    sent = sqs.send_message(
        QueueUrl=queue,
        MessageBody="x",
        MessageSystemAttributes={"AWSTraceHeader": {"DataType": "String", "StringValue": trace}},
    )
    assert sent["MD5OfMessageSystemAttributes"] == "5ae4d5d7636402d80f4eb6d213245a88"
    (message,) = sqs.receive_message(QueueUrl=queue, AttributeNames=["AWSTraceHeader"], WaitTimeSeconds=5)[
        "Messages"
    ]
    assert message["Attributes"] == {"AWSTraceHeader": trace}


def test_a_mebibyte_fits_and_no_byte_more(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="m" * 1_048_576)
    (message,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    assert message["Body"] == "m" * 1_048_576
    with pytest.raises(ClientError) as caught:
        sqs.send_message(QueueUrl=queue, MessageBody="m" * 1_048_577)
    error = caught.value.response["Error"]
    assert error["Code"] == "InvalidParameterValue"
    assert "Message must be shorter than 1048576 bytes" in error["Message"]


def test_what_cannot_be_a_message_is_refused(sqs: Any, queue: str) -> None:
    with pytest.raises(sqs.exceptions.InvalidMessageContents):
        sqs.send_message(QueueUrl=queue, MessageBody="a\x0bb" if _speaks_json(sqs) else "a\ufffeb")
    refused: list[tuple[str, dict[str, Any]]] = [
        ("MissingParameter", {"MessageBody": ""}),
        ("InvalidParameterValue", {"MessageBody": "x", "DelaySeconds": -1}),
        ("InvalidParameterValue", {"MessageBody": "x", "MessageDeduplicationId": "d"}),
        ("InvalidParameterValue", {"MessageBody": "x", "MessageAttributes": _text_attribute("a", "Strange")}),
        ("InvalidParameterValue", {"MessageBody": "x", "MessageAttributes": _text_attribute("AWS.x")}),
        ("InvalidParameterValue", {"MessageBody": "x", "MessageAttributes": _text_attribute(".x")}),
        (
            "InvalidParameterValue",
            {"MessageBody": "x", "MessageAttributes": _text_attribute("n", "Number", "x1")},
        ),
        ("InvalidParameterValue", {"MessageBody": "x", "MessageAttributes": _text_attribute("e", value="")}),
    ]
    for code, arguments in refused:
        with pytest.raises(ClientError) as caught:
            sqs.send_message(QueueUrl=queue, **arguments)
        assert caught.value.response["Error"]["Code"] == code, arguments
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert counts(sqs, queue) == (0, 0, 0)


def _speaks_json(sqs: Any) -> bool:
    return str(sqs.meta.service_model.metadata["protocol"]) == "json"


def _text_attribute(name: str, kind: str = "String", value: str = "v") -> dict[str, dict[str, str]]:
    return {name: {"DataType": kind, "StringValue": value}}


# --- visibility, delay, waiting -----------------------------------------------------------------------------


def test_visibility_can_be_changed(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (first,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=0)
    (second,) = sqs.receive_message(QueueUrl=queue, AttributeNames=["All"], WaitTimeSeconds=5)["Messages"]
    assert second["MessageId"] == first["MessageId"]
    assert second["ReceiptHandle"] != first["ReceiptHandle"]
    assert second["Attributes"]["ApproximateReceiveCount"] == "2"
    with pytest.raises(ClientError) as caught:
        sqs.change_message_visibility(
            QueueUrl=queue, ReceiptHandle=second["ReceiptHandle"], VisibilityTimeout=-1
        )
    assert caught.value.response["Error"]["Code"] == "InvalidParameterValue"
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=second["ReceiptHandle"])
    with pytest.raises(ClientError) as caught:
        sqs.change_message_visibility(
            QueueUrl=queue, ReceiptHandle=second["ReceiptHandle"], VisibilityTimeout=5
        )
    assert "not available for visibility timeout change" in caught.value.response["Error"]["Message"]


def test_a_receipt_whose_timeout_is_over_hides_the_message_again(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="slow")
    (first,) = sqs.receive_message(QueueUrl=queue, VisibilityTimeout=0, WaitTimeSeconds=5)["Messages"]
    change = {"QueueUrl": queue, "ReceiptHandle": first["ReceiptHandle"]}
    sqs.change_message_visibility(**change, VisibilityTimeout=600)
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    sqs.change_message_visibility(**change, VisibilityTimeout=0)
    (second,) = sqs.receive_message(QueueUrl=queue, AttributeNames=["All"], WaitTimeSeconds=5)["Messages"]
    assert second["Attributes"]["ApproximateReceiveCount"] == "2"
    for seconds in (0, 600):  # somebody has it now
        with pytest.raises(ClientError):
            sqs.change_message_visibility(**change, VisibilityTimeout=seconds)


def test_a_message_comes_back_when_its_time_is_up(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (first,) = sqs.receive_message(QueueUrl=queue, VisibilityTimeout=1, WaitTimeSeconds=5)["Messages"]
    began = time.monotonic()
    (second,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20)["Messages"]
    assert second["MessageId"] == first["MessageId"]
    assert 0.5 < time.monotonic() - began < 18, "it came when the poll was over"


def test_a_delayed_message_arrives_late_and_a_long_poll_sees_it(sqs: Any, queue: str) -> None:
    began = time.monotonic()
    sqs.send_message(QueueUrl=queue, MessageBody="later", DelaySeconds=1)
    assert counts(sqs, queue) == (0, 0, 1)
    (message,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20)["Messages"]
    assert message["Body"] == "later"
    assert 0.9 < time.monotonic() - began < 18, "it came when the poll was over"


def test_the_delay_of_the_queue_holds_unless_the_message_says_otherwise(
    sqs: Any, make_queue: MakeQueue
) -> None:
    url = make_queue(DelaySeconds=600)
    sqs.send_message(QueueUrl=url, MessageBody="later")
    sqs.send_message(QueueUrl=url, MessageBody="now", DelaySeconds=0)
    assert counts(sqs, url) == (1, 0, 1)


def test_a_long_poll_is_woken_by_a_send(sqs: Any, queue: str) -> None:
    answers: list[Any] = []
    poll = threading.Thread(
        target=lambda: answers.append(sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20))
    )
    began = time.monotonic()
    poll.start()
    sqs.send_message(QueueUrl=queue, MessageBody="wake up")
    poll.join(timeout=30)
    assert [message["Body"] for message in answers[0]["Messages"]] == ["wake up"]
    assert time.monotonic() - began < 18, "it came when the poll was over"


def test_an_empty_long_poll_lasts_as_long_as_asked(sqs: Any, make_queue: MakeQueue) -> None:
    url = make_queue(ReceiveMessageWaitTimeSeconds=1)
    for arguments in ({}, {"WaitTimeSeconds": 1}):
        began = time.monotonic()
        assert "Messages" not in sqs.receive_message(QueueUrl=url, **arguments)
        assert 0.9 < time.monotonic() - began < 18


@pytest.mark.parametrize(
    "arguments",
    [
        {"MaxNumberOfMessages": 0},
        {"MaxNumberOfMessages": 11},
        {"WaitTimeSeconds": 21},
        {"WaitTimeSeconds": -1},
        {"VisibilityTimeout": -1},
    ],
)
def test_a_receive_out_of_bounds_is_refused(sqs: Any, queue: str, arguments: dict[str, int]) -> None:
    with pytest.raises(ClientError) as caught:
        sqs.receive_message(QueueUrl=queue, **arguments)
    error = caught.value.response["Error"]
    assert error["Code"] == "InvalidParameterValue"
    ((name, value),) = arguments.items()
    assert f"Value {value} for parameter {name} is invalid" in error["Message"]


def test_a_handle_that_is_none_is_refused(sqs: Any, queue: str) -> None:
    here: dict[str, Any] = {"QueueUrl": queue, "ReceiptHandle": "garbage"}
    calls: list[Callable[[], object]] = [
        lambda: sqs.delete_message(**here),
        lambda: sqs.change_message_visibility(**here, VisibilityTimeout=1),
    ]
    for call in calls:
        with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid) as caught:
            call()
        assert caught.value.response["Error"]["Message"] == (
            'The input receipt handle "garbage" is not a valid receipt handle.'
        )
