"""SendMessage and SendMessageBatch, over a real node."""

from __future__ import annotations

import hashlib
import re

from penstock.frontend.actions.queue_attributes import set_queue_attributes
from penstock.sqs.compatibility import STRICT
from tests.frontend.actions.messages import Queue
from tests.frontend.harness import FrontEnd

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}")


def test_a_message_is_sent_and_received_as_it_was() -> None:
    queue = Queue(FrontEnd())
    sent = queue.send("grüße\n")
    assert sent.md5_of_message_body == hashlib.md5("grüße\n".encode()).hexdigest()
    assert UUID.fullmatch(sent.message_id)
    assert sent.sequence_number is None
    message = queue.receive_one()
    assert (message.body, message.message_id) == ("grüße\n", sent.message_id)
    assert message.md5_of_body == sent.md5_of_message_body
    assert message.attributes == {}


def test_ids_differ_between_messages_and_queues() -> None:
    front = FrontEnd()
    queues = [Queue(front, name) for name in ("a", "b")]
    ids = [queue.send().message_id for queue in queues for _ in range(50)]
    assert len(set(ids)) == 100


def test_attributes_keep_type_and_value() -> None:
    queue = Queue(FrontEnd())
    attributes = {
        "text": {"DataType": "String", "StringValue": "é"},
        "count": {"DataType": "Number", "StringValue": "7"},
        "price": {"DataType": "Number.eur", "StringValue": "1.50"},
        "raw": {"DataType": "Binary.gif", "BinaryValue": "AAEC"},
    }
    sent = queue.send(MessageAttributes=attributes)
    message = queue.receive_one(MessageAttributeNames=["All"])
    assert {name: value.data_type for name, value in message.message_attributes.items()} == {
        "text": "String",
        "count": "Number",
        "price": "Number.eur",
        "raw": "Binary.gif",
    }
    assert message.message_attributes["raw"].binary_value == b"\0\1\2"
    assert message.message_attributes["price"].string_value == "1.50"
    assert message.md5_of_message_attributes == sent.md5_of_message_attributes
    assert queue.receive(WaitTimeSeconds=0) == []


def test_a_duplicate_gets_the_originals_id_also_after_it_is_deleted() -> None:
    queue = Queue(FrontEnd(), "orders.fifo")
    first = queue.send("one", MessageGroupId="g", MessageDeduplicationId="d")
    message = queue.receive_one()
    queue.delete(message.receipt_handle)
    again = queue.send("two", MessageGroupId="g", MessageDeduplicationId="d")
    assert (again.message_id, again.sequence_number) == (first.message_id, first.sequence_number)
    assert again.md5_of_message_body == hashlib.md5(b"two").hexdigest()
    assert queue.receive() == []


def test_content_based_deduplication() -> None:
    queue = Queue(FrontEnd(), "orders.fifo", ContentBasedDeduplication="true")
    first = queue.send("same", MessageGroupId="a")
    assert queue.send("same", MessageGroupId="b").message_id == first.message_id
    explicit = queue.send(
        "other", MessageGroupId="a", MessageDeduplicationId=hashlib.sha256(b"same").hexdigest()
    )
    assert explicit.message_id == first.message_id
    message = queue.receive_one(AttributeNames=["All"])
    assert message.attributes["MessageDeduplicationId"] == hashlib.sha256(b"same").hexdigest()


def test_deduplication_in_the_scope_of_a_group() -> None:
    queue = Queue(FrontEnd(), "orders.fifo", DeduplicationScope="messageGroup")
    ids = {
        (group, identifier): queue.send(MessageGroupId=group, MessageDeduplicationId=identifier).message_id
        for group in ("a", "b")
        for identifier in ("x", "y")
    }
    assert len(set(ids.values())) == 4
    assert queue.send(MessageGroupId="b", MessageDeduplicationId="x").message_id == ids["b", "x"]
    received = queue.receive(AttributeNames=["All"])
    assert {
        (message.attributes["MessageGroupId"], message.attributes["MessageDeduplicationId"])
        for message in received
    } == set(ids)


def test_the_window_ends() -> None:
    front = FrontEnd()
    queue = Queue(front, "orders.fifo")
    first = queue.send(MessageGroupId="g", MessageDeduplicationId="d")
    front.node.now_ms += 299_000
    assert queue.send(MessageGroupId="g", MessageDeduplicationId="d").message_id == first.message_id
    front.node.now_ms += 2_000
    assert queue.send(MessageGroupId="g", MessageDeduplicationId="d").message_id != first.message_id


def test_a_delay_of_the_message_wins_over_that_of_the_queue() -> None:
    front = FrontEnd()
    queue = Queue(front, DelaySeconds="10")
    queue.send("now", DelaySeconds=0)
    queue.send("later")
    queue.send("in an hour", DelaySeconds=3600)
    assert queue.bodies() == ["now"]
    front.node.advance(10_050)
    assert queue.bodies() == ["later"]
    front.node.advance(3_600_000)
    assert "in an hour" in queue.bodies()


def test_strict_servers_keep_the_limits_of_sqs() -> None:
    queue = Queue(FrontEnd(compatibility=STRICT))
    refused = queue.send_refused(DelaySeconds=901)
    assert refused.message == (
        "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."
    )


def test_extensions_set_priority_and_time_to_live() -> None:
    front = FrontEnd()
    queue = Queue(front)
    queue.send("low")
    queue.send("high", MessageAttributes={"Penstock.Priority": {"DataType": "Number", "StringValue": "9"}})
    queue.send(
        "short", MessageAttributes={"Penstock.TimeToLiveSeconds": {"DataType": "Number", "StringValue": "5"}}
    )
    assert queue.bodies()[0] == "high"
    front.node.advance(60_000)
    assert sorted(queue.bodies()) == ["high", "low"]


def test_a_message_of_exactly_the_limit_fits_with_its_attributes() -> None:
    queue = Queue(FrontEnd(), MaximumMessageSize="2048")
    attributes = {"k": {"DataType": "String", "StringValue": "v" * 1000}}
    body = "x" * (2048 - 1000 - len("kString"))
    queue.send(body, MessageAttributes=attributes)
    assert queue.send_refused(body + "x", MessageAttributes=attributes).message == (
        "One or more parameters are invalid. Reason: Message must be shorter than 2048 bytes."
    )


def test_a_batch_sends_what_is_good_and_names_what_is_not() -> None:
    queue = Queue(FrontEnd())
    result = queue.send_batch(
        {"Id": "a", "MessageBody": "one"},
        {"Id": "b", "MessageBody": "bad\x01"},
        {"Id": "c", "MessageBody": "three", "DelaySeconds": -1},
        {"Id": "d", "MessageBody": "four"},
    )
    assert [entry.id for entry in result.successful] == ["a", "d"]
    assert [(entry.id, entry.code) for entry in result.failed] == [
        ("b", "InvalidMessageContents"),
        ("c", "InvalidParameterValue"),
    ]
    messages = queue.receive()
    assert [message.body for message in messages] == ["one", "four"]
    assert [message.message_id for message in messages] == [entry.message_id for entry in result.successful]


def test_a_stamp_from_the_future_fails_its_own_entry_of_a_batch() -> None:
    front = FrontEnd()
    queue = Queue(front, **{"Penstock.Ordering": "clock", "Penstock.Stamps": "producer"})

    def entry(name: str, time_ms: int) -> dict[str, object]:
        stamp = {"DataType": "Number", "StringValue": str(time_ms * 1_000)}
        return {
            "Id": name,
            "MessageBody": name,
            "MessageAttributes": {"Penstock.TimestampMicroseconds": stamp},
        }

    now_ms = front.node.now_ms
    result = queue.send_batch(entry("now", now_ms), entry("ahead", now_ms + 10_000), entry("old", now_ms - 1))
    assert [sent.id for sent in result.successful] == ["now", "old"]
    (failed,) = result.failed
    assert (failed.id, failed.code, failed.sender_fault) == ("ahead", "InvalidParameterValue", True)
    assert "the producer's clock is ahead" in (failed.message or "")
    front.node.advance(1_000)
    assert queue.bodies() == ["old", "now"]


def test_what_is_stored_of_a_batch_is_told_though_the_queue_is_full_then() -> None:
    front = FrontEnd()
    limited = {"Penstock.Ordering": "clock", "Penstock.Stamps": "producer", "Penstock.MaximumMessages": "1"}
    queue = Queue(front, **limited)

    def entry(name: str, time_ms: int) -> dict[str, object]:
        stamp = {"DataType": "Number", "StringValue": str(time_ms * 1_000)}
        return {
            "Id": name,
            "MessageBody": name,
            "MessageAttributes": {"Penstock.TimestampMicroseconds": stamp},
        }

    now_ms = front.node.now_ms
    result = queue.send_batch(
        entry("ahead", now_ms + 10_000),
        entry("first", now_ms),
        entry("second", now_ms),
        entry("third", now_ms),
    )
    assert [sent.id for sent in result.successful] == ["first"], "a caller that is refused sends it once more"
    assert [(one.id, one.code) for one in result.failed] == [
        ("ahead", "InvalidParameterValue"),
        ("second", "OverLimit"),
        ("third", "OverLimit"),
    ]
    front.node.advance(1_000)
    assert queue.bodies() == ["first"]


def test_a_batch_of_nothing_but_bad_entries_asks_nobody() -> None:
    result = Queue(FrontEnd()).send_batch({"Id": "a", "MessageBody": "\x01"})
    assert result.successful == []
    assert len(result.failed) == 1


def test_a_batch_with_a_duplicate_inside() -> None:
    queue = Queue(FrontEnd(), "orders.fifo")
    entry = {"MessageBody": "same", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    result = queue.send_batch({"Id": "a", **entry}, {"Id": "b", **entry})
    first, second = result.successful
    assert (first.message_id, first.sequence_number) == (second.message_id, second.sequence_number)
    assert len(queue.receive()) == 1


def test_a_full_queue_refuses_as_over_limit() -> None:
    queue = Queue(FrontEnd(), **{"Penstock.MaximumMessages": "1"})
    queue.send()
    assert queue.send_refused().query_code == "OverLimit"


def test_a_queue_with_as_many_groups_as_it_may_have_refuses_another_as_over_limit() -> None:
    front = FrontEnd()
    queue = Queue(front, "orders.fifo", **{"Penstock.MaxGroups": "1"})
    queue.send(MessageGroupId="a", MessageDeduplicationId="1")
    assert queue.send_refused(MessageGroupId="b", MessageDeduplicationId="2").query_code == "OverLimit"
    queue.send(MessageGroupId="a", MessageDeduplicationId="3")
    more = {"Penstock.MaxGroups": "2"}
    front.call(set_queue_attributes, "SetQueueAttributes", QueueUrl=queue.url, Attributes=more)
    queue.send(MessageGroupId="b", MessageDeduplicationId="2")


def test_the_trace_header_is_kept() -> None:
    queue = Queue(FrontEnd())
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a9"}}
    assert queue.send(MessageSystemAttributes=trace).md5_of_message_system_attributes is not None
    message = queue.receive_one(MessageSystemAttributeNames=["AWSTraceHeader"])
    assert message.attributes == {"AWSTraceHeader": "Root=1-5759e988-bd862e3fe1be46a9"}
