"""Failover, decision by decision: who leads when a primary is gone, and who never does."""

from __future__ import annotations

import pytest

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.entries import PartitionEntry, Position
from tests.cluster.obedient_cluster import SETTINGS, ObedientCluster


def partition_of(change_entry: object) -> PartitionEntry:
    assert isinstance(change_entry, PartitionEntry)
    return change_entry


def secondaries(entry: PartitionEntry) -> list[str]:
    return [node for node in entry.replicas if node != entry.primary]


def test_nothing_is_done_where_all_is_well() -> None:
    cluster = ObedientCluster()
    cluster.create("orders", partitions=6)
    assert cluster.settle() == []


def test_the_longest_log_in_sync_leads_when_the_primary_is_gone() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    before = cluster.entry(partition)
    short, long = secondaries(before)
    cluster.kill(before.primary or "")
    cluster.say(short, **{f"p{partition}": Position(1, 1, 10)})
    assert cluster.decide() == [], "the other one has not said yet how long its log is"
    cluster.say(long, **{f"p{partition}": Position(1, 1, 11)})
    (change,) = cluster.manage()
    after = partition_of(change.entry)
    assert (after.primary, after.epoch, after.in_sync) == (
        long,
        2,
        [n for n in before.replicas if n in (short, long)],
    )
    assert after.primary_started_ms == cluster.view.members.living[long].started_ms
    assert change.reason == f"{before.primary} is gone, and of those in sync {long} has the longest log"
    assert cluster.decide() == [], "and it is left to begin"


def test_a_later_epoch_is_longer_than_more_records() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    first, second = secondaries(cluster.entry(partition))
    cluster.change(partition, epoch=3)
    cluster.kill(cluster.entry(partition).primary or "")
    cluster.say(first, **{f"p{partition}": Position(3, 3, 10)})
    cluster.say(second, **{f"p{partition}": Position(3, 2, 900)})
    (change,) = cluster.manage()
    assert partition_of(change.entry).primary == first


def test_a_silent_replica_is_not_waited_for_long() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    first, _ = secondaries(cluster.entry(partition))
    cluster.kill(cluster.entry(partition).primary or "")
    cluster.say(first, **{f"p{partition}": Position(1, 1, 10)})
    cluster.now_ms += SETTINGS.positions_wait_ms
    (change,) = cluster.manage()
    assert partition_of(change.entry).primary == first


@pytest.mark.parametrize(
    "word", [Position(1, 1, 99, fit=False), Position(7, 1, 99)], ids=["damaged", "of another epoch"]
)
def test_nobody_is_elected_whose_word_does_not_count(word: Position) -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    first, second = secondaries(cluster.entry(partition))
    cluster.kill(cluster.entry(partition).primary or "")
    cluster.say(first, **{f"p{partition}": word})
    cluster.say(second, **{f"p{partition}": Position(1, 1, 10)})
    cluster.now_ms += SETTINGS.positions_wait_ms
    (change,) = cluster.manage()
    assert partition_of(change.entry).primary == second
    assert (first in partition_of(change.entry).in_sync) == word.fit, "who is damaged is not in sync"


def test_words_from_before_a_restart_do_not_count() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders", replicas=2)
    (other,) = secondaries(cluster.entry(partition))
    cluster.kill(cluster.entry(partition).primary or "")
    cluster.say(other, **{f"p{partition}": Position(1, 1, 10)})
    cluster.start(other)
    cluster.now_ms += SETTINGS.positions_wait_ms
    cluster.manage()
    assert cluster.entry(partition).epoch == 1


def test_a_primary_that_started_anew_needs_a_new_epoch() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders", replicas=1)
    primary = cluster.entry(partition).primary or ""
    cluster.start(primary)
    cluster.settle()
    after = cluster.entry(partition)
    assert (after.primary, after.epoch, after.serving) == (primary, 2, 2)
    assert "has restarted" in after.reason


def test_a_damaged_primary_is_deposed() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    primary = cluster.entry(partition).primary or ""
    cluster.say(primary, **{f"p{partition}": Position(1, 1, 10, fit=False)})
    cluster.manage()
    assert (cluster.entry(partition).primary, cluster.entry(partition).epoch) == (None, 1)
    for node in secondaries(cluster.entry(partition)):
        if node != primary:
            cluster.say(node, **{f"p{partition}": Position(1, 1, 10)})
    cluster.manage()
    after = cluster.entry(partition)
    assert after.epoch == 2
    assert after.primary not in (None, primary)
    assert primary not in after.in_sync


def test_where_all_replicas_are_empty_an_operator_can_give_up_what_they_had() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    primary = cluster.entry(partition).primary or ""
    first, second = secondaries(cluster.entry(partition))
    cluster.kill(primary)
    cluster.say(first, **{f"p{partition}": Position(1, 0, 0, fit=False)})
    cluster.say(second, **{f"p{partition}": Position(1, 1, 9, fit=False)})  # it is damaged
    (change,) = cluster.manage()
    assert "permit an unclean election" in change.reason
    cluster.allow_unclean(partition, epoch=1)
    cluster.manage()
    after = cluster.entry(partition)
    assert (after.primary, after.epoch, after.in_sync, after.unclean) == (first, 2, [first], 2)
    assert "everything is lost" in after.reason


def test_nobody_out_of_sync_is_elected_until_an_operator_says_so() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    primary = cluster.entry(partition).primary or ""
    first, second = secondaries(cluster.entry(partition))
    cluster.change(partition, in_sync=[primary])
    cluster.kill(primary)
    cluster.say(first, **{f"p{partition}": Position(1, 1, 10)})
    cluster.say(second, **{f"p{partition}": Position(1, 1, 12)})
    (change,) = cluster.manage()
    assert cluster.entry(partition).epoch == 1
    assert "permit an unclean election" in change.reason
    assert cluster.decide() == [], "it is said once"

    cluster.allow_unclean(partition, epoch=7)
    assert cluster.decide() == [], "that was about another epoch"
    cluster.allow_unclean(partition, epoch=1)
    cluster.manage()
    after = cluster.entry(partition)
    assert (after.primary, after.epoch, after.in_sync) == (second, 2, [second])
    assert "records that it lacks are lost" in after.reason
    assert after.unclean == 2, "numbers that it does not know of are left out"
    (taken_away,) = cluster.manage()
    assert (taken_away.key, taken_away.entry) == (layout.unclean_key(partition), None)


def test_an_asynchronous_partition_waits_for_the_rest_after_a_power_cut() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders", replication="async")
    primary = cluster.entry(partition).primary or ""
    first, second = secondaries(cluster.entry(partition))
    for node in (primary, first, second):
        cluster.kill(node)
    cluster.start(first)
    cluster.say(first, **{f"p{partition}": Position(1, 1, 10)})
    cluster.now_ms += 1_000
    assert cluster.decide() == []
    cluster.start(primary)
    cluster.say(primary, **{f"p{partition}": Position(1, 1, 12)})
    cluster.now_ms += SETTINGS.restart_wait_ms
    cluster.manage()
    assert cluster.entry(partition).primary == primary


def lost_before_it_served(cluster: ObedientCluster, partition: int) -> tuple[str, str]:
    """The primary is gone, its successor was elected and lost its disk before it served; both of them, in order."""
    before = cluster.entry(partition)
    old, heir = before.primary or "", secondaries(before)[0]
    cluster.change(partition, in_sync=[old, heir])
    cluster.kill(old)
    cluster.say(heir, **{f"p{partition}": Position(1, 1, 10)})
    cluster.manage()
    chosen = cluster.entry(partition)
    assert (chosen.primary, chosen.in_sync, chosen.serving) == (heir, [heir], 1)
    cluster.start(heir)
    cluster.say(heir, **{f"p{partition}": Position(2, 0, 0, fit=False)})
    cluster.manage()
    return old, heir


def test_who_was_in_sync_before_leads_where_the_new_primary_lost_its_disk_before_it_served() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    old, heir = lost_before_it_served(cluster, partition)
    third = next(node for node in cluster.entry(partition).replicas if node not in (old, heir))
    cluster.say(third, **{f"p{partition}": Position(2, 1, 99)})
    cluster.manage()
    waiting = cluster.entry(partition)
    assert waiting.primary == heir
    assert f"of those in sync ({heir}, {old}) none is alive and undamaged" in waiting.reason
    assert f"elect orders --partition {waiting.ordinal} --unclean" in waiting.reason
    cluster.start(old)
    cluster.say(old, **{f"p{partition}": Position(2, 1, 10)})
    (change,) = cluster.manage()
    after = partition_of(change.entry)
    assert (after.primary, after.epoch, after.in_sync) == (old, 3, [old])
    assert "has everything that was acknowledged before" in change.reason


def test_once_the_new_primary_served_nobody_goes_back_behind_it() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    before = cluster.entry(partition)
    old, heir = before.primary or "", secondaries(before)[0]
    cluster.change(partition, in_sync=[old, heir])
    cluster.kill(old)
    cluster.say(heir, **{f"p{partition}": Position(1, 1, 10)})
    cluster.manage()
    cluster.change(partition, serving=2)
    cluster.start(heir)
    cluster.start(old)
    cluster.say(heir, **{f"p{partition}": Position(2, 0, 0, fit=False)})
    cluster.say(old, **{f"p{partition}": Position(2, 1, 10)})
    cluster.manage()
    assert cluster.entry(partition).primary == heir, "it may have acknowledged what the old one lacks"
    assert "none is alive and undamaged" in cluster.entry(partition).reason


def test_two_primaries_that_never_served_are_gone_back_behind_too() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    old, _ = lost_before_it_served(cluster, partition)
    cluster.start(old)
    cluster.say(old, **{f"p{partition}": Position(2, 1, 10)})
    cluster.manage()
    assert cluster.entry(partition).primary == old
    cluster.start(old)  # and it starts anew before it serves
    cluster.say(old, **{f"p{partition}": Position(3, 1, 10)})
    cluster.manage()
    assert (cluster.entry(partition).primary, cluster.entry(partition).epoch) == (old, 4)
