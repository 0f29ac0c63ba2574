"""Single sends and batches: every check, which of them fail everything, and in which order."""

import hashlib

import pytest

from penstock.sqs.compatibility import EXTENDED, STRICT, Compatibility
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.messages.batches import (
    CheckedBatch,
    check_entries,
    check_send_batch,
    failed_entry,
    sent_entry,
)
from penstock.sqs.messages.extensions import NO_EXTENSIONS
from penstock.sqs.messages.outgoing import OutgoingMessage, QueueTraits, check_message
from penstock.sqs.refusals import bad_receipt_handle
from penstock.sqs.shapes.batches import DeleteMessageBatchRequestEntry, SendMessageBatchRequestEntry
from penstock.sqs.shapes.messages import MessageAttributeValue, SendMessageRequest

STANDARD = QueueTraits(False, False, 1_048_576)
FIFO = QueueTraits(True, False, 1_048_576)
FIFO_BY_CONTENT = QueueTraits(True, True, 1_048_576)
TEXT = MessageAttributeValue(data_type="String", string_value="v")


def send(
    traits: QueueTraits = STANDARD, compatibility: Compatibility = STRICT, **members: object
) -> OutgoingMessage:
    members.setdefault("message_body", "message")
    return check_message(SendMessageRequest(**members), traits, compatibility)  # type: ignore[arg-type]  # as the caller names them


def refused(traits: QueueTraits = STANDARD, **members: object) -> SqsError:
    with pytest.raises(SqsError) as caught:
        send(traits, STRICT, **members)
    return caught.value


def entry(entry_id: str = "id_1", **members: object) -> SendMessageBatchRequestEntry:
    members.setdefault("message_body", "b")
    return SendMessageBatchRequestEntry(id=entry_id, **members)  # type: ignore[arg-type]  # as the caller names them


def batch_refused(*entries: SendMessageBatchRequestEntry, traits: QueueTraits = STANDARD) -> SqsError:
    with pytest.raises(SqsError) as caught:
        check_send_batch(entries, traits, STRICT)
    return caught.value


def batch(*entries: SendMessageBatchRequestEntry, traits: QueueTraits = STANDARD) -> CheckedBatch:
    return check_send_batch(entries, traits, STRICT)


# --- one message --------------------------------------------------------------------------------------------


def test_a_plain_message() -> None:
    message = send()
    assert (message.body, message.size) == (b"message", 7)
    assert message.body_md5 == "78e731027d8fd50ed642340b7c9a63b3"
    assert (message.attributes_md5, message.system_attributes_md5) == (None, None)
    assert (message.delay_seconds, message.group_id, message.deduplication_id) == (None, None, None)


def test_exactly_the_limit_is_allowed() -> None:
    small = QueueTraits(False, False, 1024)
    attributes = {"n": MessageAttributeValue(data_type="String", string_value="v" * 17)}
    assert send(small, message_body="x" * 1000, message_attributes=attributes).size == 1024
    error = refused(small, message_body="x" * 1001, message_attributes=attributes)
    assert error.kind is ErrorKind.INVALID_PARAMETER_VALUE
    assert (
        error.message
        == "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
    )
    assert refused(message_body="é" * 524_289).message == (
        "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."
    )


def test_an_empty_body_is_missing() -> None:
    error = refused(message_body="")
    assert (error.query_code, error.message) == (
        "MissingParameter",
        "The request must contain the parameter MessageBody.",
    )


def test_bad_characters() -> None:
    error = refused(message_body="a\x00b")
    assert error.kind is ErrorKind.INVALID_MESSAGE_CONTENTS
    assert error.message == (
        "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | "
        "#xE000 to #xFFFD | #x10000 to #x10FFFF"
    )


def test_delays() -> None:
    assert send(delay_seconds=0).delay_seconds == 0
    assert (
        send(FIFO, delay_seconds=0, message_group_id="g", message_deduplication_id="d").delay_seconds is None
    )
    assert refused(FIFO, delay_seconds=2, message_group_id="g", message_deduplication_id="d").message == (
        "Value 2 for parameter DelaySeconds is invalid. "
        "Reason: The request include parameter that is not valid for this queue type."
    )


def test_groups_and_deduplication_ids() -> None:
    assert send(message_group_id="tenant").group_id == "tenant"
    assert refused(message_deduplication_id="d").message == (
        "Value d for parameter MessageDeduplicationId is invalid. "
        "Reason: The request include parameter that is not valid for this queue type."
    )
    error = refused(FIFO, message_deduplication_id="d")
    assert (error.query_code, error.message) == (
        "MissingParameter",
        "The request must contain the parameter MessageGroupId.",
    )
    error = refused(FIFO, message_group_id="g")
    assert (error.query_code, error.message) == (
        "InvalidParameterValue",
        (
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided "
            "explicitly"
        ),
    )
    by_content = send(FIFO_BY_CONTENT, message_group_id="g")
    assert by_content.deduplication_id == hashlib.sha256(b"message").hexdigest()
    assert send(FIFO_BY_CONTENT, message_group_id="g", message_deduplication_id="d").deduplication_id == "d"


def test_the_trace_header_comes_from_the_request_unless_the_message_has_its_own() -> None:
    own = MessageAttributeValue(data_type="String", string_value="Root=own")
    request = SendMessageRequest(message_body="b")
    message = check_message(request, STANDARD, STRICT, "Root=header")
    assert message.system == {"AWSTraceHeader": "Root=header"}
    assert message.system_attributes_md5 is None
    request = SendMessageRequest(message_body="b", message_system_attributes={"AWSTraceHeader": own})
    message = check_message(request, STANDARD, STRICT, "Root=header")
    assert message.system == {"AWSTraceHeader": "Root=own"}
    assert message.system_attributes_md5 is not None
    assert message.size == 1


def test_extensions_are_ordinary_attributes_that_an_extended_server_acts_on() -> None:
    attributes = {
        "Penstock.Priority": MessageAttributeValue(data_type="Number", string_value="9"),
        "Penstock.TimeToLiveSeconds": MessageAttributeValue(data_type="Number", string_value="60"),
        "Penstock.TimestampMicroseconds": MessageAttributeValue(
            data_type="Number", string_value="1700000000000001"
        ),
        "Penstock.Session": MessageAttributeValue(data_type="String", string_value="till 4"),
    }
    wanted = (9, 60_000, 1_700_000_000_000_001, "till 4")
    assert send(compatibility=EXTENDED, message_attributes=attributes).extensions == wanted
    assert send(compatibility=STRICT, message_attributes=attributes).extensions == NO_EXTENSIONS
    assert send(compatibility=EXTENDED, message_attributes={"a": TEXT}).extensions == NO_EXTENSIONS
    bad = {"Penstock.Priority": MessageAttributeValue(data_type="Number", string_value="10")}
    with pytest.raises(SqsError, match="Must be an integer from 0 to 9"):
        send(compatibility=EXTENDED, message_attributes=bad)


# --- batches ------------------------------------------------------------------------------------------------


def test_a_batch_must_have_entries() -> None:
    error = batch_refused()
    assert error.query_code == "AWS.SimpleQueueService.EmptyBatchRequest"
    assert error.message == "There should be at least one SendMessageBatchRequestEntry in the request."
    with pytest.raises(SqsError, match="at least one DeleteMessageBatchRequestEntry in"):
        check_entries("DeleteMessageBatch", [])


def test_a_batch_has_at_most_ten_entries() -> None:
    error = batch_refused(*[entry(f"id_{index}") for index in range(11)])
    assert error.query_code == "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"
    assert error.message == "Maximum number of entries per request are 10. You have sent 11."


@pytest.mark.parametrize("bad", ["", "invalid:id", "testLongId" * 10, "a b", "é"])
def test_a_bad_entry_id(bad: str) -> None:
    error = batch_refused(entry(), entry(bad))
    assert error.query_code == "AWS.SimpleQueueService.InvalidBatchEntryId"
    assert error.message == (
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
        "It can be at most 80 letters long."
    )


def test_repeated_ids() -> None:
    error = batch_refused(entry("id_1"), entry("id_2"), entry("id_2"), entry("id_1"))
    assert error.query_code == "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"
    assert error.message == "Id id_2 repeated."


def test_a_batch_over_its_size_whatever_the_queue_allows() -> None:
    halves = [entry("a", message_body="x" * 524_288), entry("b", message_body="x" * 524_289)]
    error = batch_refused(*halves, traits=QueueTraits(False, False, 1024))
    assert error.query_code == "AWS.SimpleQueueService.BatchRequestTooLong"
    assert error.message == "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."
    assert not batch(entry("a", message_body="x" * 524_288), entry("b", message_body="x" * 524_288)).failed


def test_fifo_batches_need_groups_and_ids_in_every_entry() -> None:
    good = entry("a", message_group_id="g", message_deduplication_id="d")
    error = batch_refused(good, entry("b", message_deduplication_id="d"), traits=FIFO)
    assert (error.query_code, error.message) == (
        "InvalidParameterValue",
        "The request must contain the parameter MessageGroupId.",
    )
    error = batch_refused(good, entry("b", message_group_id="g"), traits=FIFO)
    assert error.query_code == "InvalidParameterValue"
    assert error.message.startswith("The queue should either have ContentBasedDeduplication enabled")
    assert len(batch(good, entry("b", message_group_id="g"), traits=FIFO_BY_CONTENT).messages) == 2


def test_the_checks_come_in_the_services_order() -> None:
    """Each request is wrong in two ways; the earlier check wins."""
    many = [entry("bad id") for _ in range(11)]
    assert batch_refused(*many).kind is ErrorKind.TOO_MANY_ENTRIES_IN_BATCH_REQUEST
    assert batch_refused(entry("a"), entry("a"), entry("!")).kind is ErrorKind.INVALID_BATCH_ENTRY_ID
    long = "x" * 1_048_577
    repeated = (entry("a", message_body=long), entry("a"))
    assert batch_refused(*repeated).kind is ErrorKind.BATCH_ENTRY_IDS_NOT_DISTINCT
    assert batch_refused(entry("a", message_body=long), traits=FIFO).kind is ErrorKind.BATCH_REQUEST_TOO_LONG
    assert "MessageGroupId" in batch_refused(entry("a"), traits=FIFO).message


def test_entries_that_fail_alone() -> None:
    bad_attribute = {"x": MessageAttributeValue(data_type="Odd", string_value="v")}
    checked = batch(
        entry("good"),
        entry("long", message_body="x" * 1025),
        entry("characters", message_body="\x00"),
        entry("delay", delay_seconds=901),
        entry("kind", message_deduplication_id="d"),
        entry("empty", message_body=""),
        entry("attribute", message_attributes=bad_attribute),
        traits=QueueTraits(False, False, 1024),
    )
    assert [name for name, _ in checked.messages] == ["good"]
    assert [(failed.id, failed.code, failed.sender_fault) for failed in checked.failed] == [
        ("long", "InvalidParameterValue", True),
        ("characters", "InvalidMessageContents", True),
        ("delay", "InvalidParameterValue", True),
        ("kind", "InvalidParameterValue", True),
        ("empty", "MissingParameter", True),
        ("attribute", "InvalidParameterValue", True),
    ]
    assert checked.failed[0].message == (
        "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."
    )
    assert checked.failed[3].message == "The request include parameter that is not valid for this queue type"


def test_a_fifo_entry_with_a_delay_fails_alone() -> None:
    checked = batch(entry("a", message_group_id="g", delay_seconds=1), traits=FIFO_BY_CONTENT)
    assert [failed.message for failed in checked.failed] == [
        "The request include parameter that is not valid for this queue type"
    ]


def test_entries_of_the_answer() -> None:
    failed = failed_entry("a", bad_receipt_handle("x"))
    assert (failed.code, failed.sender_fault) == ("ReceiptHandleIsInvalid", True)
    assert failed.message == 'The input receipt handle "x" is not a valid receipt handle.'
    sent = sent_entry("a", send(), "message-id", None)
    assert (sent.id, sent.message_id, sent.md5_of_message_body) == (
        "a",
        "message-id",
        "78e731027d8fd50ed642340b7c9a63b3",
    )
    check_entries("DeleteMessageBatch", [DeleteMessageBatchRequestEntry(id="a", receipt_handle="r")])
