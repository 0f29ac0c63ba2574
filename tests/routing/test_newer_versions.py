"""A front end that is too old for one queue of its cluster: it says so, and serves the others."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec
import pytest

from penstock.cluster.layout.entries import QueueEntry, decode_queue, encode, queue_key
from penstock.model.document import DOCUMENTS
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.routing.altering import alter
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.creating import made
from penstock.steps.step import AskAll, Look, Put, Stored
from penstock.wire.messages import AlterQueue

SENTENCE = "queue 'orders': a newer Penstock wrote it, and this process is too old for it"
QUEUE = QueueEntry(name="orders", queue_id=1, settings=QueueSettings(), created_ms=5, partitions=[])


def planted(**settings: Any) -> bytes:
    fields = msgspec.to_builtins(QUEUE)
    return msgspec.json.encode({**fields, "settings": {**fields["settings"], **settings}, "flavour": "sweet"})


def context(value: bytes) -> RoutingContext:
    cluster_map = ClusterMap()
    cluster_map.apply(queue_key("orders"), value)
    cluster_map.apply(queue_key("others"), encode(msgspec.structs.replace(QUEUE, name="others", queue_id=2)))
    return RoutingContext(cluster_map, producer=1, now_ms=lambda: 0, load=lambda _: 0.0)


def ended(steps: Generator[Any, Any, Any]) -> Any:
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


def test_a_queue_with_fields_that_are_not_known_is_served() -> None:
    found = ended(context(planted(taste=7)).found("orders"))
    assert (found.later, found.settings.later) == ({"flavour": "sweet"}, {"taste": 7})


def test_a_queue_that_needs_a_newer_version_says_so_and_others_are_served() -> None:
    routing = context(planted(needs=DOCUMENTS + 1))
    for steps in (routing.found("orders"), made(routing, "orders", QueueSettings(), may_differ=True)):
        with pytest.raises(PenstockError) as refused:
            ended(steps)
        assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
        assert refused.value.message.startswith(SENTENCE)
    assert ended(routing.found("others")).queue_id == 2
    routing.map.apply(queue_key("orders"), planted())
    assert ended(routing.found("orders")).queue_id == 1
    routing.map.apply(queue_key("orders"), planted(needs=DOCUMENTS + 1))
    routing.map.apply(queue_key("orders"), None)
    with pytest.raises(PenstockError) as gone:
        ended(routing.found("orders"))
    assert gone.value.code is ErrorCode.QUEUE_NOT_FOUND


def test_a_change_keeps_what_a_newer_version_put_there() -> None:
    routing = context(planted(taste=7))
    steps: Any = alter(routing, AlterQueue("orders", {"max_messages": 9}))
    step, written = next(steps), b""
    while not isinstance(step, AskAll):
        if isinstance(step, Put):
            written = step.value
        step = steps.send(Stored(planted(taste=7), 3) if isinstance(step, Look) else 4)
    entry = decode_queue(written)
    assert entry.settings.max_messages == 9
    assert (entry.later, entry.settings.later) == ({"flavour": "sweet"}, {"taste": 7})
