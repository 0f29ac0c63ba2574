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
from penstock.wire.fair_turns import TURN_US
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
    assert ([one.code for one in first.said], second.said) == ([ErrorCode.OVERLOADED], [])
    assert server.sessions.partial_bytes == len(begun)
    second.session.lost()
    assert server.sessions.partial_bytes == 0


def test_the_frame_goes_that_has_been_arriving_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_session, "PARTIAL_FRAME_BYTES", 200)
    server = Server(max_connections=9)
    busy, slow, third, fourth = [server.open() for _ in range(4)]
    begun = (10_000).to_bytes(4, "little") + bytes(60)
    busy.session.arrived(_ping(1)[:10])
    slow.session.arrived(begun)
    busy.session.arrived(_ping(1)[10:] + begun)  # the frame that it began first is whole now
    third.session.arrived(begun)
    fourth.session.arrived(begun)
    assert [[one.code for one in socket.said] for socket in (busy, slow, third, fourth)] == [
        [],
        [ErrorCode.OVERLOADED],
        [],
        [],
    ]


def test_a_frame_that_alone_is_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_session, "PARTIAL_FRAME_BYTES", 50)
    server = Server()
    socket = server.open()
    socket.session.arrived((10_000).to_bytes(4, "little") + bytes(60))
    assert [one.code for one in socket.said] == [ErrorCode.OVERLOADED]
    assert (server.sessions.partial_bytes, list(server.sessions.unfinished)) == (0, [])


@pytest.fixture
def three_at_once() -> Server:
    """A server of which a turn has time for three requests."""
    server = Server()
    server.cost_us = dict.fromkeys(range(1, 9), TURN_US * 2 // 5)
    return server


def test_others_have_their_turn_between_many_frames_of_one(three_at_once: Server) -> None:
    server = three_at_once
    first, second = server.open(), server.open()
    first.session.arrived(b"".join(map(_ping, range(1, 8))))
    first.session.arrived(_ping(8))  # it was on its way when no more was read
    second.session.arrived(_ping(1))
    assert server.heard == [(1, 1), (1, 2), (1, 3)]
    assert not first.reads
    server.timers.passes(0.0)
    assert server.heard[3:] == [(2, 1), (1, 4), (1, 5)]
    assert (first.reads, second.reads) == (False, True)
    server.timers.passes(0.0)
    assert server.heard[6:] == [(1, 6), (1, 7), (1, 8)]
    assert first.reads


def test_frames_that_wait_for_their_turn_wait_for_a_congested_node_too(three_at_once: Server) -> None:
    server = three_at_once
    socket = server.open()
    socket.session.arrived(b"".join(map(_ping, range(1, 6))))
    server.congested = True
    server.timers.passes(0.0)
    assert (len(server.heard), socket.reads) == (3, False)
    server.congested = False
    server.sessions.congestion_changed(False)
    server.timers.passes(0.0)
    assert (len(server.heard), socket.reads) == (5, True)


def test_frames_that_wait_for_their_turn_wait_until_answers_are_read(three_at_once: Server) -> None:
    server = three_at_once
    socket = server.open()
    socket.session.arrived(b"".join(map(_ping, range(1, 6))))
    socket.session.behind()
    server.timers.passes(0.0)
    assert (len(server.heard), socket.reads) == (3, False)
    socket.session.caught_up()
    server.timers.passes(0.0)
    assert (len(server.heard), socket.reads) == (5, True)


@pytest.mark.parametrize("end", ["stop", "abort", "lost", "give_way"])
def test_frames_that_wait_for_their_turn_go_with_their_connection(three_at_once: Server, end: str) -> None:
    server = three_at_once
    socket = server.open()
    socket.session.arrived(b"".join(map(_ping, range(1, 6))))
    getattr(socket.session, end)()
    server.timers.passes(0.0)
    server.sessions.congestion_changed(False)
    assert len(server.heard) == 3


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
