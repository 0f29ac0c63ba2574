"""A process of a cluster that is started before the cluster's metadata can be reached."""

from __future__ import annotations

import asyncio
import logging

import pytest

from penstock.metadata.store.etcd import open_etcd_store
from penstock.runtime.cluster import store as cluster_store
from penstock.runtime.cluster.store import open_cluster_store, telling_of_a_wait
from penstock.runtime.processes.listening import StartError, StrangerError
from tests.etcd_servers import EtcdServers
from tests.runtime.harness import async_test

SECRET = b"s" * 32


class Told(logging.Handler):
    """Something was logged."""

    def __init__(self, told: asyncio.Event) -> None:
        super().__init__()
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._told.set()


@async_test
async def test_it_waits_for_an_etcd_that_is_away_and_says_so_once(
    etcd_of_its_own: EtcdServers, caplog: pytest.LogCaptureFixture
) -> None:
    etcd = etcd_of_its_own.cluster
    etcd.stop()
    tries = 0

    async def pause(_: float) -> None:
        nonlocal tries
        tries += 1
        if tries == 2:
            etcd.start()
            await etcd.ready()

    store = await open_cluster_store(f"{etcd.url}/waited?timeout=1", SECRET, pause=pause)
    await store.put("a", b"1")
    await store.close()
    assert tries == 2
    (said,) = [record.getMessage() for record in caplog.records if "cannot reach" in record.getMessage()]
    assert f"cannot reach the cluster's metadata at {etcd.url}" in said
    assert "waiting until it answers" in said


@async_test
async def test_it_does_not_wait_for_what_can_never_be() -> None:
    with pytest.raises(StartError, match="cannot use --cluster etcd://nowhere:port"):
        await open_cluster_store("etcd://nowhere:port", SECRET)


@async_test
async def test_a_store_that_is_silent_is_told_of_long_before_it_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A server that takes connections and says nothing, as one does whose machine is in trouble."""
    taken = asyncio.Event()
    server = await asyncio.start_server(lambda reader, writer: taken.set(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    told = asyncio.Event()
    handler = Told(told)
    logging.getLogger(cluster_store.__name__).addHandler(handler)
    opening = asyncio.create_task(open_cluster_store(f"etcd://127.0.0.1:{port}/silent?timeout=60", SECRET))
    try:
        await told.wait()
        assert taken.is_set()
        assert not opening.done()
        (said,) = [
            record.getMessage() for record in caplog.records if "continues to try" in record.getMessage()
        ]
        assert said.startswith(f"the cluster's metadata at etcd://127.0.0.1:{port}/silent")
    finally:
        logging.getLogger(cluster_store.__name__).removeHandler(handler)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        server.close()


@async_test
async def test_nothing_is_said_of_what_takes_a_moment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster_store, "SLOW_SECONDS", 0.0)
    told = asyncio.Event()
    handler = Told(told)
    logging.getLogger(cluster_store.__name__).addHandler(handler)
    try:
        with telling_of_a_wait("etcd://quick"):
            pass
        with telling_of_a_wait("etcd://slow"):
            await told.wait()
    finally:
        logging.getLogger(cluster_store.__name__).removeHandler(handler)
    assert "etcd://slow does not answer" in caplog.text
    assert "quick" not in caplog.text


@async_test
async def test_a_process_with_another_secret_does_not_take_the_cluster_for_an_empty_one(
    etcd: EtcdServers,
) -> None:
    url = etcd.url()
    ours = await open_cluster_store(url, SECRET)
    await ours.put("cluster/queues/orders", b'{"name":"orders"}')
    await ours.close()
    with pytest.raises(StrangerError, match="sealed with another secret than this process has"):
        await open_cluster_store(url, b"x" * 32)
    plain = await open_etcd_store(url)
    await plain.put("cluster/queues/forged", b'{"name":"forged","seal":"' + b"0" * 64 + b'"}')
    await plain.close()
    again = await open_cluster_store(url, SECRET)  # nor does one that was made up keep anybody out
    await again.close()
