"""A process of a cluster that is started before the cluster's metadata can be reached."""

from __future__ import annotations

import pytest

from penstock.runtime.cluster_store import open_cluster_store
from penstock.runtime.listening import StartError
from tests.etcd_servers import EtcdServers
from tests.runtime.harness import async_test

SECRET = b"s" * 32


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
    assert "waits until it answers" in said


@async_test
async def test_it_does_not_wait_for_what_can_never_be() -> None:
    with pytest.raises(StartError, match="cannot use --cluster etcd://nowhere:port"):
        await open_cluster_store("etcd://nowhere:port", SECRET)
