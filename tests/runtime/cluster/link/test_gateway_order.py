"""Sends of a native client that follow each other, at the gateway of a cluster: also those that never got this far."""

from __future__ import annotations

import asyncio

import pytest

from penstock.frontend.engine import Answered
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.cluster.link.gateway import Gateway
from penstock.steps.step import Reply
from penstock.wire import messages
from penstock.wire.frames import Frame, FrameReader
from tests.runtime.harness import async_test, until


class Cluster:
    """A link that answers when the test says so, and what a client of the gateway in front of it is told."""

    def __init__(self) -> None:
        self.asked: list[tuple[messages.Request, Answered]] = []
        self.told: dict[int, messages.Answer] = {}
        self._reader = FrameReader()
        loop = asyncio.get_running_loop()
        self.fails_to_write: set[int] = set()
        """Connections."""
        self.aborted: list[int] = []
        self.gateway = Gateway(
            self, loop, "gateway", lambda: 0, self._write, self.aborted.append, lambda congested: None
        )
        self.connect(1)

    def connect(self, connection: int) -> None:
        self.gateway.connected(connection)
        self.say(connection, 0, messages.Hello([1], "test"))

    def ask(self, request: messages.Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        self.asked.append((request, done))
        return len(self.asked)

    def cancel(self, ticket: int) -> None:
        """Nothing here waits for messages."""

    def send(self, number: int, after: int = 0, connection: int = 1) -> bool:
        """A batch of producer 7, under its number as request id; whether it was handed on."""
        asked = len(self.asked)
        self.say(connection, number, messages.Send(1, 7, number, after=after))
        return len(self.asked) > asked

    def answer(self, place: int, code: ErrorCode | None = None) -> None:
        """What was handed on as number `place` has this outcome."""
        outcome = Reply(messages.SendResult([(1, 1)], [], 1), memoryview(b""))
        self.asked[place][1](PenstockError(code, "no") if code is not None else outcome)

    def say(self, connection: int, request_id: int, request: messages.Request) -> None:
        """A request of the client on this connection."""
        frame = Frame(request_id, memoryview(messages.encode_message(request)), memoryview(b""))
        self.gateway.handle(connection, [frame])

    def _write(self, connection: int, buffers: list[Buffer]) -> None:
        if connection in self.fails_to_write:
            raise ZeroDivisionError
        for frame in self._reader.feed(b"".join(buffers)):
            self.told[frame.request_id] = messages.decode_answer(frame.head)


def code(answer: messages.Answer) -> str:
    return answer.code if isinstance(answer, messages.Failed) else ""


@async_test
async def test_a_send_whose_predecessor_a_limit_refused_in_the_front_end_is_refused() -> None:
    cluster = Cluster()
    assert cluster.send(1)
    assert not cluster.send(3, after=2)  # the guard kept 2
    await until(lambda: 3 in cluster.told)
    assert code(cluster.told[3]) == ErrorCode.OUT_OF_ORDER
    assert cluster.send(2, after=1)
    assert cluster.send(3, after=2)


@async_test
async def test_an_answer_that_is_on_its_way_does_not_make_the_next_one_follow_nothing() -> None:
    cluster = Cluster()
    cluster.send(1)
    cluster.answer(0)
    assert cluster.send(2, after=1)


@async_test
async def test_a_refusal_holds_up_what_follows_until_it_is_sent_again() -> None:
    cluster = Cluster()
    for number in (1, 2, 3):
        cluster.send(number, after=number - 1)
    cluster.answer(1, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert not cluster.send(4, after=3)
    assert cluster.send(2, after=1)
    cluster.answer(2, ErrorCode.OUT_OF_ORDER)  # of the first time
    assert cluster.send(3, after=2)
    assert cluster.send(4, after=3)


@async_test
async def test_it_does_not_matter_why_a_send_was_refused() -> None:
    """Its client may not hear of it, and send it again when the reason has passed."""
    cluster = Cluster()
    cluster.send(1)
    cluster.answer(0, ErrorCode.STAMP_IN_FUTURE)
    assert not cluster.send(2, after=1)
    assert cluster.send(2)  # its client has heard of it


@async_test
async def test_another_connection_begins_anew() -> None:
    cluster = Cluster()
    cluster.send(1)
    cluster.connect(2)
    assert not cluster.send(2, after=1, connection=2)
    assert cluster.send(1, connection=2)
    assert cluster.send(2, after=1, connection=2)


@async_test
async def test_an_answer_that_cannot_be_encoded_is_told_as_a_defect_and_holds_up_no_other() -> None:
    cluster = Cluster()
    cluster.send(1)
    cluster.send(2)
    huge = messages.SendResult([(2**64, 1)], [], 1)
    cluster.asked[0][1](Reply(huge, memoryview(b"")))
    cluster.answer(1)
    await until(lambda: cluster.told.keys() >= {1, 2})
    assert code(cluster.told[1]) == ErrorCode.INTERNAL
    assert isinstance(cluster.told[2], messages.SendResult)


@async_test
async def test_answers_of_others_leave_though_those_of_one_connection_cannot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    cluster.connect(2)
    await asyncio.sleep(0)
    write = cluster.gateway._write

    def fail_for_the_first(connection: int, buffers: list[Buffer]) -> None:
        if connection == 1:
            raise OverflowError("its row does not fit")
        write(connection, buffers)

    monkeypatch.setattr(cluster.gateway, "_write", fail_for_the_first)
    cluster.send(1)
    cluster.send(2, connection=2)
    cluster.answer(0)
    cluster.answer(1)
    await until(lambda: 2 in cluster.told)
    assert 1 not in cluster.told
    assert isinstance(cluster.told[2], messages.SendResult)


@async_test
async def test_a_connection_whose_answers_cannot_be_written_is_closed_and_others_get_theirs() -> None:
    """Its client would wait for ever: it asks again over the next connection."""
    cluster = Cluster()
    cluster.connect(2)
    await until(lambda: 0 in cluster.told)
    cluster.fails_to_write.add(1)
    cluster.send(1, connection=1)
    cluster.send(2, connection=2)
    cluster.answer(0)
    cluster.answer(1)
    await until(lambda: 2 in cluster.told)
    assert 1 not in cluster.told
    assert cluster.aborted == [1]
