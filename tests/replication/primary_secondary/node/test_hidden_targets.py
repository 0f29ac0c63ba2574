"""The entry of a target is missing, or only newer versions can read it, when its source looks for it: what was consumed stays so."""

from __future__ import annotations

import msgspec
import pytest

from penstock.model.batch import encode_parts
from penstock.model.settings import QueueSettings
from penstock.replication.primary_secondary.node.layout_view import GONE_MS, STEP_MS, LayoutView
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_many_journeys import everything
from tests.replication.primary_secondary.node.test_settled_arrivals import (
    AGAIN,
    SOURCE,
    TARGET,
    arrived_without_a_word,
    consume,
    dead_letter,
    lose_entry,
    part,
    partition_of,
)


def layout_of(cluster: Cluster, name: str) -> LayoutView:
    node = cluster.machines[name].node
    assert node is not None
    return node.replication.state.layout


def hide(cluster: Cluster, partition: int, *names: str) -> None:
    """A newer version has written the entry, and these nodes cannot read it."""
    cluster.unreadable |= {(name, partition) for name in names}
    for name in names:
        cluster.machines[name].heard.append(cluster.entries[partition])


def name_queue(cluster: Cluster, queue_id: int | None) -> None:
    for machine in cluster.machines.values():
        if machine.node is not None:
            machine.node.replication.queue_named("target", queue_id, cluster.now_ms)


def restart_source(cluster: Cluster, queue_id: int | None) -> None:
    """The nodes that may lead the source begin, and hear of what the store has now: `queue_id` has the name of the target."""
    for name in ("a", "c"):
        cluster.machines[name].crash()
        cluster.machines[name].start()
    name_queue(cluster, queue_id)
    cluster.settle(500)
    assert cluster.elect(SOURCE, "a")


def assert_consumed_once(cluster: Cluster, *, made_again: bool) -> None:
    """The messages were consumed from the target, and are nowhere now."""
    assert everything(cluster, SOURCE) == []
    if made_again:
        assert everything(cluster, AGAIN) == []
    assert not partition_of(cluster, cluster.serving(SOURCE).name, SOURCE).moves


@pytest.mark.parametrize("made_again", [False, True])
def test_a_deleted_target_that_becomes_unreadable_is_still_waited_for(made_again: bool) -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    cluster.delete(TARGET)
    cluster.settle(1_000)
    hide(cluster, TARGET, "a")
    if made_again:
        cluster.create("target", AGAIN, ("c",))
    else:
        name_queue(cluster, None)
    cluster.settle(3_000)
    assert partition_of(cluster, "a", SOURCE).moves
    # The node of the target can read the entry. What it says counts, whoever can read that.
    cluster.parted.clear()
    cluster.settle(3_000)
    assert_consumed_once(cluster, made_again=made_again)


def test_what_may_be_in_a_target_waits_until_its_entry_can_be_read_again() -> None:
    """Nothing else tells the source that it is not there."""
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    cluster.parted.clear()
    cluster.settle(1_000)
    cluster.machines["b"].crash()
    cluster.settle(500)
    dead_letter(cluster, b"three")
    assert cluster.elect(SOURCE, "c")
    part(cluster, "b", "c")
    cluster.machines["b"].start()
    cluster.settle(500)
    hide(cluster, TARGET, "c")
    cluster.delete(TARGET)
    cluster.settle(500)
    cluster.create("target", AGAIN, ("a",))
    cluster.parted.clear()
    cluster.settle(5_000)
    assert everything(cluster, AGAIN) == [], "it may be in the deleted queue, for all that its source knows"
    cluster.unreadable.clear()
    cluster.put(cluster.entry(TARGET))
    cluster.settle(5_000)
    assert everything(cluster, AGAIN) == [b"three"]


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_source_that_starts_while_the_entry_of_its_target_is_missing_waits(partitions: int) -> None:
    """Its queue is there, so it is. `partitions`: nothing, or another partition of it, is known."""
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    lost = msgspec.structs.replace(
        cluster.entry(TARGET), settings=QueueSettings(replicas=1, partitions=partitions)
    )
    lose_entry(cluster, TARGET)
    if partitions > 1:
        settings = QueueSettings(replicas=1, partitions=2)
        cluster.create_partition("target", 9, ("c",), settings, queue_id=TARGET, ordinal=1)
    restart_source(cluster, TARGET)
    cluster.settle(3_000)
    assert partition_of(cluster, "a", SOURCE).moves, "nothing says that the messages are not there"
    cluster.put(msgspec.structs.replace(lost, epoch=2))
    cluster.parted.clear()
    cluster.settle(8_000)
    assert_consumed_once(cluster, made_again=False)


@pytest.mark.parametrize(
    ("made_again", "made_before_ms"), [(False, 0), (True, 0), (True, 3 * GONE_MS)], ids=str
)
def test_a_source_that_starts_while_the_entry_of_its_deleted_target_is_missing_waits(
    made_again: bool, made_before_ms: int
) -> None:
    """Nothing tells its node that there was such a queue. `made_before_ms`: so long before the next one of its name was made."""
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    cluster.delete(TARGET)
    cluster.settle(1_000)
    if made_again:
        cluster.create("target", AGAIN, ("c",))
        cluster.put(msgspec.structs.replace(cluster.entry(AGAIN), made_ms=cluster.now_ms))
    cluster.settle(made_before_ms, step_ms=1_000)
    lost = cluster.entry(TARGET)
    assert not lost.retired, "its source does not know what has arrived"
    lose_entry(cluster, TARGET)
    name_queue(cluster, AGAIN if made_again else None)
    restart_source(cluster, AGAIN if made_again else None)
    cluster.settle(3_000)
    cluster.put(msgspec.structs.replace(lost, epoch=2))
    cluster.parted.clear()
    cluster.settle(8_000)
    assert_consumed_once(cluster, made_again=made_again)


def test_an_entry_that_is_put_back_by_a_newer_version_does_not_count_as_lost() -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    entry = cluster.entry(SOURCE)
    lose_entry(cluster, SOURCE)
    cluster.settle(1_000)
    cluster.unreadable.add(("b", SOURCE))
    cluster.machines["b"].heard.append((entry, cluster.version + 1))
    cluster.delete(TARGET)
    cluster.settle(GONE_MS + 20_000, step_ms=1_000)
    assert not cluster.entry(TARGET).retired
    cluster.unreadable.clear()
    started_ms = cluster.machines["c"].started_ms
    cluster.put(
        msgspec.structs.replace(entry, epoch=2, primary="c", primary_started_ms=started_ms, in_sync=["c"])
    )
    cluster.parted.clear()
    cluster.settle(8_000)
    assert_consumed_once(cluster, made_again=False)
    assert cluster.entry(TARGET).retired


def test_a_source_that_hears_of_the_next_queue_of_a_name_first_waits_for_the_one_before() -> None:
    """Its node does not know yet that the partitions of the former queue are deleted: it cannot ask them."""
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    cluster.delete(TARGET)
    deleted = cluster.machines["a"].heard.pop()
    cluster.create("target", AGAIN, ("c",))
    cluster.settle(3_000)
    assert partition_of(cluster, "a", SOURCE).moves
    cluster.machines["a"].heard.append(deleted)
    cluster.parted.clear()
    cluster.settle(8_000)
    assert_consumed_once(cluster, made_again=True)


def test_what_may_be_in_no_hidden_partition_passes() -> None:
    """Only what was on its way before waits for an entry that cannot be read."""
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    cluster.delete(TARGET)
    cluster.settle(500)
    hide(cluster, TARGET, "a", "c")
    cluster.create("target", AGAIN, ("c",))
    cluster.settle(500)
    dead_letter(cluster, b"three")
    assert everything(cluster, AGAIN) == [b"three"]


def test_a_clock_that_jumps_does_not_end_what_is_missing() -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    entry = cluster.entry(TARGET)
    lose_entry(cluster, TARGET)
    name_queue(cluster, None)
    cluster.settle(1_000)
    cluster.now_ms += 2 * GONE_MS
    cluster.settle(1_000)
    cluster.put(msgspec.structs.replace(cluster.entry(SOURCE), reason="the layout changes"))
    cluster.settle(1_000)
    cluster.put(msgspec.structs.replace(entry, epoch=2))
    cluster.parted.clear()
    cluster.settle(8_000)
    assert_consumed_once(cluster, made_again=False)


def test_messages_go_on_when_what_is_missing_is_lost() -> None:
    """Nothing else happens in the layout."""
    cluster = arrived_without_a_word()
    lose_entry(cluster, TARGET)
    name_queue(cluster, None)
    cluster.settle(GONE_MS - 10_000, step_ms=1_000)
    assert partition_of(cluster, "a", SOURCE).moves
    cluster.settle(30_000, step_ms=1_000)
    assert sorted(everything(cluster, SOURCE)) == [b"one", b"two"]


def test_a_message_is_not_received_more_often_because_the_entry_of_its_dead_letter_queue_is_hidden() -> None:
    cluster = arrived_without_a_word()
    cluster.parted.clear()
    cluster.settle(1_000)
    hide(cluster, TARGET, "a", "c")
    cluster.settle(100)
    sent = cluster.ask(messages.Send(SOURCE), encode_parts([b"three"]))
    assert isinstance(sent, messages.SendResult)
    received = cluster.ask(messages.Receive(SOURCE, 10))
    assert isinstance(received, messages.Delivery)
    receipt = messages.Receipt(received.token, [(batch.first, batch.count) for batch in received.batches])
    assert isinstance(cluster.ask(messages.Release([receipt])), messages.Settled)
    cluster.settle(500)
    received = cluster.ask(messages.Receive(SOURCE, 10))
    assert isinstance(received, messages.Delivery)
    assert received.batches == []
    cluster.unreadable.clear()
    cluster.put(cluster.entry(TARGET))
    cluster.settle(1_000)
    assert everything(cluster, TARGET) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("target_is_older", [False, True])
def test_a_target_that_is_older_than_its_source_took_no_place_of_another_one(target_is_older: bool) -> None:
    """A node that has just started sends messages there at once. Else they wait until its layout is whole."""
    cluster = arrived_without_a_word()
    for partition in (SOURCE, TARGET):
        made_ms = cluster.now_ms - (partition == TARGET) * (1 if target_is_older else -1)
        cluster.put(msgspec.structs.replace(cluster.entry(partition), made_ms=made_ms))
    restart_source(cluster, TARGET)
    cluster.parted.clear()
    cluster.settle(5_000)
    assert bool(partition_of(cluster, "a", SOURCE).moves) is not target_is_older
    cluster.settle(GONE_MS, step_ms=1_000)
    assert not partition_of(cluster, "a", SOURCE).moves
    assert sorted(everything(cluster, TARGET)) == [b"one", b"two"]


def test_messages_wait_for_an_entry_for_as_long_as_its_queue_is_there() -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    entry = cluster.entry(TARGET)
    lose_entry(cluster, TARGET)
    cluster.settle(GONE_MS + 30_000, step_ms=1_000)
    cluster.put(msgspec.structs.replace(entry, epoch=2))
    cluster.parted.clear()
    cluster.settle(8_000)
    assert_consumed_once(cluster, made_again=False)


def passed_ms(view: LayoutView, clock: list[int]) -> int:
    for now_ms in clock:
        view.pass_time(now_ms)
    return view._passed_ms


def test_time_passes_in_steps_and_only_while_the_store_answers() -> None:
    """A node that does not hear of the store does not hear that an entry is put back."""
    view = LayoutView()
    view.followed_until_ms = 1_000_000
    assert passed_ms(view, [5_000, 6_000, 6_000 + STEP_MS]) == 1_000 + STEP_MS
    assert passed_ms(view, [900_000]) == 1_000 + 2 * STEP_MS
    assert passed_ms(view, [899_000, 900_000]) == 2_000 + 2 * STEP_MS
    assert passed_ms(view, [1_000_001, 1_005_000]) == 2_000 + 2 * STEP_MS
    view.followed_until_ms = 2_000_000
    assert passed_ms(view, [1_006_000]) == 3_000 + 2 * STEP_MS
