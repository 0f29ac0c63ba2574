"""The walks of the architecture page: what it says they pass is counted here.

The figures on the page are upper limits with a little room: more files than it says fail, and so do many fewer.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from penstock.model.batch import encode_one
from penstock.runtime.embedded import running_server
from penstock.wire import messages
from penstock.wire.messages import Delivery, Receive, Request, Send
from tests.runtime.cluster.readers.cluster import readable_cluster
from tests.runtime.harness import RawClient, async_test, small_config, until
from tests.runtime.walks.trace import Trace, traced

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
ROUNDS = 40
"""The smallest of so many counts: housekeeping falls into some of them."""
SLACK = 8
WALK = re.compile(r"^## (.*, walked through the files)$")
LINK = re.compile(r"\]\(\.\./(src/penstock/[a-z_/]+\.py)\)")
NAMED = re.compile(r"\bnames ([0-9]+) files\b")


@async_test
async def test_a_send_message(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        address = server.sqs_url.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*address.split(":"))
        made = await _asked(reader, writer, address, "CreateQueue", {"QueueName": "orders"})
        send = {"QueueUrl": made["QueueUrl"], "MessageBody": "a message"}
        traces = []
        for _ in range(ROUNDS):
            with traced() as trace:
                sent = await _asked(reader, writer, address, "SendMessage", send)
            assert sent["MessageId"]
            traces.append(trace)
        writer.close()
    _compare("A SendMessage", traces)


@async_test
async def test_a_usage_row(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        address = server.sqs_url.removeprefix("http://")
        reader, writer = await asyncio.open_connection(*address.split(":"))
        await _asked(reader, writer, address, "ListQueues", {})
        shared = server.broker.shared
        assert shared is not None
        await until(lambda: shared.usage_totals().reported == 1)
        traces = []
        for _ in range(ROUNDS):
            await _asked(reader, writer, address, "ListQueues", {})
            with traced() as trace:
                await shared.hand_on()
            if trace.of_the_front_end:  # else the server was first, and there was nothing left to hand on
                traces.append(trace)
        writer.close()
    _compare("A usage row", traces)


@async_test
async def test_a_native_receive_through_a_cluster(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        assert cluster.front_end.native_address is not None
        queue = await cluster.client.create_queue("orders")
        client = await RawClient.connect(cluster.front_end.native_address.port)
        queue_id = (await queue.describe()).queue_id
        traces = []
        for _ in range(ROUNDS):
            await client.ask(Send(queue_id), encode_one(b"a message"))
            with traced() as trace:
                got = await client.ask(Receive(queue_id, 1))
            assert isinstance(got, Delivery)
            assert got.batches
            traces.append(trace)
        client.close()
    _compare("A native receive through a cluster", traces)


@async_test
async def test_the_head_of_a_native_request_is_decoded_once_in_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[Request] = []

    def decode(head: bytes) -> Request:
        decoded.append(real(head))
        return decoded[-1]

    real = messages.decode_request
    monkeypatch.setattr(messages, "decode_request", decode)
    async with readable_cluster(tmp_path) as cluster:
        assert cluster.front_end.native_address is not None
        queue = await cluster.client.create_queue("orders")
        client = await RawClient.connect(cluster.front_end.native_address.port)
        queue_id = (await queue.describe()).queue_id
        decoded.clear()
        await client.ask(Send(queue_id), encode_one(b"a message"))
        await client.ask(Receive(queue_id, 1))
        client.close()
    kinds = [type(request) for request in decoded if not (isinstance(request, Send) and request.internal)]
    assert kinds.count(Send) == 2, "once in the front end, once in the node"
    assert kinds.count(Receive) == 2


@pytest.mark.parametrize(
    "heading", [m[1] for line in PAGE.read_text().splitlines() if (m := WALK.match(line))]
)
def test_a_walk_says_how_many_files_it_names(heading: str) -> None:
    _, _, rest = PAGE.read_text().partition(f"## {heading}\n")
    section = rest.partition("\n## ")[0]
    linked = set(LINK.findall(section))
    said = NAMED.search(" ".join(section.split()))
    assert said is not None, f"{heading!r} does not say that it names {len(linked)} files"
    assert int(said[1]) == len(linked), f"{heading!r} names {len(linked)} files"


def _compare(what: str, traces: list[Trace]) -> None:
    """With the row of the page's table, `| what | files | of the front end | calls |`."""
    row = re.search(
        rf"^\| {what}\b[^|]*\| ([0-9]+) \| ([0-9]+) \| ([0-9]+) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert row is not None, f"the architecture page has no row for {what}"
    found = (
        min(len(trace.files) for trace in traces),
        min(trace.of_the_front_end for trace in traces),
        min(trace.calls for trace in traces),
    )
    said = tuple(map(int, row.groups()))
    slack = (SLACK, SLACK, SLACK * 5)
    near = all(0 <= most - count <= free for most, count, free in zip(said, found, slack, strict=True))
    assert near, f"{what} passes (files, of the front end, calls) {found}, and the page says {said}"


async def _asked(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    host: str,
    action: str,
    members: dict[str, str],
) -> dict[str, str]:
    body = json.dumps(members).encode()
    lines = ("POST / HTTP/1.1", f"Host: {host}", "Content-Type: application/x-amz-json-1.0")
    head = "\r\n".join((*lines, f"X-Amz-Target: AmazonSQS.{action}", f"Content-Length: {len(body)}", "", ""))
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    size = re.search(rb"Content-Length: ([0-9]+)", answer)
    assert size is not None
    read: dict[str, str] = json.loads(await reader.readexactly(int(size[1])))
    return read
