"""Keys that are taken away while clients are connected with them, at several front ends of a cluster."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from penstock.config.address import Address
from penstock.config.frontend import FrontendConfig
from penstock.metadata.store.interface import Change, StoreUnavailableError
from penstock.metadata.users.administration import UserAdministration
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.cluster.link.gateway import bind_gateway, open_gateway
from penstock.runtime.processes.shared_services import SharedServices, shared_services
from penstock.runtime.processes.user_keys import open_user_keys
from penstock.wire import messages
from tests.runtime.cluster.link.harness import SmallCluster, small_cluster
from tests.runtime.cluster.link.test_unheard_queues import greeted
from tests.runtime.harness import RawClient, async_test, until

HOUR_MS = 3_600_000


class Line:
    """The store as one front end has it, which may be cut off from it."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, key: str) -> Any:
        self._check()
        return await self._store.get(key)

    async def list(self, prefix: str) -> Any:
        self._check()
        return await self._store.list(prefix)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        self._check()
        async for change in self._store.watch(prefix, after):
            self._check()
            yield change

    def _check(self) -> None:
        if self.is_cut:
            raise StoreUnavailableError("the store cannot be reached")


class Front(NamedTuple):
    """One front end."""

    port: int
    shared: SharedServices
    line: Line


@asynccontextmanager
async def two_front_ends(directory: Path) -> AsyncIterator[tuple[SmallCluster, list[Front]]]:
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(small_cluster(directory, ["one"]))
        fronts = []
        for _ in range(2):
            line = Line(cluster.store)
            link = await cluster.link(line)
            config = FrontendConfig(data_directory=str(directory / "front ends"))
            shared = await shared_services(
                config, link._world._mirror, await open_user_keys(config, cluster.store)
            )
            shared.begin_usage("gateway", link)
            stack.push_async_callback(shared.close)
            bound = bind_gateway(Address("127.0.0.1", 0), has_users=False)
            gateway = await open_gateway(bound, link, shared, None, "gateway", WallClock().now_ms)
            stack.push_async_callback(gateway.close)
            fronts.append(Front(gateway.address.port, shared, line))
        yield cluster, fronts


async def staged(cluster: SmallCluster, fronts: list[Front]) -> tuple[UserAdministration, str, str]:
    """Who changes users, and the key of a root, which both front ends know."""
    users = UserAdministration(cluster.store, secrets.token_bytes, lambda: 1)
    master_key = fronts[0].shared.users._master_key
    _, made, secret = await users.create_user("ada", "000000000000", True, {}, master_key)
    await users.create_user(
        "ben", "000000000000", True, {}, master_key
    )  # the last root could not lose its key
    await until(lambda: all(front.shared.users.find_key(made.key_id) for front in fronts))
    return users, made.key_id, secret


async def is_refused(client: RawClient) -> bool:
    """Whether the next that a client hears is that it may stay no longer."""
    refused = await client.answer()
    return (
        isinstance(refused, messages.Failed)
        and refused.code == ErrorCode.UNAUTHENTICATED
        and await client.is_dropped()
    )


@async_test
async def test_all_front_ends_refuse_a_key_that_is_taken_away(tmp_path: Path) -> None:
    async with two_front_ends(tmp_path) as (cluster, fronts):
        users, key, secret = await staged(cluster, fronts)
        idle, waiting = [await greeted(front.port, key, secret) for front in fronts]
        made = await waiting.ask(messages.CreateQueue("orders", QueueSettings()))
        assert isinstance(made, messages.QueueDescription)
        waiting.write(messages.Receive(made.queue_id, 1, HOUR_MS))
        await users.delete_key(key)
        assert await is_refused(idle)
        assert await is_refused(waiting)
        for front in fronts:
            again = await RawClient.connect(front.port, hello=False)
            assert isinstance(await again.ask(messages.Hello([1], "me", key, b"n" * 32)), messages.Challenge)
            assert front.shared.users.find_key(key) is None


@async_test
async def test_a_front_end_without_the_store_refuses_the_key_when_the_store_is_back(tmp_path: Path) -> None:
    async with two_front_ends(tmp_path) as (cluster, fronts):
        users, key, secret = await staged(cluster, fronts)
        near, far = [await greeted(front.port, key, secret) for front in fronts]
        fronts[1].line.is_cut = True
        await users.delete_key(key)
        assert await is_refused(near)
        await until(lambda: not fronts[1].shared.mirror.follows)
        assert await far.ask(messages.Ping()) == messages.Done(), "it goes on with the users that it knows"
        fronts[1].line.is_cut = False
        assert await is_refused(far)
