"""Placement: even, across zones, the same for whoever asks, and little moves when nodes come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.cluster.layout.entries import NodeEntry
from penstock.cluster.manager.placement import Census, Placed, TooFewNodesError, first_entries, place
from penstock.model.settings import QueueSettings


def node(name: str, zone: str = "", load: float = 0.0) -> NodeEntry:
    return NodeEntry(node=name, zone=zone, native="", peers="", started_ms=7, load=load)


def nodes(count: int, zones: int = 1) -> list[NodeEntry]:
    return [node(f"node-{i}", f"zone-{i % zones}") for i in range(count)]


def names(placed: list[Placed]) -> list[list[str]]:
    return [[one.node for one in partition.nodes] for partition in placed]


def spread(counts: dict[str, int], among: list[NodeEntry]) -> int:
    held = [counts.get(one.node, 0) for one in among]
    return max(held) - min(held)


sizes = some.integers(1, 12)
first_ids = some.integers(1, 10**12)


@given(count=sizes, replicas=some.integers(1, 5), partitions=some.integers(1, 40), first=first_ids)
def test_nodes_hold_and_lead_the_same_within_one(
    count: int, replicas: int, partitions: int, first: int
) -> None:
    replicas = min(replicas, count)
    census = Census()
    placed = place(nodes(count), range(first, first + partitions), replicas, census)
    assert spread(census.held, nodes(count)) <= 1
    assert spread(census.led, nodes(count)) <= 1
    assert all(len(set(one)) == replicas for one in names(placed))


@given(each=some.integers(1, 3), zones=some.integers(1, 5), partitions=some.integers(1, 40), first=first_ids)
def test_even_zones_are_even_too(each: int, zones: int, partitions: int, first: int) -> None:
    among = nodes(each * zones, zones)
    census = Census()
    place(among, range(first, first + partitions), min(3, zones), census)
    assert spread(census.led, among) <= 1
    for zone in range(zones):
        assert spread(census.held, [one for one in among if one.zone == f"zone-{zone}"]) <= 1


@given(
    zones_of=some.lists(some.sampled_from("abcd"), min_size=1, max_size=9),
    replicas=some.integers(1, 4),
    first=first_ids,
)
def test_replicas_are_in_as_many_zones_as_can_be(zones_of: list[str], replicas: int, first: int) -> None:
    among = [node(f"node-{i}", zone) for i, zone in enumerate(zones_of)]
    replicas = min(replicas, len(among))
    for placed in place(among, range(first, first + 12), replicas):
        assert len({one.zone for one in placed.nodes}) == min(replicas, len(set(zones_of)))


@given(count=some.integers(2, 9), order=some.randoms(use_true_random=False), first=first_ids)
def test_everybody_places_the_same(count: int, order: object, first: int) -> None:
    among = nodes(count, 3)
    shuffled = list(among)
    order.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random, drawn by hypothesis
    ids = range(first, first + 9)
    assert names(place(among, ids, 2)) == names(place(shuffled, ids, 2))


def test_one_queue_at_a_time_is_as_even_as_all_at_once() -> None:
    among = nodes(7)
    census = Census()
    for partition in range(1, 1_001):
        place(among, [partition], 3, census)
    assert spread(census.held, among) <= 1
    assert spread(census.led, among) <= 1


def test_a_busy_node_is_given_less() -> None:
    among = [node("busy", load=1.0), node("one"), node("other")]
    census = Census()
    place(among, range(1, 101), 1, census)
    assert census.held == {"busy": 20, "one": 40, "other": 40}


def test_what_a_lost_node_held_is_with_many_others() -> None:
    """Rendezvous: the partners of one node's partitions are all the others, not always the same two."""
    placed = names(place(nodes(8), range(1, 401), 3))
    partners = Census()
    for one in placed:
        if "node-0" in one:
            partners.add([name for name in one if name != "node-0"])
    assert len(partners.held) == 7
    assert max(partners.held.values()) < 2 * min(partners.held.values())


def test_too_few_nodes_are_an_error_that_says_so() -> None:
    with pytest.raises(TooFewNodesError, match="3 replicas need as many nodes, and there are 2"):
        place(nodes(2), [1], 3)


def test_entries_of_a_new_queue() -> None:
    settings = QueueSettings(partitions=2, replicas=2)
    placed = place(nodes(3), [11, 12], 2)
    entries = first_entries(placed, queue="orders", queue_id=10, settings=settings)
    assert [(one.partition, one.ordinal, one.epoch, one.serving) for one in entries] == [
        (11, 0, 1, 0),
        (12, 1, 1, 0),
    ]
    for entry, one in zip(entries, names(placed), strict=True):
        assert entry.primary == one[0]
        assert entry.primary_started_ms == 7
        assert entry.replicas == entry.in_sync == one
