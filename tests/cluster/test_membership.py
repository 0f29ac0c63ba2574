"""Who lives, who is gone for how long, who is to be emptied."""

from __future__ import annotations

from penstock.cluster.layout.entries import DrainEntry, NodeEntry
from penstock.cluster.membership.lives import new_life_ms
from penstock.cluster.membership.members import Membership
from tests.cluster.obedient_cluster import ObedientCluster


def node(name: str, started_ms: int = 1, load: float = 0.0) -> NodeEntry:
    return NodeEntry(node=name, native="", peers="", started_ms=started_ms, load=load)


def test_a_node_lives_while_its_entry_stands() -> None:
    members = Membership()
    members.came(node("a"), 1_000)
    assert (members.living_for_ms("a", 1_500), members.gone_for_ms("a", 1_500)) == (500, 0)
    members.came(node("a", load=0.5), 1_600)
    assert members.living_for_ms("a", 2_000) == 1_000, "it only said how busy it is"
    members.went("a", 2_000)
    assert (members.living_for_ms("a", 2_500), members.gone_for_ms("a", 2_500)) == (0, 500)
    members.went("a", 2_400)
    assert members.gone_for_ms("a", 2_500) == 500, "it was gone already"


def test_a_node_that_started_anew_begins_a_new_life() -> None:
    members = Membership()
    members.came(node("a", started_ms=1), 1_000)
    members.came(node("a", started_ms=2), 5_000)
    assert members.living_for_ms("a", 6_000) == 1_000


def test_a_node_never_seen_is_missed_from_the_first_look_on() -> None:
    members = Membership()
    assert members.gone_for_ms("a", 1_000) == 0
    assert members.gone_for_ms("a", 9_000) == 8_000
    assert members.can_hold("a", 9_000, grace_ms=10_000)
    assert not members.can_hold("a", 11_000, grace_ms=10_000)


def test_a_drained_node_holds_nothing_more() -> None:
    members = Membership()
    members.came(node("a"), 0)
    members.came(node("b"), 0)
    members.drain(DrainEntry(node="a", remove=True))
    assert [one.node for one in members.places()] == ["b"]
    assert not members.can_hold("a", 0, grace_ms=10)
    assert not members.removed("a"), "it still lives"
    members.went("a", 5)
    assert members.removed("a")
    members.stop_draining("a")
    assert members.can_hold("a", 6, grace_ms=10)
    assert not members.removed("a")


def test_no_life_has_the_number_of_another_whatever_the_clock_says() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    name = cluster.entry(partition).primary or ""
    nodes = list(cluster.view.members.living.values())
    entries = [seen.entry for seen in cluster.view.partitions.values()]
    before_ms = cluster.view.members.living[name].started_ms
    assert new_life_ms(name, before_ms + 50, nodes, entries) == before_ms + 50
    assert new_life_ms(name, 7, nodes, entries) == before_ms + 1
    assert new_life_ms(name, 7, [], entries) == before_ms + 1
    assert new_life_ms("another", 7, nodes, entries) == 7
