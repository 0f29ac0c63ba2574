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
from penstock.config.monitoring import MonitoringOptions
from penstock.config.serve import ServeConfig
from penstock.runtime.embedded import ANY_PORT, EmbeddedServer, running_server
from penstock.runtime.monitoring.front_end import FrontEndSight
from penstock.runtime.monitoring.monitoring import open_monitoring
from penstock.runtime.processes.listening import StartError
from penstock.usage.collector import UsageTotals
from tests.runtime.harness import async_test

TOKEN = "0123456789abcdef"
NOTHING = UsageTotals(0, 0, 0, 0)


@asynccontextmanager
async def monitored(directory: Path) -> AsyncIterator[tuple[EmbeddedServer, Address]]:
    config = ServeConfig(listen=ANY_PORT, sqs_listen=None, monitoring_listen=ANY_PORT)
    async with running_server(directory, config) as server:
        assert server.broker.monitoring is not None
        yield server, server.broker.monitoring.address


async def look(
    address: Address, path: str, method: str = "GET", token: str | None = None, **more: str
) -> tuple[int, str, str]:
    def fetch() -> tuple[int, str, str]:
        connection = HTTPConnection(address.host, address.port, timeout=100)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request(method, path, headers=headers | more)
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


@pytest.mark.parametrize("path", ["/metrics", "/health"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example:9325"},
        {"Origin": "https://evil.example"},
        {"Referer": "https://evil.example/"},
        {"Sec-Fetch-Site": "cross-site"},
        {"X-Forwarded-For": "203.0.113.9"},
    ],
)
@async_test
async def test_a_web_page_of_another_site_sees_nothing(
    tmp_path: Path, path: str, headers: dict[str, str]
) -> None:
    async with monitored(tmp_path) as (server, address), penstock.connect(server.url) as client:
        await client.create_queue("secret-plans")
        status, _, text = await look(address, path, **headers)
        assert status == 403
        assert "secret-plans" not in text
        assert (await look(address, path, Host="localhost:9325"))[0] == 200
        typed = {"Host": "localhost:9325", "Sec-Fetch-Site": "none"}
        assert (await look(address, path, **typed))[0] == 200


@async_test
async def test_a_balancer_that_names_no_host_may_ask_for_health(tmp_path: Path) -> None:
    async with monitored(tmp_path) as (_, address):
        for path, answer in (("/health", b"HTTP/1.1 200"), ("/metrics", b"HTTP/1.1 403")):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            assert (await reader.read()).startswith(answer)
            writer.close()


@async_test
async def test_what_is_wrong_is_not_told_to_other_machines(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    way = Way()
    options = MonitoringOptions(monitoring_listen=ANY_PORT, monitoring_token_file=str(file))
    monitoring = await open_monitoring(options, FrontEndSight("front", 0, way, lambda: NOTHING))
    assert monitoring is not None
    try:
        assert (await look(monitoring.address, "/health", Host="10.0.0.5"))[::2] == (200, "ok\n")
        way.connected = False
        assert (await look(monitoring.address, "/health", Host="10.0.0.5"))[::2] == (503, "not well\n")
    finally:
        await monitoring.close()


@async_test
async def test_without_a_token_only_this_machine_may_look(tmp_path: Path) -> None:
    config = ServeConfig(listen=ANY_PORT, sqs_listen=None, monitoring_listen=Address("0.0.0.0", 0))
    with pytest.raises(StartError, match=r"figures of all queues.*monitoring\.token_file"):
        async with running_server(tmp_path, config):
            pass


@async_test
async def test_others_look_with_the_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    config = ServeConfig(
        listen=ANY_PORT,
        sqs_listen=None,
        monitoring_listen=Address("0.0.0.0", 0),
        monitoring_token_file=str(file),
    )
    async with running_server(tmp_path / "data", config) as server:
        assert server.broker.monitoring is not None
        address = Address("127.0.0.1", server.broker.monitoring.address.port)
        assert (await look(address, "/health"))[0] == 200
        for wrong in (None, "no", TOKEN[:-1], f"{TOKEN}0"):
            status, _, text = await look(address, "/metrics", token=wrong)
            assert (status, text) == (401, "show the token of monitoring.token_file\n")
        status, _, text = await look(address, "/metrics", token=TOKEN)
        assert status == 200
        assert "penstock_node_queues" in text


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot read monitoring.token_file .*: No such file"),
        (b"short", "at least 16 visible characters"),
        (b"with a space in it, which no header takes", "visible characters"),
        (b"\xff\xfe" * 20, "it is no text"),
    ],
)
def test_a_token_that_is_none_is_refused(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    config = MonitoringOptions(monitoring_listen=ANY_PORT, monitoring_token_file=str(file))
    with pytest.raises(StartError, match=complaint):
        asyncio.run(open_monitoring(config, FrontEndSight("front", 0, Way(), lambda: NOTHING)))


class Way:
    """To an engine that comes and goes."""

    connected = True


@async_test
async def test_a_front_end_shows_its_own_figures(tmp_path: Path) -> None:
    way = Way()
    sight = FrontEndSight("front", 5_500, way, lambda: UsageTotals(4, 3, 1, 0))
    monitoring = await open_monitoring(MonitoringOptions(monitoring_listen=ANY_PORT), sight)
    assert monitoring is not None
    try:
        _, _, text = await look(monitoring.address, "/metrics")
        assert "penstock_frontend_connected 1" in text.splitlines()
        assert "penstock_usage_dropped_total 1" in text.splitlines()
        assert (await look(monitoring.address, "/health"))[0] == 200
        way.connected = False
        assert "penstock_frontend_connected 0" in (await look(monitoring.address, "/metrics"))[2].splitlines()
        assert (await look(monitoring.address, "/health"))[::2] == (503, "no node can be reached\n")
    finally:
        await monitoring.close()
