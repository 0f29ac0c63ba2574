"""A node that stops names successors: those in sync that stay, whoever leads least first."""

from __future__ import annotations

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.cluster.manager.departure import departure
from penstock.model.settings import QueueSettings

SETTINGS = QueueSettings(replicas=3)


def node(name: str, *, leaving: bool = False) -> NodeEntry:
    return NodeEntry(node=name, native="127.0.0.1:1", peers="127.0.0.1:2", started_ms=1, leaving=leaving)


def partition(
    number: int,
    primary: str | None = "a",
    in_sync: str = "abc",
    *,
    serving: int = 3,
    hand_over_to: str | None = None,
) -> tuple[PartitionEntry, int]:
    entry = PartitionEntry(
        partition=number,
        queue_id=number,
        queue=f"queue-{number}",
        ordinal=0,
        settings=SETTINGS,
        epoch=3,
        primary=primary,
        replicas=["a", "b", "c"],
        in_sync=list(in_sync),
        serving=serving,
        hand_over_to=hand_over_to,
    )
    return entry, 100 + number


LIVING = {name: node(name) for name in "abc"}


def successors(
    *partitions: tuple[PartitionEntry, int], living: dict[str, NodeEntry] = LIVING
) -> dict[int, str | None]:
    wishes, _ = departure("a", partitions, living, ())
    assert all(version == 100 + entry.partition for entry, version in wishes)
    return {entry.partition: entry.hand_over_to for entry, _ in wishes}


def test_what_it_leads_is_shared_out_among_the_others() -> None:
    found = successors(*(partition(number) for number in range(6)), partition(9, "b"))
    assert found == {0: "c", 1: "b", 2: "c", 3: "b", 4: "c", 5: "b"}  # b led one before
    assert 9 not in found


def test_only_who_is_in_sync_and_stays_is_a_successor() -> None:
    assert successors(partition(1, in_sync="ac")) == {1: "c"}
    assert successors(partition(1), living={"a": node("a"), "c": node("c")}) == {1: "c"}
    assert successors(partition(1), living=LIVING | {"b": node("b", leaving=True)}) == {1: "c"}
    wishes, waits = departure("a", [partition(1)], LIVING, ["c", "b"])
    assert not wishes
    assert not waits


def test_what_nobody_else_can_lead_is_not_waited_for() -> None:
    everybody_leaves = {name: node(name, leaving=True) for name in "abc"}
    assert departure("a", [partition(1), partition(2, in_sync="a")], everybody_leaves, ()) == ([], False)
    assert departure("a", [partition(1, "b"), partition(2, None)], LIVING, ()) == ([], False)


def test_what_is_under_way_is_waited_for_and_not_asked_for_again() -> None:
    assert departure("a", [partition(1, hand_over_to="b")], LIVING, ()) == ([], True)
    assert departure("a", [partition(1, serving=2)], LIVING, ()) == ([], True)
