"""Receives and reads of a log that wait, over the native protocol: they end with the right to receive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.model import limits
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.wire import messages
from penstock.wire.messages import (
    CreateQueue,
    Delivery,
    DescribeQueue,
    Done,
    Failed,
    Ping,
    QueueDescription,
    ReadLog,
    Receive,
    ReceiveAny,
    Request,
    Send,
    Subscribe,
    WeightedQueue,
)
from tests.runtime.harness import RawClient, async_test
from tests.runtime.native.test_users import ORDERS, UserServer, policy, serving_users
from tests.runtime.native.test_without_authentication import raw

HOUR_MS = 3_600_000
WAITS: dict[str, Request] = {
    "receive": Receive(1, wait_ms=HOUR_MS),
    "receive-any": ReceiveAny([WeightedQueue(1, 1)], wait_ms=HOUR_MS),
    "read-log": ReadLog(1, 1, wait_ms=HOUR_MS),
}


async def waiting(there: UserServer, *requests: Request) -> tuple[RawClient, RawClient]:
    """A root with a queue, and a user whose requests (70, 71, …) wait there."""
    owner = await raw(there, await there.user("ada", root=True))
    made = await owner.ask(CreateQueue("orders", QueueSettings(consumption="both")))
    assert isinstance(made, QueueDescription)
    assert made.queue_id == 1
    client = await raw(there, await there.user("sam", "sqs:*"))
    for number, request in enumerate(requests, 70):
        client.write(request, request_id=number)
    assert await client.ask(Ping()) == Done(), "everything before it waits"
    return owner, client


async def forbid(there: UserServer, how: str) -> None:
    if how == "denied":
        deny = policy("Deny", ["sqs:ReceiveMessage"], ORDERS)
        await there.heard("users/sam", there.users.put_policy("sam", "q", deny))
    else:
        await there.heard("users/sam", there.users.delete_policy("sam", "p"))


@pytest.mark.parametrize("how", ["denied", "allowed-no-longer"])
@pytest.mark.parametrize("kind", WAITS)
@async_test
async def test_a_wait_ends_with_the_right_to_receive(tmp_path: Path, kind: str, how: str) -> None:
    async with serving_users(tmp_path) as there:
        owner, client = await waiting(there, WAITS[kind])
        there.events.clear()
        await forbid(there, how)
        frame = await client.frame()
        assert frame is not None
        refused = messages.decode_answer(frame.head)
        assert isinstance(refused, Failed)
        assert (frame.request_id, refused.code) == (70, ErrorCode.ACCESS_DENIED)
        assert [(event.user, event.outcome, event.messages) for event in there.events] == [
            ("sam", ErrorCode.ACCESS_DENIED, 0)
        ]
        await owner.ask(Send(1), encode_parts([b"not for sam"]))
        assert await client.ask(Ping()) == Done(), "nothing else came, neither a message nor a second answer"
        received = await owner.ask(Receive(1))
        assert isinstance(received, Delivery)
        assert [batch.receive_counts for batch in received.batches] == [1]


@async_test
async def test_an_id_whose_wait_was_ended_can_be_used_again(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        owner, client = await waiting(there, *WAITS.values())
        await forbid(there, "denied")
        for number in (70, 71, 72):
            frame = await client.frame()
            assert frame is not None
            assert frame.request_id == number
        await there.heard("users/sam", there.users.delete_policy("sam", "q"))
        await owner.ask(Send(1), encode_parts([b"x"]))
        client.write(Receive(1), request_id=70)
        frame = await client.frame()
        assert frame is not None
        assert isinstance(messages.decode_answer(frame.head), Delivery)
        assert frame.request_id == 70
        for number in (71, 72):
            client.write(Ping(), request_id=number)
            frame = await client.frame()
            assert frame is not None
            assert (frame.request_id, messages.decode_answer(frame.head)) == (number, Done())


@async_test
async def test_a_change_that_takes_nothing_away_ends_no_wait(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        owner, client = await waiting(there, WAITS["receive"])
        allow = policy("Allow", ["sqs:SendMessage"], ORDERS)
        await there.heard("users/sam", there.users.put_policy("sam", "q", allow))
        await owner.ask(Send(1), encode_parts([b"x"]))
        frame = await client.frame()
        assert frame is not None
        assert isinstance(messages.decode_answer(frame.head), Delivery)


def until(moment: datetime) -> str:
    condition = {"DateLessThan": {"aws:CurrentTime": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}}
    return policy("Allow", ["sqs:*"], ORDERS, Condition=condition)


@pytest.mark.parametrize("request_kind", [*WAITS, "subscribe"])
@async_test
async def test_a_right_that_ends_by_itself_ends_what_waits(tmp_path: Path, request_kind: str) -> None:
    asked = WAITS.get(request_kind) or Subscribe(1, 1_000)
    async with serving_users(tmp_path) as there:
        owner, client = await waiting(there)
        seconds, is_let_in = 2, False
        while not is_let_in:  # a busy machine may take longer than the right lasts
            allowed = until(datetime.now(UTC) + timedelta(seconds=seconds))
            await there.heard("users/sam", there.users.put_policy("sam", "p", allowed))
            there.events.clear()
            client.write(asked, request_id=70)
            client.write(Ping(), request_id=71)
            frame = await client.frame()
            assert frame is not None
            is_let_in = frame.request_id == 71
            if not is_let_in:
                await client.frame()
                seconds *= 2
        frame = await client.frame()
        assert frame is not None
        ended = messages.decode_answer(frame.head)
        assert isinstance(ended, Failed)
        assert (frame.request_id, ended.code) == (70, ErrorCode.ACCESS_DENIED)
        await owner.ask(Send(1), encode_parts([b"not for sam"]))
        received = await owner.ask(Receive(1))
        assert isinstance(received, Delivery)
        assert [batch.receive_counts for batch in received.batches] == [1]


@async_test
async def test_one_connection_has_only_so_many_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded at the door: to a node of a cluster all clients of a front end are one connection."""
    monkeypatch.setattr(limits, "WAITING_PER_CONNECTION", 2)
    async with serving_users(tmp_path) as there:
        _, client = await waiting(there, WAITS["receive"], WAITS["read-log"])
        for request in (*WAITS.values(), Subscribe(1, 1)):
            refused = await client.ask(request)
            assert isinstance(refused, Failed)
            assert (refused.code, "under way" in refused.message) == (ErrorCode.TOO_MANY_WAITING, True)
        assert isinstance(await client.ask(DescribeQueue("orders")), QueueDescription)
