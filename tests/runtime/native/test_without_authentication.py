"""What the native guard does not allow clients that are not authenticated, or whose users may not. A real server, raw connections."""

from __future__ import annotations

from pathlib import Path

import msgspec

from penstock.frontend.native.greeter import GREETINGS_AT_MOST
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.runtime.embedded import running_server
from penstock.usage.stranger_rows import ROWS_A_MINUTE
from penstock.wire.credentials import Prove, client_proof, encode_proof
from penstock.wire.frames import encode_frame
from penstock.wire.messages import (
    Answer,
    Challenge,
    CreateQueue,
    DescribeQueue,
    Done,
    Failed,
    Hello,
    Ping,
    Request,
    Send,
    Subscribe,
    Welcome,
    encode_message,
)
from tests.runtime.harness import RawClient, async_test, small_config, until
from tests.runtime.native.test_users import ORDERS, Someone, UserServer, policy, serving_users

NONCE = b"n" * 32


async def challenged(there: UserServer, key: str) -> tuple[RawClient, bytes]:
    """Somebody who has shown a key and has to prove it."""
    client = await RawClient.connect(there.server.port, hello=False)
    challenge = await client.ask(Hello([1], "me", key, NONCE))
    assert isinstance(challenge, Challenge)
    return client, challenge.nonce


async def raw(there: UserServer, someone: Someone) -> RawClient:
    """A connection of a user."""
    client, nonce = await challenged(there, someone.access_key)
    proof = client_proof(someone.secret_key, someone.access_key, nonce, NONCE)
    assert isinstance(await client.ask(Prove(proof)), Welcome)  # type: ignore[arg-type]  # of the greeting, no request
    return client


async def guessed(there: UserServer, key: str) -> Answer:
    client, _ = await challenged(there, key)
    return await client.ask(Prove(b"guess"))  # type: ignore[arg-type]  # of the greeting, no request


@async_test
async def test_who_has_failed_too_often_is_not_told_which_keys_are_in_use(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config(sqs_failed_signatures=1)) as server:
        there = UserServer(server)
        root = await there.user("ada", root=True)
        await raw(there, root)
        for _ in range(15):
            told = await guessed(there, "AKIAGUESS")
        assert isinstance(told, Failed)
        assert told.code == ErrorCode.OVERLOADED
        assert await guessed(there, root.access_key) == told
        await raw(there, root)


@async_test
async def test_after_a_wrong_proof_nothing_more_of_the_same_bytes_is_looked_at(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        client, nonce = await challenged(there, root.access_key)
        right = client_proof(root.secret_key, root.access_key, nonce, NONCE)
        heads = [encode_proof(b"guess"), encode_proof(b"another"), encode_proof(right)]
        client.writer.write(b"".join(b"".join(encode_frame(7, head)) for head in heads))
        refused = await client.answer()
        assert isinstance(refused, Failed)
        assert refused.code == ErrorCode.UNAUTHENTICATED
        assert await client.is_dropped()
        assert [event.outcome for event in there.events] == ["unauthenticated"]


@async_test
async def test_a_greeting_nested_975_levels_deep_is_refused_with_users_and_without(tmp_path: Path) -> None:
    fields = msgspec.msgpack.decode(encode_message(Hello([1], "me")))
    plain = b"".join(map(msgspec.msgpack.encode, fields))
    head = bytes([0x90 + len(fields) + 1]) + plain + b"\x91" * 975 + b"\xc0"
    async with serving_users(tmp_path) as there:
        for users in (False, True):
            if users:
                await there.user("ada", root=True)
            stranger = await RawClient.connect(there.server.port, hello=False)
            stranger.writer.write(b"".join(encode_frame(7, head)))
            refused = await stranger.answer()
            assert isinstance(refused, Failed)
            assert refused.code == ErrorCode.BAD_REQUEST
            assert "8 levels" in refused.message
            assert await stranger.is_dropped()


@async_test
async def test_text_that_is_not_utf_8_harms_nobody(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        stranger = await RawClient.connect(there.server.port, hello=False)
        admitted = await raw(there, root)
        for client in (stranger, admitted):
            for head in (b"\xa1\x80", b"\x92\x07\xa1\x80", b"\x93\x01\x91\x01\xa1\x80"):
                client.writer.writelines(encode_frame(9, head))
                assert isinstance(await client.answer(), Failed)
        assert await admitted.ask(Ping()) == Done()


@async_test
async def test_a_stranger_who_never_greets_does_not_keep_its_place(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config(hello_timeout_ms=300)) as server:
        there = UserServer(server)
        await there.user("ada", root=True)
        stranger = await RawClient.connect(server.port, hello=False)
        assert isinstance(await stranger.ask(Ping()), Failed)
        late = await stranger.answer()
        assert isinstance(late, Failed)
        assert late.code == ErrorCode.UNAUTHENTICATED
        assert await stranger.is_dropped()


@async_test
async def test_an_id_in_use_hides_no_request_from_the_record(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        await there.user("ada", root=True)
        sam = await there.user("sam", "sqs:*")
        client = await raw(there, sam)
        queue_id = await client.create_queue("orders")
        client.write(Subscribe(queue_id, 10), request_id=77)
        client.write(Ping(), request_id=77)
        refused = await client.answer()
        assert isinstance(refused, Failed)
        assert refused.code == ErrorCode.BAD_REQUEST
        assert "77 is in use" in refused.message
        assert [event.outcome for event in there.events] == ["ok", "bad-request"]


@async_test
async def test_a_subscription_with_much_credit_ends_with_the_right_to_receive(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        sam = await there.user("sam", "sqs:*")
        client = await raw(there, sam)
        queue_id = await client.create_queue("orders")
        client.write(Subscribe(queue_id, 1_000_000), request_id=77)
        assert await client.ask(Ping()) == Done()
        deny = policy("Deny", ["sqs:ReceiveMessage"], ORDERS)
        await there.heard("users/sam", there.users.put_policy("sam", "q", deny))
        ended = await client.answer()
        assert isinstance(ended, Failed)
        assert ended.code == ErrorCode.ACCESS_DENIED
        assert await client.answer() == Done(), "the subscription has ended inside too"
        async with there.as_(root) as owner:
            await owner.queue("orders").send(b"x")
        assert await client.ask(Ping()) == Done(), "nothing was delivered before"


@async_test
async def test_a_queue_that_is_not_there_yet_cannot_be_guessed(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        sam = await there.user("sam", "sqs:CreateQueue")
        earlier = await (await raw(there, root)).create_queue("earlier")
        client = await raw(there, sam)
        requests: list[Request] = [CreateQueue("orders", QueueSettings())]
        requests += [Subscribe(earlier + ahead, 1) for ahead in range(1, 6)]
        frames = [encode_frame(100 + place, encode_message(one)) for place, one in enumerate(requests)]
        client.writer.write(b"".join(b"".join(frame) for frame in frames))
        answers = {frame.request_id for frame in [await client.frame() for _ in frames] if frame is not None}
        assert answers == set(range(100, 106)), "each subscription is refused at once"
        await until(lambda: len(there.events) >= 7)
        outcomes = {event.outcome for event in there.events if event.action == "ReceiveMessage"}
        assert outcomes <= {"queue-not-found", "access-denied"}


@async_test
async def test_names_that_no_queue_has_are_not_remembered(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        await there.user("ada", root=True)
        sam = await there.user("sam", "sqs:SendMessage")
        client = await raw(there, sam)
        refused = await client.ask(DescribeQueue("x" * 1_000_000))
        assert refused == Failed(ErrorCode.ACCESS_DENIED, "no queue has a name of 1000000 characters")
        assert isinstance(await client.ask(Send(999)), Failed)


@async_test
async def test_who_does_not_show_who_it_is_keeps_nobody_out(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config(max_connections=3)) as server:
        there = UserServer(server)
        root = await there.user("ada", root=True)
        user = await raw(there, root)
        silent = await RawClient.connect(server.port, hello=False)
        unproven, _ = await challenged(there, "AKIANOBODY")
        late = await raw(there, root)  # the silent one goes for it
        assert await silent.frame() is None
        latest = await raw(there, root)
        assert await unproven.frame() is None
        for known in (user, late, latest):
            assert await known.ask(Ping()) == Done()
        one_more = await RawClient.connect(server.port, hello=False)
        refused = await one_more.answer()
        assert isinstance(refused, Failed)
        assert refused.code == ErrorCode.LIMIT_REACHED


@async_test
async def test_greetings_that_fail_cannot_push_the_rows_of_users_out_of_the_record(tmp_path: Path) -> None:
    async with running_server(tmp_path, small_config()) as server:
        there = UserServer(server)
        await there.user("ada", root=True)
        for _ in range(4 * ROWS_A_MINUTE):
            client = await RawClient.connect(server.port, hello=False)
            assert isinstance(await client.ask(Hello([1], "me")), Failed)
        strangers = [event for event in there.events if not event.user]
        assert ROWS_A_MINUTE <= len(strangers) <= 2 * ROWS_A_MINUTE + 2  # a minute may end meanwhile


@async_test
async def test_who_talks_on_without_a_proof_is_cut_off(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        ada = await there.user("ada", root=True)
        for said in (Ping(), Hello([1], "me", ada.access_key, NONCE)):
            client = await RawClient.connect(there.server.port, hello=False)
            answers = [await client.ask(said) for _ in range(GREETINGS_AT_MOST)]
            assert all(isinstance(answer, Failed | Challenge) for answer in answers)
            client.write(said)
            refused = await client.answer()
            assert isinstance(refused, Failed)
            assert refused.code == ErrorCode.BAD_REQUEST
            assert await client.answer() is None
