"""The one decoder of the layout: every kind of key, what cannot be read, and what is no entry at all."""

from __future__ import annotations

import pytest

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.decoder import (
    EVERYTHING,
    CapacityNews,
    DrainNews,
    NameNews,
    NodeNews,
    PartitionNews,
    PositionsNews,
    QueueNews,
    ReadFailure,
    UncleanNews,
    decode,
    decode_name,
    drained_in,
    nodes_in,
)
from penstock.model.document import DOCUMENTS, UNSEALED
from penstock.model.settings import QueueSettings

NODE = layout.NodeEntry(node="a", native="h:1", peers="h:2", started_ms=7)
QUEUE = layout.QueueEntry(name="q", queue_id=4, settings=QueueSettings(), created_ms=1, partitions=[5])
PARTITION = layout.PartitionEntry(
    partition=5,
    queue_id=4,
    queue="q",
    ordinal=0,
    settings=QueueSettings(),
    epoch=1,
    primary="a",
    replicas=["a"],
    in_sync=["a"],
)
POSITIONS = layout.PositionsEntry(node="a", started_ms=7, positions={})
CAPACITY = layout.CapacityEntry(
    queue="q",
    measured_ms=1,
    messages=1,
    bytes=1,
    messages_per_hour=0.0,
    bytes_per_hour=0.0,
    limit="",
    fill=0.0,
    full_at_ms=None,
    partitions=1,
    recommended_partitions=1,
)
KINDS = [
    (layout.node_key("a"), NODE, NodeNews, "a"),
    (layout.queue_key("q"), QUEUE, QueueNews, "q"),
    (layout.partition_key(5), PARTITION, PartitionNews, 5),
    (layout.drain_key("a"), layout.DrainEntry(node="a"), DrainNews, "a"),
    (layout.positions_key("a"), POSITIONS, PositionsNews, "a"),
    (layout.unclean_key(5), layout.UncleanEntry(partition=5, epoch=1), UncleanNews, 5),
    (layout.capacity_key("q"), CAPACITY, CapacityNews, "q"),
]


@pytest.mark.parametrize(("key", "entry", "kind", "subject"), KINDS)
def test_each_kind_of_key_gives_its_entry_and_that_it_is_gone(
    key: str, entry: layout.LayoutEntry, kind: type, subject: str | int
) -> None:
    assert decode(key, layout.encode(entry)) == kind(subject, entry, None)
    assert decode(key, None) == kind(subject, None, None)
    others = tuple(prefix for prefix in EVERYTHING if not key.startswith(prefix))
    assert decode(key, layout.encode(entry), others) is None


def test_every_kind_is_in_the_list_above() -> None:
    assert {prefix for prefix in EVERYTHING for key, *_ in KINDS if key.startswith(prefix)} == set(EVERYTHING)


@pytest.mark.parametrize(("key", "kind"), [(key, kind) for key, _, kind, _ in KINDS if kind is not DrainNews])
def test_what_cannot_be_read_is_a_failure_and_not_gone(key: str, kind: type) -> None:
    news = decode(key, b"{")
    assert news is not None
    assert type(news) is kind
    assert news.entry is None
    assert isinstance(news.failure, ReadFailure)
    assert not news.failure.is_too_new


def test_what_a_newer_version_wrote_or_has_no_seal_is_told_apart_from_damage() -> None:
    newer = b'{"needs":%d}' % (DOCUMENTS + 1)
    for value in (newer, UNSEALED):
        news = decode(layout.partition_key(5), value)
        assert isinstance(news, PartitionNews)
        assert news.failure is not None
        assert news.failure.is_too_new


def test_a_name_is_read_out_of_an_entry_that_is_too_new() -> None:
    key = layout.queue_key("q")
    newer = b'{"name":"q","queue_id":4,"state":"ready","needs":%d}' % (DOCUMENTS + 1)
    assert decode_name(key, newer) == NameNews("q", layout.NamedQueue(4), None)
    assert decode_name(key, None) == NameNews("q", None, None)
    assert decode_name(layout.node_key("q"), newer) is None
    news = decode(key, newer)
    assert isinstance(news, QueueNews)
    assert news.entry is None


def test_a_drain_needs_nothing_but_its_key() -> None:
    key = layout.drain_key("a")
    assert decode(key, b"{") == DrainNews("a", layout.DrainEntry(node="a"))
    assert drained_in([(key, b"{", 1), (layout.node_key("b"), b"{", 2)]) == ["a"]


def test_keys_that_name_no_entry_say_nothing() -> None:
    for key in (layout.NEXT_ID, layout.IDS, layout.PARTITIONS + "five", layout.UNCLEAN + "", "users/a"):
        assert decode(key, b"{}") is None


def test_nodes_that_cannot_be_read_do_not_hide_the_others() -> None:
    stored = [
        (layout.node_key("b"), b"{", 1),
        (layout.node_key("a"), layout.encode(NODE), 2),
        (layout.partition_key(5), layout.encode(PARTITION), 3),
    ]
    assert list(nodes_in(stored)) == [NODE]
