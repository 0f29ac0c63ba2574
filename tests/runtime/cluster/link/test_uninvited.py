"""What clients of a cluster's front end may not say: before they are let in, and what only processes say to each other."""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from penstock.metadata.users.administration import UserAdministration
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.wire import messages
from penstock.wire.credentials import LINK_KEY, encode_proof
from penstock.wire.deduplication_messages import ClaimIds, FindIds
from penstock.wire.frames import encode_frame
from tests.runtime.cluster.link.harness import small_cluster
from tests.runtime.cluster.link.test_gateway import gateway_of
from tests.runtime.cluster.link.test_unheard_queues import NONCE, greeted
from tests.runtime.harness import RawClient, async_test, until

VERSION = messages.PROTOCOL_VERSION
LAST = 9_999


@asynccontextmanager
async def guarded(directory: Path) -> AsyncIterator[tuple[int, str, str]]:
    """A front end with users: its port, and the key and the secret of a root."""
    async with small_cluster(directory, ["one"]) as cluster, gateway_of(cluster) as (gateway, records):
        users = UserAdministration(cluster.store, secrets.token_bytes, lambda: 1)
        _, made, secret = await users.create_user("ada", "000000000000", True, {}, records.users._master_key)
        await until(lambda: records.users.find_key(made.key_id) is not None)
        yield gateway.address.port, made.key_id, secret


async def heard(port: int, heads: list[bytes]) -> list[messages.Answer]:
    """All that a client hears that says these things."""
    client = await RawClient.connect(port, hello=False)
    for number, head in enumerate(heads, start=1):
        client.writer.writelines(encode_frame(number, head))
    client.writer.writelines(encode_frame(LAST, messages.encode_message(messages.Ping())))
    found: list[messages.Answer] = []
    while (frame := await client.frame()) is not None:
        found.append(messages.decode_answer(frame.head))
        if frame.request_id == LAST:
            break
    client.writer.close()
    return found


def encoded(*fields: object) -> bytes:
    return msgspec.msgpack.encode(list(fields))


ODD = {
    "more fields": encoded(1, [VERSION], "me", "", b"", 5),
    "a key that is none": encoded(1, [VERSION], "me", 5, b""),
    "versions as a text": encoded(1, "x", "me"),
    "versions as floats": encoded(1, [float(VERSION)], "me"),
    "the kind as a text": encoded("1", [VERSION], "me"),
    "the kind as a float": encoded(1.0, [VERSION], "me"),
    "bytes for texts": encoded(1, [VERSION], b"me"),
    "no text at all": b"\x93\x01\x91\x01\xa2\xed\xa0",
    "something behind it": encoded(1, [VERSION], "me") + b"\xc0",
    "the rest missing": encoded(1),
    "a map": msgspec.msgpack.encode({"type": 1, "versions": [VERSION], "client": "me"}),
    "a proof of nothing": encode_proof(b""),
    "the other front ends' name": encoded(1, [VERSION], "me", LINK_KEY, NONCE),
}


@pytest.mark.parametrize("head", ODD.values(), ids=ODD)
@async_test
async def test_odd_greetings_let_nobody_in(tmp_path: Path, head: bytes) -> None:
    async with guarded(tmp_path) as (port, _, _):
        follow = [messages.encode_message(messages.ListQueues()), encode_proof(b"p" * 32)]
        for answer in await heard(port, [head, *follow]):
            assert isinstance(answer, messages.Failed | messages.Challenge)


@async_test
async def test_bent_greetings_let_nobody_in(tmp_path: Path) -> None:
    dice = random.Random(7)
    async with guarded(tmp_path) as (port, key, _):
        for _ in range(60):
            shown, nonce = dice.choice(["", key, LINK_KEY]), dice.choice([b"", NONCE])
            head = bytearray(messages.encode_message(messages.Hello([VERSION], "me", shown, nonce)))
            for _ in range(dice.randrange(1, 4)):
                head[dice.randrange(len(head))] = dice.randrange(256)
            for answer in await heard(port, [bytes(head), messages.encode_message(messages.ListQueues())]):
                assert isinstance(answer, messages.Failed | messages.Challenge), bytes(head)


@async_test
async def test_what_only_processes_say_to_each_other_is_not_taken_of_a_client(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (port, key, secret):
        client = await greeted(port, key, secret)
        made = await client.ask(messages.CreateQueue("orders", QueueSettings()))
        assert isinstance(made, messages.QueueDescription)
        queue_id = made.queue_id
        for request in (ClaimIds(queue_id, [b"id"], [0], [0]), FindIds(queue_id, [b"id"], [1], False)):
            refused = await client.ask(request)
            assert isinstance(refused, messages.Failed)
            assert refused.code == ErrorCode.UNKNOWN_REQUEST
        body = encode_parts([b"one"])
        internal = await client.ask(messages.Send(queue_id, internal=True), body)
        assert isinstance(internal, messages.Failed)
        assert internal.code == ErrorCode.ACCESS_DENIED, "not even of a root"
        sent = await client.ask(messages.Send(queue_id, 7, 1, left_out=[(0, 5)]), body)
        assert isinstance(sent, messages.SendResult)
        assert (sent.runs, sent.duplicates) == ([(1, 1)], []), (
            "it is stored, whatever the client says of others"
        )
        again = await client.ask(messages.Hello([VERSION], "another", LINK_KEY, b""))
        assert isinstance(again, messages.Welcome)
        denied = await client.ask(messages.Send(queue_id, internal=True), body)
        assert isinstance(denied, messages.Failed), "who greets again stays who it was"
