"""Which nodes are connected to, and which connection of two counts, over connections that are names."""

from __future__ import annotations

from penstock.wire.backoff import PEER_STREAM
from penstock.wire.peer_streams import PeerAttempts, PeerStreams

ADDRESSES = {"a": "one:1", "b": "two:1", "c": "three:1"}


def begun(streams: PeerStreams[str], connection: str, node: str) -> None:
    """A connection that is wanted, from its beginning on."""
    assert streams.opened(connection, dialled=True) is None
    assert streams.named(connection, node)
    streams.began(connection, node)


def test_a_node_connects_to_those_whose_names_come_after_its_own() -> None:
    assert PeerStreams[str]("a").know(ADDRESSES) == ["b", "c"]
    assert PeerStreams[str]("b").know(ADDRESSES) == ["c"]
    assert PeerStreams[str]("c").know(ADDRESSES) == []


def test_a_node_is_connected_to_by_one_task_and_until_it_is_gone_from_the_layout() -> None:
    streams = PeerStreams[str]("a")
    assert streams.know(ADDRESSES) == ["b", "c"]
    assert streams.know({**ADDRESSES, "b": "four:1"}) == []
    assert streams.address("b") == "four:1"
    assert streams.know({"a": "one:1", "c": "three:1"}) == []
    assert streams.address("b") is None
    streams.left_alone("b")
    assert streams.know(ADDRESSES) == ["b"]


def test_the_newer_connection_of_a_node_counts_and_the_older_one_ends_without_a_word() -> None:
    streams = PeerStreams[str]("b")
    begun(streams, "first", "a")
    begun(streams, "second", "a")
    assert not streams.ended("first", "a")
    assert (streams.nodes, streams.find("a")) == (["a"], "second")
    assert streams.ended("second", "a")
    assert streams.nodes == []


def test_a_connection_without_a_name_or_with_this_nodes_own_is_not_wanted() -> None:
    streams = PeerStreams[str]("a")
    streams.opened("one", dialled=False)
    assert streams.is_unnamed("one")
    assert not streams.named("one", None)
    assert not streams.named("one", "a")
    assert not streams.is_unnamed("one")


def test_a_node_that_stops_wants_no_connection_and_makes_none() -> None:
    streams = PeerStreams[str]("a")
    streams.is_closed = True
    assert not streams.named("one", "b")
    assert streams.know(ADDRESSES) == []


def test_clients_that_do_not_say_who_they_are_give_way_to_new_ones() -> None:
    streams = PeerStreams[int]("a")
    gone = [streams.opened(number, dialled=False) for number in range(300)]
    assert [number for number in gone if number is not None] == list(range(300 - 256))
    assert streams.opened(1_000, dialled=True) is None


def test_the_first_failure_is_logged_and_pauses_grow_until_there_is_a_stream() -> None:
    attempts = PeerAttempts()
    assert [attempts.failed() for _ in range(3)] == [True, False, False]
    assert [attempts.pause() for _ in range(2)] == [PEER_STREAM.first, 2 * PEER_STREAM.first]
    attempts.succeeded()
    assert attempts.pause() == PEER_STREAM.first
    assert attempts.failed()
