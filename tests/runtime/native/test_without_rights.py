"""Every request of the native protocol, by users without rights, and frames that are bent on their way. A real server."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.frontend.native.rules import RULES
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.wire import messages
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.messages import Done, Failed, Ping, QueueDescription, Receipt, WeightedQueue
from tests.runtime.harness import RawClient, async_test
from tests.runtime.native.test_users import UserServer, serving_users
from tests.runtime.native.test_without_authentication import raw

GUARDED = {kind: rule for kind, rule in RULES.items() if rule.permission}
LAST = 9_999
NOTHING_GAINED = (Failed, Done, messages.Welcome, messages.ClockReading, messages.TakenIds)
"""What is answered to requests for which nobody needs a right."""
ALLOWED = {ErrorCode.ACCESS_DENIED, ErrorCode.QUEUE_NOT_FOUND}


def request_of(kind: type[msgspec.Struct], queue_id: int, token: bytes) -> Any:
    """A request that would do for whoever may."""
    values = {
        "queue_id": queue_id,
        "name": "vip" if kind is not messages.CreateQueue else "vip-two",
        "queues": [WeightedQueue(queue_id, 1)],
        "receipts": [Receipt(token, [(1, 1)])],
        "settings": QueueSettings(),
        "changes": {"retention_ms": 60_000},
        "credit": 10,
        "visibility_timeout_ms": 0,
        "start": 1,
        "group": "readers",
        "member": "mallory",
        "offset": 1,
        "ids": [b"id"],
        "owners": [1],
        "instead_of": [0],
        "versions": [0],
    }
    names = [field.name for field in msgspec.structs.fields(kind) if field.required]
    return kind(**{name: values[name] for name in names})


def test_the_list_is_whole() -> None:
    assert len(GUARDED) == 27
    free = {kind.__name__ for kind, rule in RULES.items() if not rule.permission}
    assert free == {"TakeIds", "ReadClock", "Ping", "AddCredit", "Unsubscribe", "Hello"}


async def stage(there: UserServer) -> tuple[RawClient, int, bytes]:
    """A root with a queue, a message of which is leased; the queue's id and the receipt's token."""
    root = await there.user("ada", root=True)
    owner = await raw(there, root)
    made = await owner.ask(messages.CreateQueue("vip", QueueSettings(consumption="both")))
    assert isinstance(made, QueueDescription)
    owner.write(messages.Send(made.queue_id), encode_parts([b"secret"]))
    await owner.answer()
    delivered = await owner.ask(messages.Receive(made.queue_id, 1, 0, 600_000))
    assert isinstance(delivered, messages.Delivery)
    return owner, made.queue_id, delivered.token


@pytest.mark.parametrize("account", ["000000000000", "111111111111"])
@async_test
async def test_without_rights_nothing_is_done_and_nothing_told(tmp_path: Path, account: str) -> None:
    async with serving_users(tmp_path) as there:
        owner, queue_id, token = await stage(there)
        nobody = await there.user("nobody", account=account, root=account != "000000000000")
        client = await raw(there, nobody)
        before = await owner.ask(messages.DescribeQueue("vip"))
        for kind in GUARDED:
            if account != "000000000000" and kind in (messages.ListQueues,):
                continue  # a root lists its own
            body = encode_parts([b"forged"]) if kind is messages.Send else b""
            client.write(request_of(kind, queue_id, token), body)
            answer = await client.answer()
            assert isinstance(answer, Failed), kind
            assert answer.code in ALLOWED, (kind, answer)
            assert "secret" not in answer.message
        assert await owner.ask(messages.DescribeQueue("vip")) == before
        assert isinstance(await owner.ask(messages.DescribeQueue("vip-two")), Failed)


@async_test
async def test_a_refused_request_does_not_stay_in_memory(tmp_path: Path) -> None:
    """The collector of cycles runs after 20,000 objects: that is a thousand requests of 24 megabytes each."""
    async with serving_users(tmp_path) as there:
        _, queue_id, _ = await stage(there)
        client = await raw(there, await there.user("nobody"))
        gc.collect()
        gc.disable()
        try:
            before = _frames_in_memory()
            for refused in (queue_id, LAST):
                client.write(messages.Send(refused), encode_parts([b"x"]))
                assert isinstance(await client.answer(), Failed)
            client.writer.writelines(encode_frame(LAST, b"\xc1", [b"x"]))
            assert isinstance(await client.answer(), Failed)
            await client.ask(Ping())  # what held the last frame has gone on to this one
            assert _frames_in_memory() <= before
        finally:
            gc.enable()


def _frames_in_memory() -> int:
    return sum(isinstance(one, Frame) for one in gc.get_objects())


@pytest.mark.parametrize(
    ("allowed", "told"),
    [
        ((), False),
        (("sqs:SendMessage",), False),
        (("sqs:ListQueues",), True),
        (("sqs:GetQueueAttributes",), True),
    ],
)
@async_test
async def test_who_counts_through_ids_is_told_no_names(
    tmp_path: Path, allowed: tuple[str, ...], told: bool
) -> None:
    async with serving_users(tmp_path) as there:
        _, queue_id, token = await stage(there)
        client = await raw(there, await there.user("sam", *allowed, on="*"))
        receipts = [Receipt(token, [(1, 1)])]
        for request in (
            messages.Peek(queue_id),
            messages.Purge(queue_id),
            messages.Delete(receipts),
            messages.Redrive(queue_id),
            messages.ReceiveAny([WeightedQueue(queue_id, 1)]),
        ):
            refused = await client.ask(request)
            assert isinstance(refused, Failed)
            assert refused.code == ErrorCode.ACCESS_DENIED
            assert ("vip" in refused.message) is told
        named = await client.ask(messages.DeleteQueue("vip"))
        assert isinstance(named, Failed)
        assert "vip" in named.message, "which the user has named"


@async_test
async def test_who_loses_the_key_is_gone_at_once(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        await there.user("ada", root=True)
        sam = await there.user("sam", "sqs:*", on="*")
        client = await raw(there, sam)
        assert await client.ask(Ping()) == Done()
        await there.users.delete_key(sam.access_key)
        refused = await client.answer()
        assert isinstance(refused, Failed)
        assert refused.code == ErrorCode.UNAUTHENTICATED
        assert await client.is_dropped()


@pytest.mark.parametrize("seed", range(4))
@async_test
async def test_bent_frames_gain_nothing_and_harm_nobody(tmp_path: Path, seed: int) -> None:
    """Heads with bytes changed, cut, doubled and mixed, under right checksums: as somebody sends them who writes a client."""
    dice = random.Random(seed)
    async with serving_users(tmp_path) as there:
        owner, queue_id, token = await stage(there)
        nobody = await there.user("nobody")
        heads = [messages.encode_message(request_of(kind, queue_id, token)) for kind in GUARDED]
        before = await owner.ask(messages.DescribeQueue("vip"))
        for _ in range(20):
            client = await raw(there, nobody)
            for number in range(25):
                body = dice.randbytes(dice.randrange(40))
                client.writer.writelines(encode_frame(1_000 + number, bent(dice, heads), (body,)))
            client.write(Ping(), request_id=LAST)
            while (frame := await client.frame()) is not None:
                assert isinstance(messages.decode_answer(frame.head), NOTHING_GAINED)
                if frame.request_id == LAST:
                    break
            client.writer.close()
        assert await owner.ask(messages.DescribeQueue("vip")) == before
        assert await owner.ask(Ping()) == Done()


def bent(dice: random.Random, heads: list[bytes]) -> bytes:
    head = bytearray(dice.choice(heads))
    for _ in range(dice.randrange(1, 4)):
        match dice.randrange(5):
            case 0 if head:
                head[dice.randrange(len(head))] = dice.randrange(256)
            case 1:
                head = head[: dice.randrange(len(head) + 1)]
            case 2:
                head += dice.choice(heads)
            case 3:
                head[dice.randrange(len(head) + 1) : 0] = dice.randbytes(dice.randrange(9))
            case _:
                head = bytearray(b"\x9f") + head[1:]
    return bytes(head)
