"""Users of the native protocol: who is let in, what they may do, and what is recorded of it. A real server, real clients."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import penstock
from penstock.config import Address
from penstock.metadata.store.interface import MetadataStore
from penstock.metadata.users.administration import UserAdministration
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.embedded import EmbeddedServer, running_server
from penstock.runtime.processes.listening import StartError
from penstock.usage.event import Row, UsageEvent
from penstock.wire.credentials import Prove, client_proof
from penstock.wire.messages import Challenge, Failed, Hello, Send, Welcome, decode_answer
from tests.runtime.harness import RawClient, async_test, small_config, until

ORDERS = "arn:aws:sqs:us-east-1:000000000000:orders"


class Someone(NamedTuple):
    """A user's key."""

    access_key: str
    secret_key: str


class UserServer:
    """A server, the users it has, and what it has recorded."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        assert server.broker.shared is not None
        self._shared = server.broker.shared
        self.events: list[UsageEvent] = []
        record_all = self._shared.usage.record_all

        def seen(rows: list[Row]) -> None:
            self.events += [UsageEvent(*row) for row in rows]
            record_all(rows)

        self._shared.usage.record_all = seen  # type: ignore[method-assign]  # to look over its shoulder

    @property
    def users(self) -> UserAdministration:
        """Changes users behind the server's back, as the command line does; it hears of it in a moment."""
        assert self._shared._store is not None
        return UserAdministration(self._shared._store, secrets.token_bytes, lambda: 1)

    async def deafen(self) -> None:
        """The server hears of no change of the metadata any more."""
        await self._shared.mirror.close()

    @asynccontextmanager
    async def store(self) -> AsyncIterator[MetadataStore]:
        """The metadata as another process of the same server has it."""
        assert self._shared._store is not None
        yield self._shared._store

    async def lose_store(self) -> None:
        """The store cannot be reached any more."""
        assert self._shared._store is not None
        await self._shared._store.close()

    async def heard(self, key: str, change: Awaitable[object]) -> None:
        """Makes a change of users, and returns when the server knows."""
        before = self._shared.metadata.version(key)
        await change
        await until(lambda: self._shared.metadata.version(key) != before)

    async def user(
        self,
        name: str,
        *allowed: str,
        on: str = ORDERS,
        root: bool = False,
        account: str = "000000000000",
    ) -> Someone:
        """A new user who may do these things."""
        policies = {"p": policy("Allow", list(allowed), on)} if allowed else {}
        key = self._shared.users._master_key
        _, made, secret = await self.users.create_user(name, account, root, policies, key)
        await until(lambda: self._shared.users.find_key(made.key_id) is not None)
        return Someone(made.key_id, secret)

    def as_(self, someone: Someone, **more: Any) -> Any:
        """A client of somebody."""
        return penstock.connect(
            self.server.url, access_key=someone.access_key, secret_key=someone.secret_key, **more
        )


def policy(effect: str, actions: list[str], resource: str, **more: Any) -> str:
    statement = {"Effect": effect, "Action": actions, "Resource": resource, **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@asynccontextmanager
async def serving_users(tmp_path: Path) -> AsyncIterator[UserServer]:
    async with running_server(tmp_path, small_config()) as server:
        yield UserServer(server)


@async_test
async def test_without_users_anybody_may_and_from_the_first_on_nobody_else(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there, penstock.connect(there.server.url) as early:
        await early.create_queue("orders")
        root = await there.user("ada", root=True)
        with pytest.raises(PenstockError, match="this server has users") as caught:
            await early.describe_queue("orders")
        assert caught.value.code is ErrorCode.UNAUTHENTICATED
        with pytest.raises(PenstockError, match="PENSTOCK_ACCESS_KEY"):
            await penstock.connect(there.server.url)
        async with there.as_(root) as client:
            await client.queue("orders").send(b"x")


@async_test
async def test_an_unknown_key_and_a_wrong_secret_are_refused_alike_and_nothing_repeats_the_secret(
    tmp_path: Path,
) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        told = []
        for key, secret in ((root.access_key, "wrong-secret"), ("AKIAUNKNOWN", "wrong-secret")):
            with pytest.raises(PenstockError) as caught:
                await penstock.connect(there.server.url, access_key=key, secret_key=secret)
            assert caught.value.code is ErrorCode.UNAUTHENTICATED
            assert "wrong-secret" not in str(caught.value)
            told.append(caught.value.message.replace(key, "KEY"))
        assert told[0] == told[1]
        assert [(event.action, event.outcome, event.user) for event in there.events] == [
            ("Connect", "unauthenticated", ""),
            ("Connect", "unauthenticated", ""),
        ]


@async_test
async def test_the_secret_never_travels_and_a_proof_is_good_for_one_connection(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        first = await RawClient.connect(there.server.port, hello=False)
        nonce = b"n" * 32
        challenge = await first.ask(Hello([1], "me", root.access_key, nonce))
        assert isinstance(challenge, Challenge)
        proof = client_proof(root.secret_key, root.access_key, challenge.nonce, nonce)
        assert isinstance(await first.ask(Prove(proof)), Welcome)  # type: ignore[arg-type]  # of the greeting, no request
        again = await RawClient.connect(there.server.port, hello=False)
        assert isinstance(await again.ask(Hello([1], "me", root.access_key, nonce)), Challenge)
        refused = await again.ask(Prove(proof))  # type: ignore[arg-type]  # of the greeting, no request
        assert isinstance(refused, Failed)
        assert refused.code == ErrorCode.UNAUTHENTICATED
        assert await again.frame() is None, "the connection ends"


@async_test
async def test_nothing_is_done_for_who_has_not_proven_anything(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        async with there.as_(root) as client:
            await client.create_queue("orders")
        stranger = await RawClient.connect(there.server.port, hello=False)
        refused = await stranger.ask(Send(1))
        assert isinstance(refused, Failed)
        assert refused.code == ErrorCode.BAD_REQUEST
        assert isinstance(await stranger.ask(Hello([1], "me", root.access_key, b"n" * 32)), Challenge)
        refused = await stranger.ask(Send(1))
        assert isinstance(refused, Failed)


@async_test
async def test_a_stranger_cannot_make_the_server_hold_a_large_frame(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        stranger = await RawClient.connect(there.server.port, hello=False)
        stranger.write(Send(1), b"x" * 100_000)
        answer = await stranger.frame()
        assert answer is not None
        refused = decode_answer(answer.head)
        assert isinstance(refused, Failed)
        assert refused.code == ErrorCode.BAD_FRAME
        async with there.as_(root) as client:
            await (await client.create_queue("orders")).send(b"x" * 100_000)


@async_test
async def test_too_many_failures_from_one_address_lock_out_only_who_was_never_right(tmp_path: Path) -> None:
    config = small_config(sqs_failed_signatures=1)
    async with running_server(tmp_path, config) as server:
        there = UserServer(server)
        root = await there.user("ada", root=True)
        async with there.as_(root):
            pass
        codes = set()
        for _ in range(15):
            client = await RawClient.connect(server.port, hello=False)
            await client.ask(Hello([1], "me", "AKIAGUESS", b"n" * 32))
            answer = await client.ask(Prove(b"guess"))  # type: ignore[arg-type]  # of the greeting, no request
            assert isinstance(answer, Failed)
            codes.add(answer.code)
        assert codes == {ErrorCode.UNAUTHENTICATED, ErrorCode.OVERLOADED}
        async with there.as_(root) as client:
            await client.create_queue("orders")


@async_test
async def test_policies_decide_what_a_user_may_do(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        sender = await there.user("sam", "sqs:SendMessage", "sqs:GetQueueAttributes")
        async with there.as_(root) as owner, there.as_(sender) as client:
            await owner.create_queue("orders")
            await owner.create_queue("others")
            queue = client.queue("orders")
            await queue.send(b"x")
            for refused in (
                queue.receive(),
                queue.purge(),
                client.create_queue("mine"),
                client.delete_queue("orders"),
                client.alter_queue("orders", retention=60),
                client.describe_queue("others"),
                client.describe_queue("nowhere"),
                anext(client.list_queues()),
                client.describe_node(),
            ):
                with pytest.raises(
                    PenstockError, match=r"user 'sam' may not do this: no policy allows sqs:"
                ) as caught:
                    await refused
                assert caught.value.code is ErrorCode.ACCESS_DENIED
            with pytest.raises(PenstockError, match="on this queue of another account"):
                await client.describe_queue("111111111111.us-east-1.hidden")
            (message,) = await owner.queue("orders").receive()
            await message.delete()
        mine = [(event.action, event.outcome) for event in there.events if event.user == "sam"]
        assert ("SendMessage", "ok") in mine
        assert ("ReceiveMessage", "access-denied") in mine
        assert {event.queue for event in there.events if event.action == "SendMessage"} == {ORDERS}


@async_test
async def test_dead_letters_are_no_way_into_other_queues(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        await there.user("ada", root=True)
        sam = await there.user("sam", "sqs:CreateQueue", "sqs:SetQueueAttributes")
        async with there.as_(sam) as client:
            await client.create_queue("orders")
            with pytest.raises(PenstockError, match=r"sqs:CreateQueue on .*:others"):
                await client.alter_queue("orders", dead_letter_queue="others")
            with pytest.raises(PenstockError, match="account of its queue"):
                await client.alter_queue("orders", dead_letter_queue="111111111111.us-east-1.others")


@async_test
async def test_a_receipt_is_no_way_round_a_policy(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        reader = await there.user("ray", "sqs:ReceiveMessage", "sqs:GetQueueAttributes")
        async with there.as_(root) as owner, there.as_(reader) as client:
            await (await owner.create_queue("orders")).send(b"x")
            (message,) = await client.queue("orders").receive()
            with pytest.raises(PenstockError, match="sqs:DeleteMessage"):
                await message.delete()
            with pytest.raises(PenstockError, match="sqs:ChangeMessageVisibility"):
                await message.release()


@async_test
async def test_a_change_of_policies_counts_at_once_for_connections_that_are_open(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        sam = await there.user("sam", "sqs:SendMessage", "sqs:GetQueueAttributes")
        async with there.as_(root) as owner, there.as_(sam) as client:
            await owner.create_queue("orders")
            queue = client.queue("orders")
            await queue.send(b"x")
            deny = policy("Deny", ["sqs:SendMessage"], ORDERS)
            await there.heard("users/sam", there.users.put_policy("sam", "q", deny))
            with pytest.raises(PenstockError, match="sqs:SendMessage"):
                await queue.send(b"x")
            await there.heard("users/sam", there.users.delete_policy("sam", "q"))
            await queue.send(b"x")
            key = sam.access_key
            await there.heard(f"keys/{key}", there.users.set_key_enabled(key, False))
            with pytest.raises(PenstockError) as caught:
                await queue.send(b"x")
            assert caught.value.code is ErrorCode.UNAUTHENTICATED


@async_test
async def test_a_subscription_ends_when_its_user_may_receive_no_longer(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        sam = await there.user("sam", "sqs:*")
        async with there.as_(root) as owner, there.as_(sam) as client:
            queue = await owner.create_queue("orders")
            await queue.send_batch([b"%d" % number for number in range(200)])
            got = 0

            async def consume() -> None:
                nonlocal got
                async with client.queue("orders").consume(credit=10) as consumer:
                    async for message in consumer:
                        await message.delete()
                        got += 1
                        if got == 5:
                            deny = policy("Deny", ["sqs:ReceiveMessage"], ORDERS)
                            await there.heard("users/sam", there.users.put_policy("sam", "q", deny))

            with pytest.raises(PenstockError, match="sqs:ReceiveMessage"):
                await consume()
            assert 5 <= got < 200


@async_test
async def test_only_penstock_itself_writes_to_its_logs(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        await there.user("ada", root=True)
        sam = await there.user("sam", "sqs:*", on="*")
        async with there.as_(sam) as client:
            await client.create_queue("orders")
            found = await client.describe_queue("orders")
            with pytest.raises(PenstockError, match="only Penstock itself"):
                await client._link.ask(Send(found.queue_id, internal=True), Welcome)


@async_test
async def test_every_request_is_one_row_and_reading_the_rows_makes_none(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there, penstock.connect(there.server.url) as client:
        queue = await client.create_queue("orders")
        await queue.send_batch([b"12345"] * 30)
        got = await queue.receive(max_messages=10)
        await got.delete()
        await client.describe_queue("orders")
        async with queue.consume() as consumer:
            async for message in consumer:
                await message.delete()
                if message.sequence == 30:
                    break
        rows = [
            (event.action, event.queue, event.messages, event.outcome, event.status) for event in there.events
        ]
        assert rows[:5] == [
            ("CreateQueue", ORDERS, 0, "ok", 200),
            ("SendMessage", ORDERS, 30, "ok", 200),
            ("ReceiveMessage", ORDERS, 10, "ok", 200),
            ("DeleteMessage", ORDERS, 10, "ok", 200),
            ("GetQueueAttributes", ORDERS, 0, "ok", 200),
        ]
        by_action = {
            action: sum(row[2] for row in rows if row[0] == action)
            for action in ("ReceiveMessage", "DeleteMessage")
        }
        assert by_action == {"ReceiveMessage": 30, "DeleteMessage": 30}
        send = there.events[1]
        assert send.bytes_in > 150
        assert send.latency_us > 0
        assert (send.user, send.address) == ("anonymous", "127.0.0.1")
        assert len({event.request_id for event in there.events}) == len(there.events)
        shared = there.server.broker.shared
        assert shared is not None
        await shared.hand_on()
        before = len(there.events)
        found = [message async for message in client.queue("penstock.usage").log().messages()]
        assert found
        assert len(there.events) == before


@async_test
async def test_with_users_it_listens_beyond_this_machine_and_without_it_says_why_not(tmp_path: Path) -> None:
    everywhere = small_config(listen=Address("0.0.0.0", 0))
    with pytest.raises(StartError, match="penstock user create NAME --root"):
        async with running_server(tmp_path, everywhere):
            pass
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
    async with running_server(tmp_path, everywhere) as server:
        url = f"penstock://127.0.0.1:{server.port}"
        with pytest.raises(PenstockError, match="this server has users"):
            await penstock.connect(url)
        async with penstock.connect(url, access_key=root.access_key, secret_key=root.secret_key) as client:
            await client.create_queue("orders")
