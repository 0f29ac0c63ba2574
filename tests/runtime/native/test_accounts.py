"""Accounts of the native protocol: each is shown its own queues, by one server and by a cluster's front end alike."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path

import pytest

import penstock
from penstock.metadata.users.administration import UserAdministration
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.processes.shared_services import SharedServices
from penstock.wire.messages import ListQueues, QueueList
from tests.runtime.cluster.readers.cluster import readable_cluster
from tests.runtime.harness import async_test, until
from tests.runtime.native.test_users import serving_users

HOME, ONE, TWO = "000000000000", "111111111111", "222222222222"
OWN = {
    HOME: ["orders", "orders-2", "zebras", f"{HOME}.eu-west-1.orders"],
    ONE: [f"{ONE}.eu-west-1.orders", f"{ONE}.us-east-1.orders", f"{ONE}.us-east-1.orders.fifo.late"],
    TWO: [f"{TWO}.us-east-1.orders"],
}


def is_known(shared: SharedServices, key_id: str) -> bool:
    return shared.users.find_key(key_id) is not None


async def names(client: penstock.Client, prefix: str = "") -> list[str]:
    return [
        queue.name async for queue in client.list_queues(prefix) if not queue.name.startswith("penstock.")
    ]


async def pages(client: penstock.Client, limit: int) -> list[list[str]]:
    found, after, more = [], "", True
    while more:
        page = await client._link.ask(ListQueues("", after, limit), QueueList)
        assert page.queues or not page.more, "a page that is empty ends a listing"
        found.append([queue.name for queue in page.queues])
        more, after = page.more, found[-1][-1] if found[-1] else ""
    return found


@async_test
async def test_a_user_sees_the_queues_of_its_account_and_no_others(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        async with penstock.connect(there.server.url) as anybody:
            for queues in OWN.values():
                for name in queues:
                    await anybody.create_queue(name)
            assert await names(anybody) == sorted(name for queues in OWN.values() for name in queues)
        roots = {account: await there.user(f"root-{account}", root=True, account=account) for account in OWN}
        sam = await there.user("sam", "sqs:ListQueues", on=f"arn:aws:sqs:*:{HOME}:*")
        oscar = await there.user("oscar", "sqs:ListQueues", on=f"arn:aws:sqs:*:{ONE}:*", account=ONE)
        nora = await there.user("nora", "sqs:SendMessage", on="*", account=ONE)
        for someone, account in (
            *((root, account) for account, root in roots.items()),
            (sam, HOME),
            (oscar, ONE),
        ):
            async with there.as_(someone) as client:
                assert await names(client) == sorted(OWN[account])
                for prefix in ("1", f"{ONE}.", "orders"):
                    seen = [name for name in sorted(OWN[account]) if name.startswith(prefix)]
                    assert await names(client, prefix) == seen
                other = TWO if account == ONE else ONE
                with pytest.raises(PenstockError, match="another account") as caught:
                    await names(client, f"{other}.us-east-1.")
                assert caught.value.code is ErrorCode.ACCESS_DENIED
        async with there.as_(nora) as client:
            with pytest.raises(PenstockError, match="sqs:ListQueues"):
                await names(client)
        async with there.as_(oscar) as client:
            # What a client says of owners itself is not believed.
            asked = await client._link.ask(ListQueues(owners=[TWO]), QueueList)
            assert [queue.name for queue in asked.queues] == sorted(OWN[ONE])
            with pytest.raises(PenstockError, match="sqs:ListQueues"):
                await client.describe_node()


@async_test
async def test_pages_are_full_until_the_last(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        async with penstock.connect(there.server.url) as anybody:
            for number in range(5):
                await anybody.create_queue(f"{ONE}.us-east-1.orders-{number}")
                await anybody.create_queue(f"{TWO}.us-east-1.orders-{number}")
                await anybody.create_queue(f"orders-{number}")
        await there.user("ada", root=True)
        for account, shown in ((ONE, f"{ONE}.us-east-1."), (TWO, f"{TWO}.us-east-1.")):
            root = await there.user(f"root-{account}", root=True, account=account)
            async with there.as_(root) as client:
                assert await pages(client, 2) == [
                    [f"{shown}orders-{number}" for number in numbers] for numbers in ((0, 1), (2, 3), (4,))
                ]


@async_test
async def test_what_sqs_cannot_say_belongs_to_the_account_it_begins_with(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        ada = await there.user("ada", root=True)
        odd = f"{ONE}.us-east-1.a.b.c"
        root = await there.user("one", root=True, account=ONE)
        async with there.as_(root) as owner, there.as_(ada) as client:
            await owner.create_queue(odd)
            with pytest.raises(PenstockError, match="another account"):
                await client.describe_queue(odd)


@async_test
async def test_damage_of_other_accounts_is_not_told(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        async with penstock.connect(there.server.url) as anybody:
            for name in ("orders", f"{ONE}.us-east-1.hidden"):
                await anybody.create_queue(name)
            catalogue = there.server.broker._node._parts.catalogue
            for partition_id in list(catalogue.partitions):
                catalogue.fence(partition_id, "a bit is another")
            assert len([text for text in (await anybody.describe_node()).damage if "hidden" in text]) == 1
        ada = await there.user("ada", root=True)
        async with there.as_(ada) as client:
            told = (await client.describe_node()).damage
            assert any("orders" in text for text in told)
            assert not any("hidden" in text for text in told)


@async_test
async def test_front_ends_of_a_cluster_show_an_account_its_own_queues(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        url = f"penstock://{cluster.front.address}"
        async with penstock.connect(url) as anybody:
            for number in range(3):
                await anybody.create_queue(f"{ONE}.us-east-1.orders-{number}")
                await anybody.create_queue(f"{TWO}.us-east-1.orders-{number}")
        shared = cluster.front_end._shared
        users = UserAdministration(cluster.front_end._store, secrets.token_bytes, lambda: 1)
        for name, account in (("ada", HOME), ("one", ONE)):
            _, made, secret = await users.create_user(name, account, True, {}, shared.users._master_key)
            await until(partial(is_known, shared, made.key_id))
            async with penstock.connect(url, access_key=made.key_id, secret_key=secret) as client:
                if account == HOME:
                    assert await names(client) == []
                    continue
                shown = [f"{ONE}.us-east-1.orders-{number}" for number in range(3)]
                assert await pages(client, 2) == [shown[:2], shown[2:]]
