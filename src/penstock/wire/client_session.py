"""A client's connection at the native protocol's server: which input is accepted, and when the connection must end.

An incomplete frame counts against a budget that all connections share; when it is exceeded, the frame that has been arriving
longest is refused. A client that does not read its answers is not read from, and is disconnected when they accumulate further.
While the node is congested no client is read from. Of many requests that arrive together some are handled, and the others after
other clients had their turn (`fair_turns`). Sockets, or a simulated network, carry this out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Sized
from typing import Generic, NamedTuple, Protocol, TypeVar

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.fair_turns import FairTurns
from penstock.wire.frames import Frame, FrameReader, encode_frame
from penstock.wire.handshake import HANDSHAKE_FRAME_BYTES, HandshakeError, ServerHandshake
from penstock.wire.later import Later, Timer
from penstock.wire.messages import SERVICE, Failed, encode_message
from penstock.wire.proxy_protocol import begins_header
from penstock.wire.session_sides import ClientSocket, Complain, Handler
from penstock.wire.strangers import Strangers
from penstock.wire.tls_reasons import begins_tls

PARTIAL_FRAME_BYTES = 32 * limits.FRAME_BYTES
"""The maximum of incomplete frames of all connections together."""
LINGER_SECONDS = 1.0
"""How long a client that is refused may take to read why."""
LINGER_AT_ONCE = 1_024
"""So many may do that, or an eighth of all connections; others that are refused are just cut off."""
ABANDONED_BUFFERS = 64
STALLED_SECONDS = 10.0
"""A client with more than so many write buffers of unread answers that reads nothing of them for so long is disconnected."""


Socket = TypeVar("Socket", bound=ClientSocket)


class SessionTerms(NamedTuple):
    """The limits and checks of a server for its clients."""

    max_connections: int
    write_buffer_bytes: int
    hello_timeout_seconds: float
    secret: bytes | None = None
    """The cluster's secret, which a client must prove to know; None: no proof is required."""
    place: str = ""
    """The address of this process in the cluster: a client's proof must name it."""


class Sessions(Protocol[Socket]):
    """The shared state of one server's sessions; see `ClientSessions`."""

    terms: SessionTerms
    later: Later
    complain: Complain
    held: dict[ClientSession[Socket], None]
    unfinished: dict[ClientSession[Socket], None]
    strangers: Strangers[ClientSession[Socket]]
    turns: FairTurns[ClientSession[Socket]]
    turned_away: int
    partial_bytes: int
    new_nonce: Callable[[], bytes]

    @property
    def connections(self) -> Sized:
        """All that are open."""
        ...

    @property
    def handler(self) -> Handler:
        """The handler of requests."""
        ...

    def admit(self, session: ClientSession[Socket]) -> int | None:
        """The number of a new connection, or None where there is no room for it."""
        ...

    def forget(self, session: ClientSession[Socket], number: int) -> None:
        """A connection is closed."""
        ...


class ClientSession(Generic[Socket]):
    """One client."""

    def __init__(self, sessions: Sessions[Socket], socket: Socket) -> None:
        self.socket = socket
        self.number = 0
        """The handler's number for it; 0: it has none."""
        self.is_stopped = False
        """Whether nothing is taken any more."""
        self.has_unread_answers = False
        self._sessions = sessions
        self._reader = FrameReader()
        self._hello_timer: Timer | None = None
        self._held: list[bytes] = []
        """Input that arrived while the node was congested."""
        self._frames: deque[Frame] = deque()
        """Requests that wait for the session's turn."""
        self.used_us = 0
        self.is_in_line = False
        self._partial_bytes = 0
        self._written_bytes = 0
        self._stall_timer: Timer | None = None
        self._handshake: ServerHandshake | None = None

    # -- what happens to the connection ----------------------------------------------------------------------

    def opened(self) -> None:
        """It is there."""
        sessions = self._sessions
        terms = sessions.terms
        number = sessions.admit(self)
        if number is None:
            sessions.complain(
                "full",
                "refused a connection from %(address)s: %(connections)d are open",
                address=self.socket.peer,
                connections=len(sessions.connections),
            )
            self.refuse(
                PenstockError(
                    ErrorCode.LIMIT_REACHED,
                    f"this server takes {terms.max_connections} connections, and all are in use; close "
                    "some, or raise native.max_connections",
                )
            )
            return
        self.number = number
        self._hello_timer = sessions.later(terms.hello_timeout_seconds, self._no_hello)
        if terms.secret is not None:
            self._handshake = ServerHandshake(terms.secret, SERVICE, sessions.new_nonce(), terms.place)
            self._reader = FrameReader(HANDSHAKE_FRAME_BYTES)
            self.socket.say(encode_frame(0, self._handshake.challenge()))

    def arrived(self, data: bytes) -> None:
        """The client says something."""
        if self.is_stopped:
            return
        if self._sessions.handler.congested:
            self._held.append(data)
            self._sessions.held[self] = None
            self.socket.pause_reading()
            return
        self._take(data)

    def written(self, size: int) -> None:
        """Answers were written."""
        self._written_bytes += size

    def behind(self) -> None:
        """The client does not read its answers."""
        self.has_unread_answers = True
        self.socket.pause_reading()
        if self.number:
            self._sessions.handler.behind(self.number)
        if self._stall_timer is None:
            self._watch_reader()

    def caught_up(self) -> None:
        """The client has read its answers."""
        self.has_unread_answers = False
        if self.number:
            self._sessions.handler.caught_up(self.number)
        if self._frames:
            self._sessions.turns.enter(self)
        self._resume_reading()

    def lost(self) -> None:
        """The connection is gone."""
        self._leave()

    # -- what the server asks for ----------------------------------------------------------------------------

    def allow(self, frame_bytes: int) -> None:
        """Frames may be so long from now on."""
        self._reader.allow(frame_bytes)
        if frame_bytes >= limits.FRAME_BYTES:
            self._sessions.strangers.leave(self)  # it is known who this is

    def go_on(self) -> None:
        """Takes the input that was held back, as far as it may be handled now."""
        held, self._held = self._held, []
        for data in held:
            self.arrived(data)
        self._resume_reading()

    def stop(self) -> None:
        """No request is taken from here on; answers still leave."""
        self.is_stopped = True
        self._held.clear()
        self._frames.clear()
        if not self.socket.is_closing:
            self.socket.pause_reading()

    def abort(self) -> None:
        """Closes at once."""
        self.is_stopped = True
        self.socket.abort()

    def give_way(self) -> None:
        """Closes at once, and is not counted any more."""
        self._leave()
        self.socket.abort()

    def refuse(self, error: PenstockError, request_id: int = 0) -> None:
        """Says what is wrong, once, and closes.

        What still arrives is thrown away for a moment: closing a socket with unread bytes in it resets the
        connection, and the client would never see why.
        """
        self._leave()
        sessions = self._sessions
        if sessions.turned_away >= min(LINGER_AT_ONCE, max(16, sessions.terms.max_connections // 8)):
            self.socket.abort()
            return
        sessions.turned_away += 1
        self.socket.say(encode_frame(request_id, encode_message(Failed(error.code, error.message))))
        self.socket.end_output()
        self.socket.resume_reading()
        sessions.later(LINGER_SECONDS, self._turned_away)

    # -- inside ----------------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        sessions = self._sessions
        try:
            if self._hello_timer is not None and begins_tls(data):
                raise PenstockError(ErrorCode.BAD_FRAME, "it uses TLS, and native.tls_certificate is not set")
            if self._hello_timer is not None and begins_header(data):
                raise PenstockError(
                    ErrorCode.BAD_FRAME,
                    "it begins with a header of the PROXY protocol, and its address is not among native.trusted_proxies",
                )
            frames = self._reader.feed(data)
            self._count_partial(self._reader.buffered_bytes, begins=bool(frames))
        except PenstockError as error:
            sessions.complain(
                "frames",
                "closed the connection from %(address)s: %(error)s",
                address=self.socket.peer,
                error=error.message,
            )
            self.refuse(error)
            return
        if frames and self._handshake is not None:
            frames = self._authenticate(self._handshake, frames)
        if frames:
            if self._hello_timer is not None:
                self._hello_timer.cancel()
                self._hello_timer = None
            self._hand_over(frames)

    def _hand_over(self, frames: Sequence[Frame]) -> None:
        """A lone request is handled at once where no client waits; several are handled by the session's turn."""
        turns = self._sessions.turns
        if len(frames) == 1 and not self._frames and turns.has_room and not self.has_unread_answers:
            began_us = turns.now_us()
            self._sessions.handler.handle(self.number, frames)
            turns.spent(turns.now_us() - began_us)
            return
        self._frames.extend(frames)
        if not self.has_unread_answers:
            turns.enter(self)
        if self._frames:
            self.socket.pause_reading()

    def serve(self, count: int) -> bool:
        """See `Line`. Requests are not begun while their answers cannot leave."""
        waiting = self._frames
        if self.is_stopped or self.has_unread_answers or not waiting:
            return False
        frames = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        self._sessions.handler.handle(self.number, frames)
        if not waiting:
            self._resume_reading()
        return bool(waiting)

    def _authenticate(self, handshake: ServerHandshake, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Takes the proof of whoever connected; a stranger is cut off and told nothing."""
        try:
            accepted = handshake.accept(frames[0].head)
        except HandshakeError as error:
            self._sessions.complain(
                "stranger",
                "closed the connection from %(address)s: %(error)s",
                address=self.socket.peer,
                error=error,
            )
            self.abort()
            return ()
        self._handshake = None
        self._sessions.strangers.leave(self)
        self._reader = FrameReader()
        self.socket.say(encode_frame(0, accepted))
        return frames[1:]

    def _count_partial(self, partial_bytes: int, *, begins: bool) -> None:
        """Keeps the sum over all connections within its budget. `begins`: a frame was whole, so that what is left is another."""
        sessions = self._sessions
        grown_bytes = partial_bytes - self._partial_bytes
        self._partial_bytes = partial_bytes
        sessions.partial_bytes += grown_bytes
        if begins or not partial_bytes:
            sessions.unfinished.pop(self, None)
        if partial_bytes:
            sessions.unfinished.setdefault(self)
        while grown_bytes > 0 and sessions.partial_bytes > PARTIAL_FRAME_BYTES:
            oldest = next(iter(sessions.unfinished))
            too_many = PenstockError(
                ErrorCode.OVERLOADED, "too many large requests are arriving at once; connect again and retry"
            )
            if oldest is self:
                raise too_many
            oldest.refuse(too_many)

    def _leave(self) -> None:
        """From now on the connection does not count, and its input is ignored."""
        self.is_stopped = True
        self._held.clear()
        self._frames.clear()
        self._sessions.unfinished.pop(self, None)
        for timer in (self._hello_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        self._sessions.partial_bytes -= self._partial_bytes
        self._partial_bytes = 0
        self._reader = FrameReader()
        number, self.number = self.number, 0
        if number:
            self._sessions.forget(self, number)

    def _turned_away(self) -> None:
        self._sessions.turned_away -= 1
        self.socket.abort()

    def _watch_reader(self, sent_bytes: int = -1) -> None:
        """Checks a client that is slow to read, until it has caught up."""
        self._stall_timer = None
        unread_bytes = self.socket.unread_bytes
        if not self.has_unread_answers or self.socket.is_closing:
            return
        sent_now = self._written_bytes - unread_bytes
        bound = ABANDONED_BUFFERS * self._sessions.terms.write_buffer_bytes
        if sent_now == sent_bytes and unread_bytes > bound:
            self._sessions.complain(
                "unread",
                "closed the connection from %(address)s: it left %(unread_bytes)d bytes of answers unread",
                address=self.socket.peer,
                unread_bytes=unread_bytes,
            )
            self.abort()
            return
        self._stall_timer = self._sessions.later(STALLED_SECONDS, lambda: self._watch_reader(sent_now))

    def _resume_reading(self) -> None:
        if self.is_stopped or self.has_unread_answers or self._held or self._frames or self.socket.is_closing:
            return
        self.socket.resume_reading()

    def _no_hello(self) -> None:
        seconds = self._sessions.terms.hello_timeout_seconds
        self._sessions.complain(
            "silent",
            "closed the connection from %(address)s: no hello within %(seconds)g s",
            address=self.socket.peer,
            seconds=seconds,
        )
        self.refuse(PenstockError(ErrorCode.BAD_FRAME, f"no hello arrived within {seconds:g} s"))
