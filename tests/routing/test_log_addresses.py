"""Where a front end says that a log can be read without it: at whoever leads the partition, if that one takes readers."""

from __future__ import annotations

import pytest

from penstock.cluster.layout.entries import (
    NodeEntry,
    PartitionEntry,
    QueueEntry,
    encode,
    node_key,
    partition_key,
    queue_key,
)
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import ReadOffer, RoutingContext
from penstock.routing.router import route
from penstock.steps.step import Look, Stored
from penstock.wire.log_messages import LocateLog, LogAddress
from penstock.wire.read_ticket import LIFETIME_MS, Holder, ReadTicket, TicketSeal, encode_holder

SETTINGS = QueueSettings(consumption="log", partitions=2)
QUEUE_ID, FIRST, SECOND = 7, 8, 9
NOW_MS = 1_700_000_000_000
SEAL = TicketSeal(b"what the processes of this cluster know")


def partition(number: int, ordinal: int, primary: str | None, serving: int = 3) -> PartitionEntry:
    return PartitionEntry(
        partition=number,
        queue_id=QUEUE_ID,
        queue="clicks",
        ordinal=ordinal,
        settings=SETTINGS,
        epoch=3,
        primary=primary,
        replicas=["a", "b"],
        in_sync=["a", "b"],
        serving=serving,
    )


def context(*, offered: bool = True) -> RoutingContext:
    known = ClusterMap()
    queue = QueueEntry(
        name="clicks", queue_id=QUEUE_ID, settings=SETTINGS, created_ms=1, partitions=[FIRST, SECOND]
    )
    known.apply(queue_key("clicks"), encode(queue))
    a = NodeEntry(node="a", native="a:1", peers="a:2", reader="a:3", started_ms=1)
    b = NodeEntry(node="b", native="b:1", peers="b:2", started_ms=1)
    for node in (a, b):
        known.apply(node_key(node.node), encode(node))
    for entry in (partition(FIRST, 0, "a"), partition(SECOND, 1, "b")):
        known.apply(partition_key(entry.partition), encode(entry))
    made = RoutingContext(known, producer=1, now_ms=lambda: NOW_MS, load=lambda _: 0.0)
    if offered:
        made.offer = ReadOffer(SEAL, lambda: "an authority", lambda host: f"name at {host}")
    return made


def place(context: RoutingContext, ordinal: int = 0, queue_id: int = QUEUE_ID) -> LogAddress:
    steps = route(context, LocateLog(queue_id, ordinal), b"")
    with pytest.raises(StopIteration) as end:
        next(steps)  # nobody has to be asked
    answer = end.value.value.answer
    assert isinstance(answer, LogAddress)
    return answer


def test_it_is_at_the_node_that_leads_the_partition() -> None:
    found = place(context())
    assert (found.address, found.partition_id, found.authority) == ("a:3", FIRST, "an authority")
    assert found.certified_name == "name at a"
    assert SEAL.check(found.ticket, NOW_MS) == ReadTicket(FIRST, NOW_MS + LIFETIME_MS)


def test_the_ticket_says_who_asked() -> None:
    holder = Holder("000000000000", "ada", "clicks")
    steps = route(context(), LocateLog(QUEUE_ID, 0, encode_holder(holder)), b"")
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert SEAL.check(end.value.value.answer.ticket, NOW_MS).holder == holder


def test_it_is_nowhere_else_where_that_node_takes_no_readers() -> None:
    assert place(context(), 1) == LogAddress()


def test_it_is_nowhere_else_where_nobody_leads_or_lives_or_offers() -> None:
    without_leader = context()
    without_leader.map.apply(partition_key(FIRST), encode(partition(FIRST, 0, None)))
    assert place(without_leader) == LogAddress()
    not_yet = context()
    not_yet.map.apply(partition_key(FIRST), encode(partition(FIRST, 0, "a", serving=2)))
    assert place(not_yet) == LogAddress()
    dead = context()
    dead.map.apply(node_key("a"), None)
    assert place(dead) == LogAddress()
    assert place(context(offered=False)) == LogAddress()


def test_there_are_no_tickets_for_a_queue_that_is_not_there() -> None:
    steps = route(context(), LocateLog(QUEUE_ID + 1), b"")
    assert isinstance(next(steps), Look)
    with pytest.raises(PenstockError) as caught:
        steps.send(Stored(None, 0))
    assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND


@pytest.mark.parametrize("ordinal", [2, -1, -2])
def test_a_partition_that_the_queue_does_not_have_is_refused(ordinal: int) -> None:
    with pytest.raises(PenstockError, match="has 2 partitions") as caught:
        next(route(context(), LocateLog(QUEUE_ID, ordinal), b""))
    assert caught.value.code == ErrorCode.BAD_REQUEST
