"""Request ids of the native protocol: one request under an id until its answer, so that none is forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.wire import messages
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.messages import Delivery, Done, Failed, Ping, QueueDescription, ReadClock, Receive, Request
from tests.runtime.harness import RawClient, async_test
from tests.runtime.native.test_users import ORDERS, UserServer, policy, serving_users
from tests.runtime.native.test_without_authentication import raw


async def stage(there: UserServer) -> tuple[RawClient, RawClient, int]:
    """A root with a queue, a user who may receive from it, and the queue's id."""
    owner = await raw(there, await there.user("ada", root=True))
    made = await owner.ask(messages.CreateQueue("orders", QueueSettings()))
    assert isinstance(made, QueueDescription)
    return owner, await raw(there, await there.user("sam", "sqs:*")), made.queue_id


async def send(owner: RawClient, queue_id: int, body: bytes) -> None:
    await owner.ask(messages.Send(queue_id), encode_parts([body]))


def write_together(client: RawClient, *requests: tuple[int, Request]) -> None:
    """In one piece, so that the guard has all of them before any is answered."""
    frames = [encode_frame(number, messages.encode_message(request)) for number, request in requests]
    client.writer.write(b"".join(bytes(part) for frame in frames for part in frame))


async def forbid(there: UserServer) -> None:
    deny = policy("Deny", ["sqs:ReceiveMessage"], ORDERS)
    await there.heard("users/sam", there.users.put_policy("sam", "q", deny))


async def until_answered(client: RawClient, request_id: int) -> list[tuple[int, messages.Answer]]:
    """Everything that arrives up to the answer of a request."""
    came: list[tuple[int, messages.Answer]] = []
    while not came or came[-1][0] != request_id:
        frame = await client.frame()
        assert frame is not None
        came.append((frame.request_id, messages.decode_answer(frame.head)))
    return came


def is_in_use(answer: messages.Answer) -> bool:
    return isinstance(answer, Failed) and answer.code == ErrorCode.BAD_REQUEST and "in use" in answer.message


@pytest.mark.parametrize(
    "first", [Ping(), ReadClock(), messages.Unsubscribe(77)], ids=lambda kind: type(kind).__name__
)
@async_test
async def test_an_id_is_in_use_until_its_answer_also_where_that_leaves_no_row(
    tmp_path: Path, first: Request
) -> None:
    async with serving_users(tmp_path) as there:
        owner, client, queue_id = await stage(there)
        await send(owner, queue_id, b"x")
        there.events.clear()
        write_together(client, (70, first), (70, Receive(queue_id)))
        answers = [answer for _ in range(2) for _, answer in await until_answered(client, 70)]
        assert sum(is_in_use(answer) for answer in answers) == 1
        assert not any(isinstance(answer, Delivery) for answer in answers)
        assert [(event.action, event.outcome) for event in there.events] == [
            ("ReceiveMessage", "bad-request")
        ]
        client.write(Receive(queue_id), request_id=70)
        ((_, answer),) = await until_answered(client, 70)
        assert isinstance(answer, Delivery), "the id is free again"
        assert [event.messages for event in there.events] == [0, 1]


@async_test
async def test_no_answer_makes_the_guard_forget_a_subscription(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        owner, client, queue_id = await stage(there)
        write_together(
            client,
            (50, messages.Subscribe(queue_id, 1_000)),
            (90, messages.Unsubscribe(50)),
            (90, Receive(queue_id, wait_ms=100)),
            (91, messages.Unsubscribe(50)),
        )
        await until_answered(client, 91)
        client.write(messages.Subscribe(queue_id, 1_000), request_id=50)
        client.write(Receive(queue_id, wait_ms=200), request_id=92)  # by then the first one would have ended
        await until_answered(client, 92)
        there.events.clear()
        await send(owner, queue_id, b"while it is allowed")
        assert isinstance((await until_answered(client, 50))[-1][1], Delivery)
        assert [event.messages for event in there.events if event.user == "sam"] == [1]
        await forbid(there)
        await send(owner, queue_id, b"for others only")
        client.write(Ping(), request_id=93)
        came = await until_answered(client, 93)
        assert not any(isinstance(answer, Delivery) for _, answer in came)
        assert [answer.code for _, answer in came if isinstance(answer, Failed)] == [ErrorCode.ACCESS_DENIED]


@async_test
async def test_the_id_of_a_subscription_that_was_ended_is_in_use_until_it_has_ended(tmp_path: Path) -> None:
    """And what the engine says last under it is nobody else's answer."""
    async with serving_users(tmp_path) as there:
        _, client, queue_id = await stage(there)
        client.write(messages.Subscribe(queue_id, 1_000), request_id=50)
        client.write(Ping(), request_id=51)
        await until_answered(client, 51)
        await forbid(there)
        client.write(messages.AddCredit(50, 10), request_id=52)
        client.write(Ping(), request_id=53)
        came = await until_answered(client, 53)
        assert [type(answer) for number, answer in came if number == 50] == [Failed, Done]
        client.write(Ping(), request_id=50)
        assert await until_answered(client, 50) == [(50, Done())], "the id is free again"


@async_test
async def test_what_cannot_be_read_is_answered_by_the_guard(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        _, client, _ = await stage(there)
        handed_on: list[int] = []
        driver = there.server.broker._driver
        handle = driver.handle

        def seen(connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
            frames = list(frames)
            handed_on.extend(frame.request_id for frame in frames)
            handle(connection, frames)

        driver.handle = seen  # type: ignore[method-assign]  # to look over its shoulder
        there.events.clear()
        for number, head in enumerate((b"\xc1", b"\x92\x04\xa1x", b"\x91\xcd\x7f\xff"), 60):
            client.writer.writelines(encode_frame(number, head))
        client.write(Ping(), request_id=70)
        came = await until_answered(client, 70)
        assert [number for number, _ in came] == [60, 61, 62, 70]
        assert all(
            isinstance(answer, Failed) and answer.code in (ErrorCode.BAD_REQUEST, ErrorCode.UNKNOWN_REQUEST)
            for _, answer in came[:3]
        )
        assert handed_on == [70]
        assert [event.action for event in there.events] == ["Unknown"] * 3
