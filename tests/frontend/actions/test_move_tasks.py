"""Message move tasks: starting, listing, cancelling, and the mover that carries them out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.frontend.actions.cancel_message_move_task import cancel_message_move_task
from penstock.frontend.actions.create_queue import create_queue
from penstock.frontend.actions.delete_queue import delete_queue
from penstock.frontend.actions.list_message_move_tasks import list_message_move_tasks
from penstock.frontend.actions.start_message_move_task import start_message_move_task
from penstock.frontend.move_tasks.mover import LATEST_MS, SOONEST_MS, Mover
from penstock.sqs.errors import SqsError
from penstock.sqs.shapes.moves import ListMessageMoveTasksResultEntry
from penstock.sqs.task_handle import encode_task_handle
from penstock.steps.step import Put
from penstock.wire import messages
from tests.frontend.harness import FrontEnd

OTHER = "111122223333"


class Site:
    """A source, its dead-letter queue with some dead letters, and a mover."""

    def __init__(self, dead_letters: int = 3, front: FrontEnd | None = None) -> None:
        self.front = front if front is not None else FrontEnd()
        self.node = self.front.node
        policy = {"deadLetterTargetArn": self.front.arn("dead"), "maxReceiveCount": 1}
        for name, attributes in [
            ("dead", {}),
            ("orders", {"RedrivePolicy": json.dumps(policy)}),
            ("elsewhere", {}),
        ]:
            self.front.call(create_queue, "CreateQueue", QueueName=name, Attributes=attributes)
        self.mover = Mover("first", self.front.cache)
        self.kill(dead_letters)

    def kill(self, count: int) -> None:
        """So many messages of `orders` become dead letters."""
        orders = self.queue_id("orders")
        for start in range(0, count, 1_000):
            self.node.send(orders, [b"%d" % n for n in range(start, min(count, start + 1_000))])
            self.node.call(messages.Release([self.node.receive(orders, 1_000).receipt()]))
            self.node.receive(orders, 1_000)

    def queue_id(self, name: str) -> int:
        return self.node.show(self.front.native(name)).queue_id

    def ready(self, name: str) -> int:
        return self.node.show(self.front.native(name)).statistics.ready

    def start(self, **members: Any) -> str:
        members = {"SourceArn": self.front.arn("dead"), **members}
        return self.front.call(start_message_move_task, "StartMessageMoveTask", **members).task_handle

    def refused(self, **members: Any) -> SqsError:
        members = {"SourceArn": self.front.arn("dead"), **members}
        return self.front.refuse(start_message_move_task, "StartMessageMoveTask", **members)

    def tasks(self, front: FrontEnd | None = None) -> list[ListMessageMoveTasksResultEntry]:
        members = {"SourceArn": self.front.arn("dead"), "MaxResults": 10}
        return (front or self.front).call(list_message_move_tasks, "ListMessageMoveTasks", **members).results

    def work(self, mover: Mover | None = None, front: FrontEnd | None = None) -> None:
        """What a timer does at this moment, until nothing is due."""
        mover = mover or self.mover
        for _ in range(1_000):
            due = mover.due(self.node.now_ms)
            if not due:
                return
            for native in due:
                (front or self.front).run(mover.move(native, self.node.now_ms))
        raise AssertionError("something is always due")

    def pass_time(self, milliseconds: int) -> None:
        """Lets the timer come as often as the mover asks for."""
        end = self.node.now_ms + milliseconds
        while True:
            self.work()
            pause_ms = self.mover.pause_ms(self.node.now_ms)
            if pause_ms is None or self.node.now_ms + pause_ms > end:
                break
            self.node.advance(pause_ms)
        self.node.advance(end - self.node.now_ms)


def test_dead_letters_go_back_to_where_they_died() -> None:
    site = Site()
    handle = site.start()
    (task,) = site.tasks()
    assert (task.status, task.task_handle, task.failure_reason) == ("RUNNING", handle, None)
    assert task.approximate_number_of_messages_to_move == 3
    site.pass_time(200)
    (task,) = site.tasks()
    assert (task.status, task.task_handle) == ("COMPLETED", None)
    assert task.approximate_number_of_messages_moved == 3
    assert task.started_timestamp > 0
    assert (site.ready("dead"), site.ready("orders")) == (0, 3)
    assert site.mover.next_ms() is None


@pytest.mark.parametrize("name", ["readings", "readings.fifo"])
def test_late_messages_go_back_to_the_queue_they_were_late_for(name: str) -> None:
    site = Site(0)
    ordered = {
        "Penstock.Ordering": "clock",
        "Penstock.Stamps": "producer",
        "Penstock.WindowMilliseconds": "0",
    }
    if name.endswith(".fifo"):
        ordered["FifoQueue"] = "true"
    site.front.call(create_queue, "CreateQueue", QueueName=name, Attributes=ordered)
    now_us = site.node.now_ms * 1_000
    for body, time_us in ((b"in time", now_us), (b"late", now_us - 5)):
        site.node.send(site.queue_id(name), [body], process=1, time_us=time_us)
    assert (site.ready(name), site.ready(f"{name}.late")) == (1, 1)
    site.start(SourceArn=site.front.arn(f"{name}.late"))
    site.work()
    assert (site.ready(name), site.ready(f"{name}.late")) == (2, 0)
    assert site.node.receive(site.queue_id(name)).bodies == [b"in time", b"late"]


def test_to_a_destination_in_slices() -> None:
    site = Site(2_500)
    site.start(DestinationArn=site.front.arn("elsewhere"))
    site.pass_time(500)
    (task,) = site.tasks()
    assert (task.status, task.approximate_number_of_messages_moved) == ("COMPLETED", 2_500)
    assert task.destination_arn == site.front.arn("elsewhere")
    assert (site.ready("dead"), site.ready("elsewhere")) == (0, 2_500)


def test_at_a_rate() -> None:
    site = Site(4)
    site.start(MaxNumberOfMessagesPerSecond=1)
    site.work()
    assert site.ready("orders") == 1  # the first at once
    site.pass_time(2_000)
    assert site.ready("orders") == 3
    assert site.tasks()[0].status == "RUNNING"
    assert site.tasks()[0].approximate_number_of_messages_moved >= 2
    site.pass_time(1_200)
    assert (site.ready("orders"), site.tasks()[0].status) == (4, "COMPLETED")


def test_at_a_high_rate() -> None:
    site = Site(1_000)
    site.start(MaxNumberOfMessagesPerSecond=500)
    site.pass_time(1_000)
    assert 450 <= site.ready("orders") <= 510
    site.pass_time(1_500)
    assert site.tasks()[0].status == "COMPLETED"


def test_refusals() -> None:
    site = Site()
    arn = site.front.arn
    assert site.refused(SourceArn=arn("elsewhere")).message == (
        "Source queue must be configured as a Dead Letter Queue."
    )
    missing = site.refused(SourceArn=arn("none"))
    assert (missing.status, "SourceArn" in missing.message) == (404, True)
    missing = site.refused(DestinationArn=arn("none"))
    assert (missing.status, "DestinationArn" in missing.message) == (404, True)
    assert site.refused(SourceArn="x").query_code == "InvalidParameterValue"
    assert site.refused(DestinationArn=arn("dead")).query_code == "InvalidParameterValue"
    assert site.refused(MaxNumberOfMessagesPerSecond=501).query_code == "InvalidParameterValue"
    site.front.call(create_queue, "CreateQueue", QueueName="a.fifo", Attributes={"FifoQueue": "true"})
    assert site.refused(DestinationArn=arn("a.fifo")).query_code == "InvalidParameterValue"
    assert site.tasks() == []


def test_other_accounts_and_regions_see_nothing() -> None:
    site = Site()
    site.start()
    for other in (site.front.as_caller(OTHER), site.front.as_caller(site.front.account, "eu-west-1")):
        members = {"SourceArn": site.front.arn("dead")}
        assert other.refuse(list_message_move_tasks, "ListMessageMoveTasks", **members).status == 404
        assert other.refuse(start_message_move_task, "StartMessageMoveTask", **members).status == 404
    theirs = Site(2, site.front.as_caller(OTHER))
    theirs.start()
    theirs.pass_time(200)
    assert (theirs.ready("orders"), theirs.tasks()[0].status) == (2, "COMPLETED")


@pytest.mark.parametrize("deaf", [False, True])
def test_one_task_of_a_source_at_a_time(deaf: bool) -> None:
    site = Site()
    second = FrontEnd(site.front.world, deaf=deaf)
    members = {"SourceArn": site.front.arn("dead")}
    running = second.begin(start_message_move_task, "StartMessageMoveTask", **members)
    while not isinstance(running.pending, Put):
        running.step()
    site.start()
    with pytest.raises(SqsError, match="There is already a task running"):
        running.run()
    site.pass_time(200)
    site.start()
    assert [task.status for task in site.tasks()] == ["RUNNING", "COMPLETED"]


def test_ten_are_listed() -> None:
    site = Site(0)
    for _ in range(12):
        site.start()
        site.pass_time(200)
    assert len(site.tasks()) == 10
    one = site.front.call(
        list_message_move_tasks, "ListMessageMoveTasks", SourceArn=site.front.arn("dead")
    ).results
    assert one == site.tasks()[:1]


# --- cancelling -----------------------------------------------------------------------------------------------


def cancel(site: Site, handle: str) -> int:
    result = site.front.call(cancel_message_move_task, "CancelMessageMoveTask", TaskHandle=handle)
    return result.approximate_number_of_messages_moved


def test_cancelled_while_it_runs() -> None:
    site = Site(5)
    handle = site.start(MaxNumberOfMessagesPerSecond=1)
    site.pass_time(1_100)
    assert cancel(site, handle) <= 2
    assert site.tasks()[0].status == "CANCELLING"
    site.work()
    (task,) = site.tasks()
    assert (task.status, task.approximate_number_of_messages_moved) == ("CANCELLED", 2)
    assert site.ready("dead") == 3
    error = site.front.refuse(cancel_message_move_task, "CancelMessageMoveTask", TaskHandle=handle)
    assert error.query_code == "InvalidParameterValue"


def test_cancelled_before_anybody_took_it() -> None:
    site = Site()
    assert cancel(site, site.start()) == 0
    assert site.tasks()[0].status == "CANCELLED"
    site.pass_time(200)
    assert site.ready("dead") == 3


def test_cancelled_in_the_middle_of_a_slice() -> None:
    site = Site()
    handle = site.start(MaxNumberOfMessagesPerSecond=1)
    site.work()
    site.node.advance(1_000)
    site.node.advance(1_000)
    running = site.front.begin_steps(site.mover.move("dead", site.node.now_ms))
    running.step()
    cancel(site, handle)
    running.run()  # what it has moved it writes down, unless that would undo the cancelling
    site.work()
    assert site.tasks()[0].status == "CANCELLED"
    assert site.ready("dead") == 1


def test_handles_of_nothing() -> None:
    site = Site()

    def refused(handle: str) -> SqsError:
        return site.front.refuse(cancel_message_move_task, "CancelMessageMoveTask", TaskHandle=handle)

    assert refused("garbage").message == "Value for parameter TaskHandle is invalid."
    assert refused(encode_task_handle("x", "y")).message == "Value for parameter TaskHandle is invalid."
    assert refused(encode_task_handle("x", site.front.arn("none"))).status == 404
    assert refused(encode_task_handle("x", site.front.arn("dead"))).message == "Task does not exist."


# --- what goes wrong ------------------------------------------------------------------------------------------


def test_the_destination_is_deleted_while_it_runs() -> None:
    site = Site()
    site.start(DestinationArn=site.front.arn("elsewhere"), MaxNumberOfMessagesPerSecond=1)
    site.work()
    site.front.call(delete_queue, "DeleteQueue", QueueUrl="elsewhere")
    site.pass_time(1_100)
    (task,) = site.tasks()
    assert (task.status, task.failure_reason) == ("FAILED", "AWS.SimpleQueueService.NonExistentQueue")
    assert (site.ready("dead"), task.approximate_number_of_messages_moved) == (2, 1)


def test_the_queue_they_died_in_is_gone() -> None:
    site = Site()
    create = {"deadLetterTargetArn": site.front.arn("dead"), "maxReceiveCount": 1}
    attributes = {"RedrivePolicy": json.dumps(create)}
    site.front.call(create_queue, "CreateQueue", QueueName="another", Attributes=attributes)
    site.front.call(delete_queue, "DeleteQueue", QueueUrl="orders")
    for _ in range(2):  # the second time the engine knows that they have nowhere to go
        site.start()
        site.pass_time(500)
        task = site.tasks()[0]
        assert (task.status, task.failure_reason) == ("FAILED", "CouldNotDetermineMessageSource")
        assert task.approximate_number_of_messages_moved == 0
        assert site.ready("dead") == 3


def test_messages_that_never_died() -> None:
    site = Site(1)
    site.node.send(site.queue_id("dead"), [b"stranger"])
    site.start()
    site.pass_time(200)
    task = site.tasks()[0]
    assert (task.status, task.failure_reason) == ("FAILED", "CouldNotDetermineMessageSource")
    assert (site.ready("dead"), site.ready("orders")) == (1, 1)


def test_the_source_is_deleted_while_it_runs() -> None:
    site = Site()
    site.start(MaxNumberOfMessagesPerSecond=1)
    site.work()
    site.node.call(messages.DeleteQueue("dead"))  # behind the front end's back
    site.pass_time(1_100)
    assert not [key for key in site.front.world.entries if key.startswith("moves/")]
    assert site.mover.next_ms() is None


def test_a_dead_letter_that_dies_again_does_not_go_round() -> None:
    site = Site()
    site.start(MaxNumberOfMessagesPerSecond=1)
    site.work()
    site.kill(1)
    site.pass_time(5_000)
    (task,) = site.tasks()
    assert (task.status, task.approximate_number_of_messages_moved) == ("COMPLETED", 3)


# --- several movers -------------------------------------------------------------------------------------------


def test_another_takes_over_when_the_owner_is_silent() -> None:
    site = Site(20)
    site.start(MaxNumberOfMessagesPerSecond=1)
    site.pass_time(3_000)
    after = FrontEnd(site.front.world)
    second = Mover("second", after.cache)
    site.node.advance(5_000)
    assert second.due(site.node.now_ms) == []
    following = second.next_ms()
    assert following is not None
    assert 4_000 <= following - site.node.now_ms <= 6_000
    site.node.advance(following - site.node.now_ms)
    moved = site.ready("orders")
    site.work(second, after)
    assert site.ready("orders") == moved + 1
    # The first was only asleep: it sees that the task is no longer its own.
    site.work(site.mover)
    assert site.ready("orders") == moved + 1
    site.front, site.mover = after, second
    site.pass_time(20_000)
    (task,) = site.tasks()
    assert (task.status, site.ready("orders")) == ("COMPLETED", 20)
    assert 19 <= task.approximate_number_of_messages_moved <= 20


@pytest.mark.parametrize("deaf", [False, True])
def test_of_two_movers_one_gets_the_task(deaf: bool) -> None:
    site = Site()
    site.start(MaxNumberOfMessagesPerSecond=1)
    second = FrontEnd(site.front.world, deaf=deaf)
    rival = Mover("rival", second.cache)
    now_ms = site.node.now_ms
    begun = [
        site.front.begin_steps(site.mover.move("dead", now_ms)),
        second.begin_steps(rival.move("dead", now_ms)),
    ]
    for _ in range(20):
        for running in begun:
            if not running.finished:
                running.step()
    assert all(running.finished for running in begun)
    assert site.ready("orders") == 1


def test_a_restart_goes_on_where_it_was() -> None:
    site = Site(6)
    site.start(MaxNumberOfMessagesPerSecond=1)
    site.pass_time(2_000)
    site.node.restart()
    site.front = FrontEnd(site.front.world)
    site.mover = Mover("after the restart", site.front.cache)
    site.pass_time(20_000)
    (task,) = site.tasks()
    assert (task.status, site.ready("orders"), site.ready("dead")) == ("COMPLETED", 6, 0)


def test_a_timer_asks_again_after_a_minute_at_the_latest() -> None:
    site = Site()
    site.start()
    next_ms = site.mover.next_ms()
    assert next_ms is not None
    assert site.mover.pause_ms(next_ms - 3_600_000) == LATEST_MS
    assert site.mover.pause_ms(next_ms - 500) == 500
    assert site.mover.pause_ms(next_ms + 500) == SOONEST_MS
