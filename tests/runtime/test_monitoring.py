"""`/metrics` and `/health` of a running server, looked at as Prometheus would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

import penstock
from penstock.config.address import Address
from penstock.config.serve import ServeConfig
from penstock.runtime.embedded import ANY_PORT, EmbeddedServer, running_server
from penstock.runtime.listening import StartError
from tests.runtime.harness import async_test


@asynccontextmanager
async def monitored(directory: Path) -> AsyncIterator[tuple[EmbeddedServer, Address]]:
    config = ServeConfig(listen=ANY_PORT, sqs_listen=None, monitoring_listen=ANY_PORT)
    async with running_server(directory, config) as server:
        assert server.broker.monitoring is not None
        yield server, server.broker.monitoring.address


async def look(address: Address, path: str, method: str = "GET") -> tuple[int, str, str]:
    def fetch() -> tuple[int, str, str]:
        connection = HTTPConnection(address.host, address.port, timeout=10)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type", ""), answer.read().decode()
        finally:
            connection.close()

    return await asyncio.to_thread(fetch)


@async_test
async def test_what_a_queue_holds_is_seen_from_outside(tmp_path: Path) -> None:
    async with monitored(tmp_path) as (server, address), penstock.connect(server.url) as client:
        queue = await client.create_queue("orders")
        await queue.send_batch([b"one", b"two", b"three"])
        status, kind, text = await look(address, "/metrics")
        assert status == 200
        assert kind.startswith("text/plain; version=0.0.4")
        assert 'penstock_queue_messages{queue="orders",state="ready"} 3' in text.splitlines()
        assert 'penstock_queue_sent_total{queue="orders"} 3' in text.splitlines()
        assert "penstock_node_queues 1" in text.splitlines()


@async_test
async def test_how_far_groups_of_readers_are_behind_is_seen_from_outside(tmp_path: Path) -> None:
    async with monitored(tmp_path) as (server, address), penstock.connect(server.url) as client:
        for name in ("clicks", "visits"):
            queue = await client.create_queue(name, consumption="log")
            await queue.send_batch([b"one", b"two", b"three"])
            async with queue.log().join("billing", follow=False, auto_commit=None) as reader:
                async for message in reader:
                    await reader.commit(message)
                    break
        _, _, text = await look(address, "/metrics")
        for name in ("clicks", "visits"):
            assert f'penstock_group_lag_messages{{queue="{name}",group="billing"}} 2' in text.splitlines()
            assert f'penstock_group_members{{queue="{name}",group="billing"}} 0' in text.splitlines()


@async_test
async def test_there_may_be_more_queues_than_a_page_has(tmp_path: Path) -> None:
    async with monitored(tmp_path) as (server, address), penstock.connect(server.url) as client:
        await asyncio.gather(*(client.create_queue(f"queue-{number:04}") for number in range(1_100)))
        _, _, text = await look(address, "/metrics")
        assert text.count('penstock_queue_sent_total{queue="queue-') == 1_100


@async_test
async def test_health_and_other_paths(tmp_path: Path) -> None:
    async with monitored(tmp_path) as (_, address):
        assert (await look(address, "/health"))[::2] == (200, "ok\n")
        assert (await look(address, "/"))[0] == 404
        assert (await look(address, "/metrics", "POST"))[0] == 405


@async_test
async def test_only_this_machine_may_look(tmp_path: Path) -> None:
    config = ServeConfig(listen=ANY_PORT, sqs_listen=None, monitoring_listen=Address("0.0.0.0", 0))
    with pytest.raises(StartError, match="figures of all queues"):
        async with running_server(tmp_path, config):
            pass
