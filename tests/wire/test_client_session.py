"""Sessions of clients over sockets that only take notes: what is taken, who is refused, when a connection ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest

from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode
from penstock.wire import client_session
from penstock.wire.client_session import ClientSession, SessionTerms
from penstock.wire.client_sessions import ClientSessions
from penstock.wire.frames import Frame, FrameReader, encode_frame
from penstock.wire.messages import Failed, Ping, decode_answer, encode_message


class Timers:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Callable[[], None], Timers.One]] = []

    class One:
        is_cancelled = False

        def cancel(self) -> None:
            self.is_cancelled = True

    def later(self, seconds: float, call: Callable[[], None]) -> Timers.One:
        one = Timers.One()
        self._due.append((self.now + seconds, call, one))
        return one

    def passes(self, seconds: float) -> None:
        self.now += seconds
        due = [entry for entry in self._due if entry[0] <= self.now]
        self._due = [entry for entry in self._due if entry[0] > self.now]
        for _, call, one in due:
            if not one.is_cancelled:
                call()


class Socket:
    """See `ClientSocket`."""

    def __init__(self, sessions: ClientSessions[Socket], name: str) -> None:
        self.peer = name
        self.is_closing = False
        self.unread_bytes = 0
        self.reads = True
        self.said: list[Failed] = []
        self.session = ClientSession(sessions, self)
        self.session.opened()

    def say(self, frame: Sequence[Buffer]) -> None:
        for one in FrameReader().feed(b"".join(frame)):
            answer = decode_answer(one.head)
            assert isinstance(answer, Failed)
            self.said.append(answer)

    def end_output(self) -> None:
        pass

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def abort(self) -> None:
        self.is_closing = True


class Server:
    """Sessions and the handler behind them."""

    def __init__(self, max_connections: int = 3) -> None:
        self.congested = False
        self.heard: list[tuple[int, int]] = []
        self.gone: list[int] = []
        self.complaints: list[str] = []
        self.timers = Timers()
        self.us = 0
        self.cost_us: dict[int, int] = {}
        """Of a request, by its id; others take 10 µs."""
        terms = SessionTerms(max_connections, write_buffer_bytes=1_000, hello_timeout_seconds=5.0)
        self.sessions: ClientSessions[Socket] = ClientSessions(
            terms, self.timers.later, self._complain, lambda: b"", self.now_us
        )
        self.sessions.start(self)

    def open(self, name: str = "somebody") -> Socket:
        return Socket(self.sessions, name)

    def _complain(self, kind: str, sentence: str, **values: object) -> None:
        self.complaints.append(kind)

    def connected(self, connection: int) -> None:
        pass

    def behind(self, connection: int) -> None:
        pass

    def caught_up(self, connection: int) -> None:
        pass

    def disconnected(self, connection: int) -> None:
        self.gone.append(connection)

    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
        for frame in frames:
            self.heard.append((connection, frame.request_id))
            self.us += self.cost_us.get(frame.request_id, 10)

    def now_us(self) -> int:
        return self.us


def _ping(number: int) -> bytes:
    return b"".join(encode_frame(number, encode_message(Ping())))


def test_nobody_is_read_from_while_the_node_is_congested() -> None:
    server = Server()
    socket = server.open()
    server.congested = True
    socket.session.arrived(_ping(1))
    assert (server.heard, socket.reads) == ([], False)
    server.congested = False
    server.sessions.congestion_changed(False)
    assert (server.heard, socket.reads) == ([(1, 1)], True)


def test_who_does_not_read_answers_is_not_read_from() -> None:
    server = Server()
    socket = server.open()
    socket.session.behind()
    assert not socket.reads
    server.sessions.congestion_changed(False)
    assert not socket.reads
    socket.session.caught_up()
    assert socket.reads


def test_who_reads_nothing_of_much_for_long_is_cut_off() -> None:
    server = Server()
    socket = server.open()
    socket.session.arrived(_ping(1))
    socket.session.written(100_000)
    socket.unread_bytes = 90_000
    socket.session.behind()
    server.timers.passes(client_session.STALLED_SECONDS - 1)
    assert not socket.is_closing
    server.timers.passes(1)
    assert (socket.is_closing, server.complaints) == (True, ["unread"])


def test_who_reads_slowly_is_not_cut_off() -> None:
    server = Server()
    socket = server.open()
    socket.session.arrived(_ping(1))
    socket.session.written(100_000)
    socket.unread_bytes = 100_000
    socket.session.behind()
    for unread_bytes in (90_000, 80_000, 70_000):
        socket.unread_bytes = unread_bytes
        server.timers.passes(client_session.STALLED_SECONDS)
    assert not socket.is_closing


def test_who_says_nothing_is_refused_and_has_a_moment_to_read_why() -> None:
    server = Server()
    socket = server.open()
    server.timers.passes(5)
    assert [one.code for one in socket.said] == [ErrorCode.BAD_FRAME]
    assert (server.gone, socket.is_closing) == ([1], False)
    server.timers.passes(client_session.LINGER_SECONDS)
    assert socket.is_closing


def test_a_full_server_lets_the_oldest_stranger_go() -> None:
    server = Server(max_connections=2)
    first, second = server.open(), server.open()
    first.session.allow(limits.FRAME_BYTES)  # it is known who this is
    third = server.open()
    assert (second.is_closing, first.is_closing, third.is_closing) == (True, False, False)
    assert (sorted(server.sessions.connections), server.gone) == ([1, 3], [2])


def test_a_server_full_of_clients_refuses_the_next_one() -> None:
    server = Server(max_connections=1)
    server.open().session.allow(limits.FRAME_BYTES)
    refused = server.open()
    assert [one.code for one in refused.said] == [ErrorCode.LIMIT_REACHED]
    assert list(server.sessions.connections) == [1]


def test_many_that_are_refused_are_just_cut_off() -> None:
    server = Server(max_connections=1)
    server.open().session.allow(limits.FRAME_BYTES)
    refused = [server.open() for _ in range(20)]
    assert [bool(one.said) for one in refused] == [True] * 16 + [False] * 4
    assert all(one.is_closing for one in refused[16:])


def test_frames_that_are_not_whole_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_session, "PARTIAL_FRAME_BYTES", 100)
    server = Server()
    first, second = server.open(), server.open()
    begun = (10_000).to_bytes(4, "little") + bytes(60)
    first.session.arrived(begun)
    second.session.arrived(begun)
    assert [one.code for one in second.said] == [ErrorCode.OVERLOADED]
    assert server.sessions.partial_bytes == len(begun)
    first.session.lost()
    assert server.sessions.partial_bytes == 0


def test_nothing_is_taken_once_the_server_stops() -> None:
    server = Server()
    socket = server.open()
    server.sessions.stop()
    socket.session.arrived(_ping(1))
    assert (server.heard, socket.reads) == ([], False)


EXPENSIVE = 7
"""The id of requests that take 20 ms each."""


def _expensive_server() -> Server:
    server = Server(max_connections=10)
    server.cost_us[EXPENSIVE] = 20_000
    return server


def test_many_expensive_requests_of_one_client_do_not_hold_up_another() -> None:
    server = _expensive_server()
    greedy, modest = server.open("greedy"), server.open("modest")
    greedy.session.arrived(_ping(EXPENSIVE) * 100)
    assert server.heard == [(1, EXPENSIVE)]  # the turn is over
    modest.session.arrived(_ping(1))
    server.timers.passes(0)
    assert server.heard[1] == (2, 1)
    for number in range(2, 6):
        modest.session.arrived(_ping(number))
        server.timers.passes(0)
    assert [heard for heard in server.heard if heard[0] == 2] == [(2, number) for number in range(1, 6)]
    assert len(server.heard) < 15


def test_short_requests_are_handled_in_one_turn_and_in_their_order() -> None:
    server = Server()
    socket = server.open()
    socket.session.arrived(b"".join(_ping(number) for number in range(1, 401)))
    assert server.heard == [(1, number) for number in range(1, 401)]
    assert socket.reads


def test_a_client_with_requests_that_wait_is_not_read_from_until_they_are_handled() -> None:
    server = _expensive_server()
    socket = server.open()
    socket.session.arrived(_ping(EXPENSIVE) + _ping(EXPENSIVE) + _ping(1))
    assert not socket.reads
    server.timers.passes(0)
    server.timers.passes(0)
    assert (server.heard, socket.reads) == ([(1, EXPENSIVE), (1, EXPENSIVE), (1, 1)], True)


def test_requests_are_not_begun_while_their_answers_cannot_leave() -> None:
    server = _expensive_server()
    socket = server.open()
    socket.session.arrived(_ping(EXPENSIVE) * 3)
    socket.session.behind()
    server.timers.passes(0)
    assert len(server.heard) == 1
    socket.session.caught_up()
    assert (len(server.heard), socket.reads) == (2, False)
    server.timers.passes(0)
    assert (len(server.heard), socket.reads) == (3, True)


def test_what_a_client_asked_for_is_dropped_when_it_is_gone() -> None:
    server = _expensive_server()
    socket = server.open()
    socket.session.arrived(_ping(EXPENSIVE) * 3)
    socket.session.lost()
    for _ in range(5):
        server.timers.passes(0)
    assert len(server.heard) == 1


def test_requests_wait_while_the_node_is_congested() -> None:
    server = _expensive_server()
    socket = server.open()
    socket.session.arrived(_ping(EXPENSIVE) * 2)
    server.congested = True
    server.timers.passes(0)
    assert len(server.heard) == 1
    server.congested = False
    server.sessions.congestion_changed(False)
    server.timers.passes(0)
    assert len(server.heard) == 2
