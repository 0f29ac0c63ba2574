"""An etcd of our own: found or missed with advice, ready when it says so, stopped in order, its data kept."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.metadata.store.etcd import open_etcd_store
from penstock.runtime.local_cluster.etcd_cluster import plan_members, start_etcd
from penstock.runtime.local_cluster.etcd_process import (
    EtcdFailedError,
    EtcdMissingError,
    EtcdProcess,
    find_etcd,
)
from tests.ports import pairs_of_ports
from tests.runtime.harness import async_test


def runs(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


@async_test
async def test_what_was_written_is_there_after_a_stop_and_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETCD_NAME", "somebody-else")
    cluster = await start_etcd(tmp_path, heartbeat_ms=20, election_ms=100)
    (process,) = cluster.members
    try:
        store = await open_etcd_store(cluster.url)
        version = await store.put("a", b"x")
        await store.close()
        process_id = process.process_id
        assert process_id is not None
        cluster.stop()
        assert process.process_id is None
        assert not runs(process_id)
        cluster.stop()
        process.start()
        await process.ready()
        store = await open_etcd_store(cluster.url)
        assert await store.get("a") == ("a", b"x", version)
        await store.close()
    finally:
        cluster.stop()


@async_test
async def test_a_member_that_cannot_start_says_why(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        (member,) = plan_members(tmp_path, pairs_of_ports(1))
        process = EtcdProcess(replace(member, client_port=taken.getsockname()[1]))
        process.start()
        try:
            with pytest.raises(EtcdFailedError, match="address already in use"):
                await process.ready()
        finally:
            process.stop()


@async_test
async def test_a_member_without_its_others_is_not_ready(tmp_path: Path) -> None:
    first, _ = plan_members(tmp_path, pairs_of_ports(2))
    process = EtcdProcess(first)
    process.start()
    try:
        with pytest.raises(EtcdFailedError, match="not ready after"):
            await process.ready(0.3)
        assert process.process_id is not None
    finally:
        process.stop()
    assert process.process_id is None


def test_a_machine_without_etcd_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_etcd().name == "etcd"
    monkeypatch.setenv("PENSTOCK_ETCD", "/does/not/exist")
    with pytest.raises(EtcdMissingError, match="scripts/system-packages"):
        find_etcd()
