"""Queue attributes: what may be set, what is shown, what idempotent creation compares, what the engine is told."""

from collections.abc import Callable

import msgspec
import pytest

from penstock.model.settings import QueueSettings
from penstock.model.settings_checks import check_settings
from penstock.sqs.attributes.changes import changed_attributes, check_same_attributes, created_attributes
from penstock.sqs.attributes.queue_attributes import QueueAttributes, extended_settings
from penstock.sqs.attributes.queue_settings import ENVELOPE_BYTES, attributes_of, settings_of
from penstock.sqs.attributes.redrive import (
    RedriveAllowPolicy,
    RedrivePolicy,
    dead_letter_target_missing,
    parse_redrive_allow_policy,
    parse_redrive_policy,
)
from penstock.sqs.attributes.texts import QueueFacts, attribute_texts
from penstock.sqs.compatibility import EXTENDED, STRICT
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.names import QueueArn

ARN = "arn:aws:sqs:us-east-1:000000000000:dead"
STANDARD = QueueAttributes()
FIFO = QueueAttributes(fifo_queue=True)
FACTS = QueueFacts(
    arn=QueueArn("us-east-1", "000000000000", "orders"),
    created_s=1700000000,
    last_modified_s=1700000001,
    messages=1,
    messages_not_visible=2,
    messages_delayed=3,
)
POLICY = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":"*"}]}'


def refused(check: Callable[[], object]) -> SqsError:
    with pytest.raises(SqsError) as caught:
        check()
    return caught.value


def set_refused(current: QueueAttributes, **given: str) -> SqsError:
    return refused(lambda: changed_attributes(current, given, STRICT))


def shown(attributes: QueueAttributes, *names: str) -> dict[str, str]:
    return attribute_texts(attributes, FACTS, names, STRICT)


# --- ranges -------------------------------------------------------------------------------------------------

RANGES = [
    ("VisibilityTimeout", 0, 43200),
    ("DelaySeconds", 0, 900),
    ("MaximumMessageSize", 1024, 1048576),
    ("MessageRetentionPeriod", 60, 1209600),
    ("ReceiveMessageWaitTimeSeconds", 0, 20),
    ("KmsDataKeyReusePeriodSeconds", 60, 86400),
]


@pytest.mark.parametrize(("name", "low", "high"), RANGES)
def test_numbers_and_their_ranges(name: str, low: int, high: int) -> None:
    for good in (low, high):
        assert shown(changed_attributes(STANDARD, {name: str(good)}, STRICT), name) == {name: str(good)}
    for bad in (str(low - 1), str(high + 1), "", "x", "1.5", " 60", "٣", "9" * 30, "-0", "1e3"):
        error = set_refused(STANDARD, **{name: bad})
        assert error.kind is ErrorKind.INVALID_ATTRIBUTE_VALUE
        assert error.message == f"Invalid value for the parameter {name}."


def test_an_extended_server_lifts_the_walls() -> None:
    given = {"VisibilityTimeout": "604800", "DelaySeconds": "86400", "Penstock.MaximumMessages": "10"}
    attributes = changed_attributes(STANDARD, given, EXTENDED)
    assert (attributes.visibility_timeout, attributes.delay_seconds) == (604800, 86400)
    assert extended_settings(attributes)["max_messages"] == 10
    assert attribute_texts(attributes, FACTS, ["Penstock.MaximumMessages"], EXTENDED) == {
        "Penstock.MaximumMessages": "10"
    }
    unlimited = changed_attributes(attributes, {"Penstock.MaximumMessages": ""}, EXTENDED)
    assert extended_settings(unlimited)["max_messages"] is None
    assert set_refused(STANDARD, **{"Penstock.MaximumMessages": "10"}).message == (
        "Unknown Attribute Penstock.MaximumMessages."
    )
    overflow = changed_attributes(STANDARD, {"Penstock.OverflowPolicy": "drop-oldest"}, EXTENDED)
    assert extended_settings(overflow)["overflow"] == "drop-oldest"
    error = refused(lambda: changed_attributes(STANDARD, {"Penstock.OverflowPolicy": "x"}, EXTENDED))
    assert error.kind is ErrorKind.INVALID_ATTRIBUTE_VALUE


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Foobar", "", "All", "QueueArn", "CreatedTimestamp", "ApproximateNumberOfMessages"]
)
def test_names_that_cannot_be_set(name: str) -> None:
    error = set_refused(STANDARD, **{name: "1"})
    assert (error.kind, error.message) == (ErrorKind.INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name}.")


@pytest.mark.parametrize("name", ["Foobar", ""])
def test_names_that_cannot_be_asked_for(name: str) -> None:
    error = refused(lambda: shown(STANDARD, "All", name))
    assert (error.kind, error.message) == (ErrorKind.INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name}.")


def test_all_attributes_of_a_standard_queue() -> None:
    assert shown(STANDARD, "All") == {
        "QueueArn": "arn:aws:sqs:us-east-1:000000000000:orders",
        "ApproximateNumberOfMessages": "1",
        "ApproximateNumberOfMessagesNotVisible": "2",
        "ApproximateNumberOfMessagesDelayed": "3",
        "CreatedTimestamp": "1700000000",
        "LastModifiedTimestamp": "1700000001",
        "VisibilityTimeout": "30",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "DelaySeconds": "0",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
    }
    assert attribute_texts(STANDARD, FACTS, ["All"], EXTENDED) == shown(STANDARD, "All")


def test_all_attributes_of_a_fifo_queue() -> None:
    extra = {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
    }
    assert shown(FIFO, "All") == {**shown(STANDARD, "All"), **extra}


def test_only_what_was_asked_for_and_set() -> None:
    assert shown(STANDARD) == {}
    assert shown(STANDARD, "Policy", "RedrivePolicy", "KmsMasterKeyId", "FifoQueue") == {}
    assert shown(STANDARD, "DelaySeconds", "Policy") == {"DelaySeconds": "0"}


# --- encryption ---------------------------------------------------------------------------------------------


def test_a_key_switches_the_other_encryption_off_for_good() -> None:
    keyed = changed_attributes(
        STANDARD, {"KmsMasterKeyId": "testKeyId", "KmsDataKeyReusePeriodSeconds": "6000"}, STRICT
    )
    names = ("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled")
    assert shown(keyed, *names) == {
        "KmsMasterKeyId": "testKeyId",
        "KmsDataKeyReusePeriodSeconds": "6000",
        "SqsManagedSseEnabled": "false",
    }
    cleared = changed_attributes(keyed, {"KmsMasterKeyId": "", "KmsDataKeyReusePeriodSeconds": "300"}, STRICT)
    assert shown(cleared, *names) == {"SqsManagedSseEnabled": "false"}
    enabled = changed_attributes(keyed, {"SqsManagedSseEnabled": "true"}, STRICT)
    assert enabled.kms_master_key_id is None


def test_both_encryptions_at_once() -> None:
    error = set_refused(STANDARD, KmsMasterKeyId="k", SqsManagedSseEnabled="true")
    assert error.kind is ErrorKind.INVALID_ATTRIBUTE_NAME
    assert error.message == (
        "You can use one type of server-side encryption (SSE) at one time. "
        "You can either enable KMS SSE or SQS SSE."
    )
    changed_attributes(STANDARD, {"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "false"}, STRICT)


# --- FIFO ---------------------------------------------------------------------------------------------------


def test_creating_fifo_queues() -> None:
    given = {"FifoQueue": "True", "ContentBasedDeduplication": "True", "DeduplicationScope": "messageGroup"}
    attributes = created_attributes("a.fifo", given, STRICT)
    assert attributes.fifo_queue
    assert attributes.content_based_deduplication
    assert attributes.deduplication_scope == "messageGroup"


@pytest.mark.parametrize(
    ("name", "given", "code"),
    [
        ("a", {"FifoQueue": "true"}, "InvalidParameterValue"),
        ("a.fifo", {}, "InvalidParameterValue"),
        ("a.fifo", {"FifoQueue": "false"}, "InvalidParameterValue"),
        ("a/b", {}, "InvalidParameterValue"),
        ("a", {"FifoQueue": "false"}, "InvalidAttributeName"),
        ("a", {"ContentBasedDeduplication": "false"}, "InvalidAttributeName"),
        ("a", {"DeduplicationScope": "queue"}, "InvalidAttributeName"),
        ("a.fifo", {"FifoQueue": "true", "DeduplicationScope": "x"}, "InvalidAttributeValue"),
        ("a.fifo", {"FifoQueue": "true", "ContentBasedDeduplication": "x"}, "InvalidAttributeValue"),
        (
            "a.fifo",
            {"FifoQueue": "true", "FifoThroughputLimit": "perMessageGroupId"},
            "InvalidAttributeValue",
        ),
    ],
)
def test_queues_that_cannot_be_created(name: str, given: dict[str, str], code: str) -> None:
    assert refused(lambda: created_attributes(name, given, STRICT)).query_code == code


def test_fifo_attributes_of_standard_queues() -> None:
    for value in ("true", "false"):
        assert set_refused(STANDARD, FifoQueue=value).message == "Unknown Attribute FifoQueue."
    for name in ("DeduplicationScope", "FifoThroughputLimit"):
        assert set_refused(STANDARD, **{name: "queue"}).message == (
            f"You can specify the {name} only when FifoQueue is set to true."
        )


def test_a_queue_keeps_its_kind() -> None:
    assert changed_attributes(FIFO, {"FifoQueue": "true"}, STRICT) == FIFO
    error = set_refused(FIFO, FifoQueue="false")
    assert error.kind is ErrorKind.INVALID_ATTRIBUTE_VALUE
    assert error.message == (
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."
    )


def test_high_throughput_can_be_switched_on_later() -> None:
    given = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
    attributes = changed_attributes(FIFO, given, STRICT)
    assert attributes.fifo_throughput_limit == "perMessageGroupId"
    set_refused(attributes, DeduplicationScope="queue")


# --- creating again -----------------------------------------------------------------------------------------


def test_creating_a_queue_again() -> None:
    current = changed_attributes(STANDARD, {"DelaySeconds": "5", "VisibilityTimeout": "10"}, STRICT)
    for given in ({}, {"DelaySeconds": "5"}, {"VisibilityTimeout": "10", "DelaySeconds": "5"}):
        check_same_attributes("orders", current, given, STRICT)
    error = refused(
        lambda: check_same_attributes(
            "orders", current, {"VisibilityTimeout": "10", "DelaySeconds": "6"}, STRICT
        )
    )
    assert error.query_code == "QueueAlreadyExists"
    assert error.message == (
        "A queue already exists with the same name and a different value for attribute DelaySeconds"
    )


def test_creating_a_fifo_queue_again() -> None:
    for given in ({}, {"FifoQueue": "true"}, {"FifoQueue": "true", "ContentBasedDeduplication": "false"}):
        check_same_attributes("a.fifo", FIFO, given, STRICT)
    given = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    error = refused(lambda: check_same_attributes("a.fifo", FIFO, given, STRICT))
    assert error.message.endswith("different value for attribute ContentBasedDeduplication")


# --- redrive ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", ["5", '"5"'])
def test_a_redrive_policy_is_returned_with_a_number(count: str) -> None:
    text = f'{{"maxReceiveCount": {count}, "deadLetterTargetArn": "{ARN}"}}'
    attributes = changed_attributes(STANDARD, {"RedrivePolicy": text}, STRICT)
    assert shown(attributes, "RedrivePolicy") == {
        "RedrivePolicy": f'{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":5}}'
    }
    assert attributes.redrive_policy is not None
    assert attributes.redrive_policy.target.name == "dead"
    assert changed_attributes(attributes, {"RedrivePolicy": ""}, STRICT) == STANDARD


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "Redrive policy does not contain mandatory attribute: maxReceiveCount."),
        (
            '{"maxReceiveCount": 1}',
            "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
        ),
        ("[]", "Redrive policy is not a valid JSON map."),
        ("nonsense", "Redrive policy is not a valid JSON map."),
        ("[" * 5000, "Redrive policy is not a valid JSON map."),
        (
            f'{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":"0"}}',
            "Invalid value for maxReceiveCount: 0, valid values are from 1 to 1000 both inclusive.",
        ),
        (
            f'{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":1001}}',
            "Invalid value for maxReceiveCount: 1001, valid values are from 1 to 1000 both inclusive.",
        ),
        (
            f'{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":true}}',
            "Invalid value for maxReceiveCount: true, valid values are from 1 to 1000 both inclusive.",
        ),
        (
            f'{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":1,"more":1}}',
            "Only following attributes are supported: [deadLetterTargetArn, maxReceiveCount].",
        ),
        ('{"deadLetterTargetArn":"dead","maxReceiveCount":1}', "Invalid value for deadLetterTargetArn."),
        ('{"deadLetterTargetArn":7,"maxReceiveCount":1}', "Invalid value for deadLetterTargetArn."),
    ],
)
def test_bad_redrive_policies(text: str, reason: str) -> None:
    error = refused(lambda: parse_redrive_policy(text))
    assert error.query_code == "InvalidParameterValue"
    assert error.message.startswith(f"Value {text[:1000]}")
    assert error.message.endswith(f" for parameter RedrivePolicy is invalid. Reason: {reason}")
    assert "Dead letter target does not exist." in dead_letter_target_missing(text).message


def test_who_may_use_a_dead_letter_queue() -> None:
    source, other = QueueArn("us-east-1", "000000000000", "a"), QueueArn("us-east-1", "000000000000", "b")
    by_queue = parse_redrive_allow_policy(f'{{"redrivePermission":"byQueue","sourceQueueArns":["{source}"]}}')
    assert by_queue.allows(source)
    assert not by_queue.allows(other)
    assert str(by_queue) == f'{{"redrivePermission":"byQueue","sourceQueueArns":["{source}"]}}'
    assert RedriveAllowPolicy("allowAll").allows(other)
    denied = parse_redrive_allow_policy('{"redrivePermission": "denyAll"}')
    assert not denied.allows(source)
    assert str(denied) == '{"redrivePermission":"denyAll"}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"redrivePermission":"some"}',
        '{"redrivePermission":["denyAll"]}',
        '{"redrivePermission":"byQueue"}',
        '{"redrivePermission":"byQueue","sourceQueueArns":[]}',
        '{"redrivePermission":"byQueue","sourceQueueArns":["x"]}',
        '{"redrivePermission":"byQueue","sourceQueueArns":"x"}',
        '{"redrivePermission":"allowAll","sourceQueueArns":["x"]}',
        '{"redrivePermission":"allowAll","x":1}',
        f'{{"redrivePermission":"byQueue","sourceQueueArns":{[f"{ARN}"] * 11}}}'.replace("'", '"'),
    ],
)
def test_bad_redrive_allow_policies(text: str) -> None:
    assert refused(lambda: parse_redrive_allow_policy(text)).query_code == "InvalidParameterValue"


def test_a_policy_is_returned_as_it_was_sent() -> None:
    attributes = changed_attributes(STANDARD, {"Policy": POLICY}, STRICT)
    assert shown(attributes, "Policy") == {"Policy": POLICY}
    assert changed_attributes(attributes, {"Policy": ""}, STRICT) == STANDARD
    assert set_refused(STANDARD, Policy="{}").message == "Invalid value for the parameter Policy."


# --- the engine ---------------------------------------------------------------------------------------------


def test_attributes_as_settings_and_back() -> None:
    attributes = QueueAttributes(
        visibility_timeout=5,
        delay_seconds=6,
        maximum_message_size=2048,
        message_retention_period=70,
        redrive_policy=RedrivePolicy(ARN, 3),
        policy=POLICY,
    )
    given = {
        "Penstock.MaximumMessages": "9",
        "Penstock.MaximumBytes": "10000",
        "Penstock.MaxGroups": "4",
        "Penstock.OverflowPolicy": "drop-oldest",
        "Penstock.DefaultTimeToLiveSeconds": "8",
    }
    attributes = changed_attributes(attributes, given, EXTENDED)
    settings = settings_of(attributes, "dead")
    assert settings == QueueSettings(
        visibility_timeout_ms=5000,
        delay_ms=6000,
        max_message_bytes=2048 + ENVELOPE_BYTES,
        retention_ms=70_000,
        max_receives=3,
        dead_letter_queue="dead",
        max_messages=9,
        max_bytes=10_000,
        max_groups=4,
        overflow="drop-oldest",
        default_ttl_ms=8000,
    )
    check_settings("orders", settings)
    assert attributes_of(settings, ARN, attributes) == attributes
    assert settings_of(FIFO, None).fifo
    assert attributes_of(settings_of(FIFO, None), None) == FIFO


def test_what_only_the_engine_knows_is_kept() -> None:
    current = QueueSettings(deduplication_window_ms=1000)
    assert settings_of(STANDARD, None, current).deduplication_window_ms == 1000
    native = QueueSettings(visibility_timeout_ms=1500, max_receives=5000, dead_letter_queue="dead")
    attributes = attributes_of(native, ARN)
    assert attributes.visibility_timeout == 1
    assert attributes.redrive_policy == RedrivePolicy(ARN, 1000)


# --- order and logs -----------------------------------------------------------------------------------------

ORDERED = {
    "Penstock.Ordering": "clock",
    "Penstock.Stamps": "producer",
    "Penstock.WindowMilliseconds": "250",
    "Penstock.MaximumUncertaintyMilliseconds": "20",
    "Penstock.WhenUncertain": "hold",
    "Penstock.IdleExpirySeconds": "3600",
}
COPIED = {
    "Penstock.Partitions": "4",
    "Penstock.Replicas": "3",
    "Penstock.Replication": "async",
    "Penstock.MinimumInSync": "2",
}
LOGGED = {"Penstock.Consumption": "both", "Penstock.RetainBytes": "1048576", "Penstock.Lifecycle": "true"}


@pytest.mark.parametrize(
    ("name", "kind"), [("orders", {}), ("orders.fifo", {"FifoQueue": "true"})], ids=["standard", "fifo"]
)
@pytest.mark.parametrize("given", [ORDERED, LOGGED, COPIED], ids=["order", "log", "copies"])
def test_order_and_log_go_to_the_engine_and_come_back(
    name: str, kind: dict[str, str], given: dict[str, str]
) -> None:
    created = created_attributes(name, {**kind, **given}, EXTENDED)
    settings = settings_of(created, None)
    check_settings(name, settings)
    assert settings.ordering == ("clock" if given is ORDERED else "fifo" if kind else "best-effort")
    again = attributes_of(settings, None, created)
    assert again == created
    assert given.items() <= attribute_texts(again, FACTS, ["All"], EXTENDED).items()
    check_same_attributes(name, again, {**kind, **given}, EXTENDED)


def test_the_order_of_a_queue_is_fixed_and_fits_its_kind() -> None:
    ordered = created_attributes("orders", ORDERED, EXTENDED)
    changed = changed_attributes(ordered, {"Penstock.WindowMilliseconds": "5"}, EXTENDED)
    assert extended_settings(changed)["window_ms"] == 5
    again = changed_attributes(ordered, {"Penstock.Ordering": "clock"}, EXTENDED)
    assert again == ordered
    for name, text in (("Penstock.Ordering", "causal"), ("Penstock.Consumption", "log")):
        error = refused(lambda given={name: text}: changed_attributes(ordered, given, EXTENDED))  # type: ignore[misc]  # a lambda with its own value
        assert "fixed" in error.message
    assert (
        "cannot have the order"
        in refused(lambda: created_attributes("orders", {"Penstock.Ordering": "fifo"}, EXTENDED)).message
    )
    assert refused(lambda: created_attributes("orders", ORDERED, STRICT)).kind == (
        ErrorKind.INVALID_ATTRIBUTE_NAME
    )


def test_what_waits_in_the_window_and_what_came_late_is_shown() -> None:
    facts = msgspec.structs.replace(FACTS, messages_held=4, messages_late=5)
    texts = attribute_texts(STANDARD, facts, ["All"], EXTENDED)
    assert texts["Penstock.ApproximateNumberOfMessagesHeld"] == "4"
    assert texts["Penstock.NumberOfMessagesLate"] == "5"
    assert "Penstock.NumberOfMessagesLate" not in attribute_texts(STANDARD, FACTS, ["All"], EXTENDED)
