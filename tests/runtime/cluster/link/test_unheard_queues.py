"""Consumers at a front end that has not heard of their queue, which another one has just made."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.cluster.layout.entries import first_partition, partition_key
from penstock.config.address import Address
from penstock.config.frontend import FrontendConfig
from penstock.metadata.users.administration import UserAdministration
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.cluster.link.gateway import bind_gateway, open_gateway
from penstock.runtime.processes.shared_services import shared_services
from penstock.runtime.processes.user_keys import open_user_keys
from penstock.wire import messages
from penstock.wire.credentials import Prove, client_proof
from tests.runtime.cluster.link.harness import SmallCluster, small_cluster
from tests.runtime.engine.linked_node import ask
from tests.runtime.harness import RawClient, async_test, until

RECEIVES = ("sqs:ReceiveMessage", "sqs:GetQueueAttributes")
NONCE = b"n" * 32
NOWHERE = 4_000_000


class CountingStore:
    """The store, and which entries were looked at."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.looks: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, key: str) -> Any:
        self.looks.append(key)
        return await self._store.get(key)


class DeafFrontEnd(NamedTuple):
    """A client of a front end that hears of nothing more, and the store that the front end asks."""

    client: RawClient
    store: CountingStore


@asynccontextmanager
async def deaf_front_end(cluster: SmallCluster, allowed: tuple[str, ...]) -> AsyncIterator[DeafFrontEnd]:
    """With actions that are allowed: the client is a user who may do these; else there are no users."""
    store = CountingStore(cluster.store)
    link = await cluster.link(store)
    with tempfile.TemporaryDirectory() as directory:
        config = FrontendConfig(data_directory=directory)
        records = await shared_services(
            config, link._world._mirror, await open_user_keys(config, cluster.store)
        )
        records.begin_usage("gateway", link)
        key = secret = ""
        if allowed:
            users = UserAdministration(cluster.store, secrets.token_bytes, lambda: 1)
            allow = {"Effect": "Allow", "Action": list(allowed), "Resource": "*"}
            policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
            master_key = records.users._master_key
            await users.create_user("ada", "000000000000", True, {}, master_key)
            _, made, secret = await users.create_user("sam", "000000000000", False, {"p": policy}, master_key)
            key = made.key_id
            await until(lambda: records.users.find_key(key) is not None)
        await link._world._mirror.close()
        bound = bind_gateway(Address("127.0.0.1", 0), has_users=False)
        gateway = await open_gateway(bound, link, records, None, "gateway", WallClock().now_ms)
        try:
            yield DeafFrontEnd(await greeted(gateway.address.port, key, secret), store)
        finally:
            await gateway.close()
            await records.close()


async def greeted(port: int, key: str, secret: str) -> RawClient:
    """A client that is let in."""
    if not key:
        return await RawClient.connect(port)
    client = await RawClient.connect(port, hello=False)
    challenge = await client.ask(messages.Hello([1], "me", key, NONCE))
    assert isinstance(challenge, messages.Challenge)
    proof = Prove(client_proof(secret, key, challenge.nonce, NONCE))
    assert isinstance(await client.ask(proof), messages.Welcome)  # type: ignore[arg-type]  # of the greeting, no request
    return client


async def made_elsewhere(cluster: SmallCluster, **settings: Any) -> int:
    """A queue with three messages, made through another front end."""
    other = await cluster.link()
    made = (await ask(other, messages.CreateQueue("orders", QueueSettings(**settings)))).answer
    assert isinstance(made, messages.QueueDescription)
    await ask(other, messages.Send(made.queue_id), encode_parts([b"a", b"b", b"c"]))
    return made.queue_id


def count_of(answer: messages.Answer | None) -> int:
    assert isinstance(answer, messages.Delivery), answer
    return sum(batch.count for batch in answer.batches)


either = pytest.mark.parametrize("allowed", [(), RECEIVES], ids=["no users", "a user"])


@either
@async_test
async def test_a_receive_and_a_subscription_find_the_queue(tmp_path: Path, allowed: tuple[str, ...]) -> None:
    async with small_cluster(tmp_path, ["one"]) as cluster, deaf_front_end(cluster, allowed) as (client, _):
        queue_id = await made_elsewhere(cluster)
        assert count_of(await client.ask(messages.Receive(queue_id, 1))) == 1
        assert count_of(await client.ask(messages.Subscribe(queue_id, 2, 2))) == 2


@either
@async_test
async def test_what_is_said_of_a_subscription_waits_for_it(tmp_path: Path, allowed: tuple[str, ...]) -> None:
    async with small_cluster(tmp_path, ["one"]) as cluster, deaf_front_end(cluster, allowed) as (client, _):
        queue_id = await made_elsewhere(cluster)
        subscription = client.write(messages.Subscribe(queue_id, 1, 1))
        client.write(messages.AddCredit(subscription, 2))
        assert [count_of(await client.answer()) for _ in range(3)] == [1, 1, 1]


@async_test
async def test_a_subscription_that_is_ended_before_it_begins_does_not_begin(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ["one"]) as cluster, deaf_front_end(cluster, RECEIVES) as (client, _):
        queue_id = await made_elsewhere(cluster)
        subscription = client.write(messages.Subscribe(queue_id, 3, 1))
        ending = client.write(messages.Unsubscribe(subscription))
        while (frame := await client.frame()) is not None and frame.request_id != ending:
            assert frame.request_id == subscription
        assert frame is not None
        assert messages.decode_answer(frame.head) == messages.Done()
        assert isinstance(await client.ask(messages.FindOffset(queue_id)), messages.Failed), (
            "and nothing else comes"
        )


@either
@async_test
async def test_a_log_is_found(tmp_path: Path, allowed: tuple[str, ...]) -> None:
    async with small_cluster(tmp_path, ["one"]) as cluster, deaf_front_end(cluster, allowed) as (client, _):
        queue_id = await made_elsewhere(cluster, consumption="log")
        read = await client.ask(messages.ReadLog(queue_id, 1))
        assert isinstance(read, messages.LogSlice)
        assert sum(batch.count for batch in read.batches) == 3


@either
@async_test
async def test_a_queue_that_does_not_exist_is_looked_for_once(
    tmp_path: Path, allowed: tuple[str, ...]
) -> None:
    async with (
        small_cluster(tmp_path, ["one"]) as cluster,
        deaf_front_end(cluster, allowed) as (client, store),
    ):
        for _ in range(50):
            client.write(messages.Receive(NOWHERE, 1))
        for _ in range(50):
            answer = await client.answer()
            assert isinstance(answer, messages.Failed)
            assert answer.code == ErrorCode.QUEUE_NOT_FOUND
        assert store.looks.count(partition_key(first_partition(NOWHERE))) == 1


@async_test
async def test_who_may_not_receive_is_told_so_and_not_that_there_is_no_queue(tmp_path: Path) -> None:
    allowed = ("sqs:SendMessage",)
    async with small_cluster(tmp_path, ["one"]) as cluster, deaf_front_end(cluster, allowed) as (client, _):
        queue_id = await made_elsewhere(cluster)
        for request in (messages.Receive(queue_id, 1), messages.Subscribe(queue_id, 1)):
            answer = await client.ask(request)
            assert isinstance(answer, messages.Failed)
            assert answer.code == ErrorCode.ACCESS_DENIED
