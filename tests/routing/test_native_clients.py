"""Native clients of a front end: what they asked for is theirs for as long as they are there."""

from __future__ import annotations

from collections.abc import Callable

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.native_clients import NativeClients
from penstock.routing.subscription import Replied
from penstock.steps.step import Reply
from penstock.wire import messages
from penstock.wire.answers import DeliveredBatch

Done = Callable[[Replied | PenstockError], None]


class Timer:
    def cancel(self) -> None:
        """Nothing here waits for it."""


class FrontEnd:
    """One connection, an engine that answers when the test says so, and what the client is told."""

    def __init__(self) -> None:
        self.asked: list[tuple[messages.Request, Done]] = []
        self.cancelled: list[int] = []
        self.told: list[tuple[int, messages.Answer]] = []
        self.finished = False
        self.clients = NativeClients(self, lambda seconds, action: Timer(), self._tell, _welcome, _hold)
        self.clients.connected(1)
        self.say(1, messages.Hello([messages.PROTOCOL_VERSION], "worker"))

    def ask(self, request: messages.Request, body: Buffer, done: Done) -> int:
        self.asked.append((request, done))
        return len(self.asked) - 1

    def cancel(self, ticket: int) -> None:
        self.cancelled.append(ticket)

    def say(self, request_id: int, request: messages.Request) -> None:
        self.clients.take(1, request_id, request, memoryview(b""))

    def answer(self, place: int, outcome: Replied | PenstockError) -> None:
        self.asked[place][1](outcome)

    def given_back(self) -> list[messages.Release]:
        return [request for request, _ in self.asked if isinstance(request, messages.Release)]

    def finish(self) -> None:
        self.clients.finish(self._has_finished)

    def _has_finished(self) -> None:
        self.finished = True

    def _tell(self, connection: int, request_id: int, answer: messages.Answer, body: Buffer) -> None:
        self.told.append((request_id, answer))


def _welcome() -> messages.Welcome:
    return messages.Welcome(messages.PROTOCOL_VERSION, "penstock", "front end", 0)


def _hold(size: int) -> None:
    """Nobody counts."""


def _delivery() -> Reply:
    batch = DeliveredBatch(5, 2, sent_ms=1, size=0, receive_counts=1, first_received_ms=1)
    return Reply(messages.Delivery(b"token", 1, [batch]))


def test_what_comes_for_a_client_that_has_gone_is_given_back_as_if_it_had_never_been_received() -> None:
    front_end = FrontEnd()
    front_end.say(2, messages.Receive(7, 10, 1_000))
    front_end.say(3, messages.Subscribe(7, 10, 10))
    front_end.clients.disconnected(1)
    assert front_end.cancelled == [0, 1]
    front_end.answer(0, _delivery())
    front_end.answer(1, _delivery())
    expected = messages.Release([messages.Receipt(b"token", [(5, 2)])], unreceived=True)
    assert front_end.given_back() == [expected, expected]
    assert [request_id for request_id, _ in front_end.told] == [1]


def test_a_receive_with_an_attempt_is_left_to_who_asks_again() -> None:
    front_end = FrontEnd()
    front_end.say(2, messages.Receive(7, 10, 1_000, attempt=b"first"))
    front_end.clients.disconnected(1)
    front_end.answer(0, _delivery())
    assert front_end.given_back() == []


def test_what_comes_for_a_subscription_that_has_failed_is_given_back() -> None:
    """The client takes nothing more under the id of a subscription that it was told has ended."""
    front_end = FrontEnd()
    front_end.say(2, messages.Subscribe(7, 100, 2))
    front_end.answer(0, _delivery())  # it was full: two are on their way now
    assert len(front_end.asked) == 3
    front_end.answer(1, PenstockError(ErrorCode.QUEUE_NOT_FOUND, "gone"))
    front_end.answer(2, _delivery())
    assert [type(answer) for _, answer in front_end.told] == [
        messages.Welcome,
        messages.Delivery,
        messages.Failed,
    ]
    assert len(front_end.given_back()) == 1


def test_a_front_end_that_stops_tells_everybody_and_waits_for_what_is_under_way() -> None:
    front_end = FrontEnd()
    front_end.say(2, messages.Subscribe(7, 100, 2))
    front_end.say(3, messages.Receive(7, 10, 1_000))
    front_end.finish()
    front_end.answer(0, Reply(messages.Delivery(b"", 0, [])))
    assert not front_end.finished
    assert isinstance(front_end.told[-1][1], messages.Failed)
    front_end.answer(1, Reply(messages.Delivery(b"", 0, [])))
    assert front_end.finished


def test_nothing_is_done_for_who_did_not_say_hello() -> None:
    front_end = FrontEnd()
    front_end.clients.connected(2)
    front_end.clients.take(2, 1, messages.Receive(7, 10), memoryview(b""))
    assert front_end.asked == []
    assert front_end.told[-1] == (1, messages.Failed(ErrorCode.BAD_REQUEST, "send Hello first"))
