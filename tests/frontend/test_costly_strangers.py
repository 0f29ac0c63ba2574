"""What a request costs before it is known who makes it: no more than its bytes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.sqs.protocols.http import HttpRequest
from penstock.usage.stranger_rows import ROWS_A_MINUTE
from tests.frontend.pipeline import Key, Pipeline, json_request, query_request, read, signed

ENTRIES = 100_000
MEMORY_BYTES = 1 << 20
"""A tenth of what the parameters below take once they are objects."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path)
    pipeline.add_user("admin", root=True)
    yield pipeline
    pipeline.usage.close()


def many_entries() -> HttpRequest:
    """A batch of so many messages that nothing is said of."""
    body = b'{"QueueUrl":"orders","Entries":[' + b",".join([b"{}"] * ENTRIES) + b"]}"
    return msgspec.structs.replace(json_request("SendMessageBatch", {}), body=body)


def long_form() -> HttpRequest:
    """One parameter, every character of which is written as three."""
    request = query_request("SendMessage", QueueUrl="orders")
    return msgspec.structs.replace(request, body=request.body + b"&MessageBody=" + b"%41" * ENTRIES)


@pytest.mark.parametrize("request_", [many_entries(), long_form()], ids=["JSON", "form"])
@pytest.mark.parametrize("key", [None, Key("AKIANOBODY", "secret")], ids=["unsigned", "unknown key"])
def test_parameters_of_strangers_are_not_read(
    server: Pipeline, request_: HttpRequest, key: Key | None
) -> None:
    if key is not None:
        request_ = signed(request_, key, server.node.now_ms)
    tracemalloc.start()
    try:
        response = server.send(request_)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert response.status == 403
    assert most_bytes < MEMORY_BYTES


@pytest.mark.parametrize("who", ["unsigned", "unknown key", "wrong secret", "no right", "root"])
@pytest.mark.parametrize("action", ["SendMessage", "ListQueues", "GetQueueUrl", "NoSuchAction"])
def test_a_refused_request_does_not_stay_in_memory(server: Pipeline, who: str, action: str) -> None:
    """The collector of cycles runs after 20,000 objects: that is a thousand requests of four megabytes each."""
    root = server.add_user("ada", root=True)
    keys = {
        "unsigned": None,
        "unknown key": Key("AKIANOBODY", "secret"),
        "wrong secret": Key(root.key_id, "guess"),
        "no right": server.add_user("nobody"),
        "root": root,
    }
    key = keys[who]
    gc.collect()
    gc.disable()
    try:
        before = _requests_in_memory()
        for _ in range(3):
            server.call(action, key, QueueUrl="missing", QueueName="missing", MessageBody="x")
        assert _requests_in_memory() == before
    finally:
        gc.enable()


def _requests_in_memory() -> int:
    return sum(isinstance(one, HttpRequest) for one in gc.get_objects())


def test_strangers_are_not_told_what_is_wrong_with_what_they_ask(server: Pipeline) -> None:
    answer = read(server.send(json_request("NoSuchAction", {})))
    assert answer.error == "MissingAuthenticationTokenException"
    (row,) = server.recorded()
    assert (row["user"], row["action"], row["outcome"]) == ("", "", "MissingAuthenticationToken")


def test_strangers_cannot_push_the_rows_of_users_out_of_the_record(server: Pipeline) -> None:
    key = server.add_user("ada", root=True)
    for _ in range(10 * ROWS_A_MINUTE):
        assert server.call("ListQueues").status == 403
    server.must("ListQueues", key)
    rows = server.recorded()
    assert len(rows) == ROWS_A_MINUTE + 1
    assert [row["user"] for row in rows].count("ada") == 1


def test_refused_requests_that_have_no_row_are_counted(server: Pipeline) -> None:
    for _ in range(2 * ROWS_A_MINUTE):
        assert server.call("ListQueues").status == 403
    server.usage.record_sums(None)
    *_, row = server.recorded()
    assert (row["action"], row["messages"], row["outcome"]) == (
        "Refused",
        ROWS_A_MINUTE,
        "MissingAuthenticationToken",
    )
