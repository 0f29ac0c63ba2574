"""CreateQueue and DeleteQueue: one queue of a name, whoever asks, however often, and whatever was interrupted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.frontend.actions.create_queue import create_queue
from penstock.frontend.actions.delete_queue import delete_queue
from penstock.frontend.actions.get_queue_url import get_queue_url
from penstock.frontend.actions.queue_attributes import get_queue_attributes
from penstock.frontend.actions.queue_tags import list_queue_tags
from penstock.model.limits import SECOND_MS
from penstock.sqs.compatibility import STRICT
from penstock.sqs.errors import SqsError
from penstock.steps.step import Ask, Put
from penstock.wire import messages
from tests.frontend.harness import FrontEnd, Running

OTHER = "111122223333"


def create(front: FrontEnd, name: str = "orders", **attributes: str) -> str:
    return front.call(create_queue, "CreateQueue", QueueName=name, Attributes=attributes).queue_url


def refused(front: FrontEnd, name: str = "orders", **attributes: str) -> SqsError:
    return front.refuse(create_queue, "CreateQueue", QueueName=name, Attributes=attributes)


def delete(front: FrontEnd, name: str = "orders") -> None:
    front.call(delete_queue, "DeleteQueue", QueueUrl=front.url(name))


def attributes(front: FrontEnd, name: str = "orders") -> dict[str, str]:
    result = front.call(
        get_queue_attributes, "GetQueueAttributes", QueueUrl=front.url(name), AttributeNames=["All"]
    )
    return result.attributes


def redrive(front: FrontEnd, target: str, count: int = 3) -> str:
    return json.dumps({"deadLetterTargetArn": front.arn(target), "maxReceiveCount": count})


def stopped_before_the_metadata(front: FrontEnd, **members: Any) -> None:
    """A CreateQueue whose process dies when the engine has the queue and the metadata does not."""
    running = front.begin(create_queue, "CreateQueue", QueueName="orders", **members)
    for _ in range(10):
        if isinstance(running.pending, Put):
            break
        running.step()
    assert isinstance(running.pending, Put)
    running.stop()


@pytest.mark.parametrize("ordering", ["clock", "causal"])
def test_a_fifo_queue_may_be_ordered_by_time(ordering: str) -> None:
    front = FrontEnd()
    asked = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "Penstock.Ordering": ordering}
    url = create(front, "orders.fifo", **asked)
    assert create(front, "orders.fifo", **asked) == url
    found = attributes(front, "orders.fifo")
    assert {name: found[name] for name in asked} == asked
    assert "FifoQueue" not in attributes_of_standard(front, ordering)


def attributes_of_standard(front: FrontEnd, ordering: str) -> dict[str, str]:
    create(front, "standard", **{"Penstock.Ordering": ordering})
    return attributes(front, "standard")


def test_a_new_queue_and_the_same_again() -> None:
    front = FrontEnd()
    url = create(front, VisibilityTimeout="60", ReceiveMessageWaitTimeSeconds="5")
    assert url == front.url("orders")
    assert create(front, VisibilityTimeout="60") == url
    assert create(front, ReceiveMessageWaitTimeSeconds="5") == url
    assert create(front) == url
    assert front.node.show("orders").settings.visibility_timeout_ms == 60_000
    shown = attributes(front)
    assert (shown["VisibilityTimeout"], shown["ReceiveMessageWaitTimeSeconds"]) == ("60", "5")
    assert shown["MaximumMessageSize"] == "1048576"


@pytest.mark.parametrize("name", ["DelaySeconds", "ReceiveMessageWaitTimeSeconds"])
def test_another_value_is_another_queue(name: str) -> None:
    front = FrontEnd()
    create(front)
    error = refused(front, **{name: "7"})
    assert error.query_code == "QueueAlreadyExists"
    assert error.message == (
        f"A queue already exists with the same name and a different value for attribute {name}"
    )


@pytest.mark.parametrize("name", ["a b", "a/b", "orders.fifo", "x" * 81, "111122223333.eu-west-1.orders"])
def test_bad_names(name: str) -> None:
    front = FrontEnd()
    create(front.as_caller("111122223333", "eu-west-1"))
    assert refused(front, name).query_code == "InvalidParameterValue"


def test_fifo() -> None:
    front = FrontEnd()
    create(front, "a.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    assert create(front, "a.fifo") == front.url("a.fifo")  # its name says what it is
    assert front.node.show("a.fifo").settings.fifo
    assert refused(front, "a", FifoQueue="true").query_code == "InvalidParameterValue"
    assert refused(front, "b", FifoQueue="false").message == "Unknown Attribute FifoQueue."


def test_tags() -> None:
    front = FrontEnd()
    front.call(create_queue, "CreateQueue", QueueName="orders", tags={"team": "a"})
    assert front.call(list_queue_tags, "ListQueueTags", QueueUrl="orders").tags == {"team": "a"}
    error = front.refuse(create_queue, "CreateQueue", QueueName="more", tags={str(n): "" for n in range(51)})
    assert error.message == "Too many tags added for queue more."
    assert front.node.fail(messages.DescribeQueue("more")).code == "queue-not-found"


# --- dead-letter queues ---------------------------------------------------------------------------------------


def test_a_dead_letter_queue_must_exist_and_fit() -> None:
    front = FrontEnd()
    create(front, "dead")
    create(front, "dead.fifo", FifoQueue="true")
    create(front, RedrivePolicy=redrive(front, "dead"))
    assert front.node.show("orders").settings.dead_letter_queue == "dead"
    assert create(front, RedrivePolicy=redrive(front, "dead")) == front.url("orders")
    assert "RedrivePolicy" in refused(front, RedrivePolicy=redrive(front, "dead", 9)).message
    for target, reason in [
        ("none", "Dead letter target does not exist."),
        ("dead.fifo", "Dead-letter queue must be same type of queue as the source."),
        ("self", "A queue can not be its own dead-letter queue."),
    ]:
        error = refused(front, "self", RedrivePolicy=redrive(front, target))
        assert (error.query_code, error.message.partition("Reason: ")[2]) == ("InvalidParameterValue", reason)


def test_a_dead_letter_queue_has_the_same_owner_and_region() -> None:
    front = FrontEnd()
    for account, region, reason in [
        (OTHER, front.region, "Dead-letter target owner should be same as the source."),
        (front.account, "eu-west-1", "Dead-letter target should be in same region as the source."),
    ]:
        other = front.as_caller(account, region)
        create(other, "dead")
        error = refused(front, RedrivePolicy=redrive(other, "dead"))
        assert error.message.endswith(reason)


def test_a_dead_letter_queue_may_say_no() -> None:
    front = FrontEnd()
    allow = {"redrivePermission": "byQueue", "sourceQueueArns": [front.arn("friend")]}
    create(front, "dead", RedriveAllowPolicy=json.dumps(allow))
    create(front, "friend", RedrivePolicy=redrive(front, "dead"))
    assert "RedriveAllowPolicy" in refused(front, RedrivePolicy=redrive(front, "dead")).message


def test_what_contradicts_is_refused() -> None:
    front = FrontEnd()
    error = refused(front, DelaySeconds="900", MessageRetentionPeriod="60")
    assert error.query_code == "InvalidAttributeValue"
    assert refused(front, **{"Penstock.OverflowPolicy": "dead-letter"}).query_code == "InvalidAttributeValue"


# --- interrupted, and at the same time ------------------------------------------------------------------------


def test_interrupted_between_the_writes() -> None:
    front = FrontEnd()
    asked = {"ReceiveMessageWaitTimeSeconds": "20", "MaximumMessageSize": "2048", "VisibilityTimeout": "9"}
    stopped_before_the_metadata(front, Attributes=asked, tags={"a": "b"})
    assert create(front) == front.url("orders")  # somebody who asks for nothing takes nothing from the first
    front.call(create_queue, "CreateQueue", QueueName="orders", Attributes=asked, tags={"a": "b"})
    assert asked.items() <= attributes(front).items()
    assert front.call(list_queue_tags, "ListQueueTags", QueueUrl="orders").tags == {"a": "b"}
    assert refused(front, ReceiveMessageWaitTimeSeconds="1").query_code == "QueueAlreadyExists"


def test_interrupted_and_another_comes_with_other_settings_of_the_engine() -> None:
    front = FrontEnd()
    stopped_before_the_metadata(front, Attributes={"VisibilityTimeout": "9"})
    assert "VisibilityTimeout" in refused(front, VisibilityTimeout="8").message


def test_interrupted_with_metadata_of_an_earlier_queue() -> None:
    front = FrontEnd()
    create(front, ReceiveMessageWaitTimeSeconds="3")
    front.node.call(messages.DeleteQueue("orders"))  # as an interrupted DeleteQueue leaves it
    front.node.advance(2 * SECOND_MS)
    stopped_before_the_metadata(front, Attributes={"ReceiveMessageWaitTimeSeconds": "20"})
    assert attributes(front)["ReceiveMessageWaitTimeSeconds"] == "0"  # the old entry is another queue's
    create(front, ReceiveMessageWaitTimeSeconds="20")
    assert attributes(front)["ReceiveMessageWaitTimeSeconds"] == "20"


def test_a_queue_of_the_native_protocol_is_adopted() -> None:
    front = FrontEnd()
    front.node.create("orders", visibility_timeout_ms=9_000, deduplication_window_ms=1_000)
    assert "VisibilityTimeout" in refused(front, VisibilityTimeout="8").message
    create(front, VisibilityTimeout="9", ReceiveMessageWaitTimeSeconds="4", MaximumMessageSize="1048576")
    assert attributes(front)["ReceiveMessageWaitTimeSeconds"] == "4"
    assert front.node.show("orders").settings.deduplication_window_ms == 1_000


@pytest.mark.parametrize("name", ["VisibilityTimeout", "ReceiveMessageWaitTimeSeconds"])
@pytest.mark.parametrize("deaf", [False, True])
def test_two_at_the_same_time(name: str, deaf: bool) -> None:
    """Step by step in turn: equal requests both succeed, of different ones exactly one does."""
    for values, winners in [(("5", "5"), 2), (("5", "6"), 1)]:
        first = FrontEnd()
        second = FrontEnd(first.world, deaf=deaf)
        begun: list[Running[Any]] = [
            front.begin(create_queue, "CreateQueue", QueueName="orders", Attributes={name: value})
            for front, value in zip((first, second), values, strict=True)
        ]
        refusals: list[str] = []
        for _ in range(20):
            for running in list(begun):
                if running.finished:
                    continue
                try:
                    running.step()
                except SqsError as error:
                    begun.remove(running)
                    refusals.append(error.query_code)
        assert all(running.finished for running in begun)
        assert (len(begun), refusals) == (winners, ["QueueAlreadyExists"] * (2 - winners))


# --- deleting -------------------------------------------------------------------------------------------------


def test_deleted_and_made_again() -> None:
    front = FrontEnd()
    create(front, ReceiveMessageWaitTimeSeconds="3")
    delete(front)
    assert "queues/orders" not in front.world.entries
    assert front.refuse(get_queue_url, "GetQueueUrl", QueueName="orders").query_code.endswith(
        "NonExistentQueue"
    )
    create(front, ReceiveMessageWaitTimeSeconds="4")
    assert attributes(front)["ReceiveMessageWaitTimeSeconds"] == "4"


def test_strict_makes_names_rest() -> None:
    front = FrontEnd(compatibility=STRICT)
    create(front)
    delete(front)
    assert refused(front).query_code == "AWS.SimpleQueueService.QueueDeletedRecently"
    front.node.advance(59_999)
    assert refused(front).status == 400
    front.node.advance(1)
    create(front)
    create(front, "other")
    delete(front, "other")
    assert [key for key in front.world.entries if key.startswith("deleted/")] == ["deleted/other"]


def test_an_interrupted_delete_is_healed_by_the_next_create() -> None:
    front = FrontEnd()
    create(front, ReceiveMessageWaitTimeSeconds="3")
    running = front.begin(delete_queue, "DeleteQueue", QueueUrl="orders")
    while isinstance(running.pending, Ask):
        running.step()
    running.stop()
    assert "queues/orders" in front.world.entries
    create(front)
    assert attributes(front)["ReceiveMessageWaitTimeSeconds"] == "0"


def test_a_late_delete_of_metadata_spares_the_next_queue() -> None:
    front = FrontEnd()
    create(front)
    running = front.begin(delete_queue, "DeleteQueue", QueueUrl="orders")
    while isinstance(running.pending, Ask):
        running.step()
    create(front, ReceiveMessageWaitTimeSeconds="9")
    running.run()
    assert attributes(front)["ReceiveMessageWaitTimeSeconds"] == "9"


def test_accounts_and_regions_side_by_side() -> None:
    front = FrontEnd()
    fronts = [front, front.as_caller(OTHER), front.as_caller(OTHER, "eu-west-1")]
    for number, each in enumerate(fronts):
        create(each, DelaySeconds=str(number))
    assert [attributes(each)["DelaySeconds"] for each in fronts] == ["0", "1", "2"]
    assert [attributes(each)["QueueArn"] for each in fronts] == [each.arn("orders") for each in fronts]
    url = front.call(get_queue_url, "GetQueueUrl", QueueName="orders", QueueOwnerAWSAccountId=OTHER).queue_url
    assert url == fronts[1].url("orders")
    bad = front.refuse(get_queue_url, "GetQueueUrl", QueueName="orders", QueueOwnerAWSAccountId="12")
    assert bad.query_code == "InvalidParameterValue"
    delete(fronts[1])
    assert create(fronts[0]) == front.url("orders")


def test_what_was_made_elsewhere_is_known_at_once() -> None:
    here = FrontEnd()
    elsewhere = FrontEnd(here.world, deaf=True)
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    here.call(create_queue, "CreateQueue", QueueName="made.fifo", Attributes=attributes, tags={"a": "1"})
    queue = elsewhere.run(elsewhere.queues.resolve("made.fifo", elsewhere.node.now_ms))
    assert queue.traits.content_based_deduplication
    assert queue.tags == {"a": "1"}


# --- a queue that is not finished is no target ----------------------------------------------------------------

DENY = {"RedriveAllowPolicy": json.dumps({"redrivePermission": "denyAll"})}


def step_until_metadata(front: FrontEnd, running: Running[Any], key: str) -> None:
    """Up to the write of a queue's metadata, which is not carried out yet."""
    for _ in range(20):
        if isinstance(running.pending, Put) and running.pending.key == key:
            return
        running.step()
    raise AssertionError(f"nothing is written under {key}")


@pytest.mark.parametrize("deaf", [False, True])
def test_a_queue_whose_redrive_allow_policy_is_not_written_yet_takes_from_nobody(deaf: bool) -> None:
    front = FrontEnd()
    other = FrontEnd(front.world, deaf=deaf)
    running = front.begin(create_queue, "CreateQueue", QueueName="vip", Attributes=DENY)
    step_until_metadata(front, running, "queues/vip")
    assert "RedriveAllowPolicy" in refused(other, "mal", RedrivePolicy=redrive(other, "vip")).message
    running.run()
    assert "RedriveAllowPolicy" in refused(other, "mal", RedrivePolicy=redrive(other, "vip")).message
    assert not [key for key in front.world.entries if key.startswith("making/")]


def test_a_queue_that_was_left_unfinished_takes_messages_after_a_minute() -> None:
    front = FrontEnd()
    running = front.begin(create_queue, "CreateQueue", QueueName="vip", Attributes=DENY)
    step_until_metadata(front, running, "queues/vip")
    running.stop()
    front.node.advance(59 * SECOND_MS)
    refused(front, "mal", RedrivePolicy=redrive(front, "vip"))
    front.node.advance(2 * SECOND_MS)
    create(front, "mal", RedrivePolicy=redrive(front, "vip"))
