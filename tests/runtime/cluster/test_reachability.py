"""Knocking at the nodes of a cluster: one that is still asked when another has taken us is not left in the middle."""

from __future__ import annotations

import asyncio
import os

from penstock.cluster.layout.entries import NodeEntry
from penstock.runtime.cluster.reachability import check_reachability
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.handshake import HANDSHAKE_FRAME_BYTES, NONCE_BYTES, ServerHandshake
from penstock.wire.messages import SERVICE
from tests.runtime.harness import async_test

SECRET = b"what the processes of this cluster know"


class SlowNode:
    """A node that takes whoever proves the secret, once it may look."""

    def __init__(self, may_look: asyncio.Event, turns: int = 0) -> None:
        self.may_look = may_look
        self.turns = turns
        """Of the loop, which it lets pass before it says anything."""
        self.took = asyncio.Event()

    async def open(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = writer.get_extra_info("sockname")
        handshake = ServerHandshake(SECRET, SERVICE, os.urandom(NONCE_BYTES), f"{host}:{port}")
        await self.may_look.wait()
        for _ in range(self.turns):
            await asyncio.sleep(0)
        writer.write(b"".join(encode_frame(0, handshake.challenge())))
        frames = FrameReader(HANDSHAKE_FRAME_BYTES)
        while data := await reader.read(HANDSHAKE_FRAME_BYTES):
            for frame in frames.feed(data):
                writer.write(b"".join(encode_frame(0, handshake.accept(frame.head))))
                self.took.set()
        writer.close()


@async_test
async def test_a_node_that_is_slower_than_another_is_not_left_in_the_middle() -> None:
    at_once = asyncio.Event()
    at_once.set()
    quick = SlowNode(at_once)
    slow = SlowNode(quick.took, turns=500)
    nodes = []
    async with asyncio.TaskGroup() as group:
        servers = [await asyncio.start_server(one.open, "127.0.0.1", 0) for one in (quick, slow)]
        for number, server in enumerate(servers):
            port = server.sockets[0].getsockname()[1]
            place = f"127.0.0.1:{port}"
            nodes.append(NodeEntry(node=f"node-{number}", native=place, peers=place, started_ms=1))
        await group.create_task(check_reachability(nodes, SECRET, None))
        assert slow.took.is_set()
        for server in servers:
            server.close()
