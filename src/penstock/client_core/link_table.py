"""All requests and subscriptions that wait for an answer on a link, in the order in which they were asked.

It decides what happens to each of them: after a refusal, when the connection is lost or opened again, when there is none
for too long, and when a silent server is given up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from penstock.client_core.backoff import Slowdown, backoff
from penstock.client_core.call import Call, Stream, Unanswered
from penstock.client_core.endpoint_search import FINAL
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.liveness import Liveness, Sign
from penstock.wire.messages import Failed
from penstock.wire.refusals import error_code, error_of
from penstock.wire.request_ids import RequestIds

RESENDS_AT_MOST = 16
"""A request that is never answered, on any number of connections, is itself the cause."""


class FinalRefusal(NamedTuple):
    """The refusal is final: the call, or the stream, is told."""

    whom: Call | Stream
    error: PenstockError


class Again(NamedTuple):
    """The same is asked again after a pause, if the connection is still the same (`asks_again`)."""

    whom: Call | Stream
    seconds: float


class Stopping(NamedTuple):
    """The server is stopping: refused requests keep their place for the next one."""

    ends_connection: bool


class Nobody(NamedTuple):
    """No caller waits for it."""


RefusalOutcome = FinalRefusal | Again | Stopping | Nobody


def outlived() -> PenstockError:
    """What is said of a request that was asked so long ago that it must not be asked again."""
    return Unanswered("it was asked too long ago, and the server may have forgotten it")


class LinkTable:
    """The table of calls and streams by request id; `timeout` is how long each waits for a connection."""

    def __init__(self, timeout: float, dice: Random) -> None:
        self.calls: dict[int, Call] = {}
        self.streams: dict[int, Stream] = {}
        self.timeout = timeout
        self._dice = dice
        self._request_ids = RequestIds()
        self._pauses = backoff(dice)
        self._proven = True
        """Whether the last connection was good for something; after one that was not, there is a pause before the next."""
        self._liveness = Liveness()

    def __bool__(self) -> bool:
        return bool(self.calls or self.streams)

    # -- asking ----------------------------------------------------------------------------------------------

    def new_request_id(self) -> int:
        """The next id that nothing waits under."""
        return self._request_ids.next(self.calls, self.streams)

    def enter(self, call: Call, now: float, *, connected: bool) -> int:
        """A request is asked, now or when there is a connection; returns its id."""
        request_id = self.new_request_id()
        self.calls[request_id] = call
        call.deadline = None if connected else now + self.timeout
        return request_id

    def open(self, stream: Stream, now: float, *, connected: bool) -> None:
        """A subscription is opened, now or when there is a connection."""
        stream.request_id = self.new_request_id()
        self.streams[stream.request_id] = stream
        stream.deadline = None if connected else now + self.timeout

    def refused(self, request_id: int, answer: Failed, now: float) -> RefusalOutcome:
        """What becomes of a request, or a subscription, that the server refused."""
        code = error_code(answer.code)
        call = self.calls.get(request_id)
        if call is not None:
            if code is ErrorCode.SHUTTING_DOWN and call.resend:
                return Stopping(ends_connection=True)
            if code in call.waits_out and (pause := self._pause(call, self.timeout, now)) is not None:
                return Again(call, pause)
            del self.calls[request_id]
            return FinalRefusal(call, error_of(answer))
        stream = self.streams.get(request_id)
        if stream is None:
            return Nobody()
        if code is ErrorCode.SHUTTING_DOWN:
            return Stopping(ends_connection=False)  # it ends in a moment, and the stream is opened again
        if code is ErrorCode.THROTTLED:
            pause = self._pause(stream, math.inf, now)  # it waits for messages however long that takes
            return Again(stream, pause if pause is not None else math.inf)
        del self.streams[request_id]
        return FinalRefusal(stream, error_of(answer))

    def _pause(self, refused: Call | Stream, patience: float, now: float) -> float | None:
        """How long what was refused is to wait; nothing was done, so anything may be asked again."""
        if refused.slowdown is None:
            refused.slowdown = Slowdown(now + patience, self._dice)
        return refused.slowdown.pause(now)

    def asks_again(self, request_id: int, call: Call) -> bool:
        """Its pause is over: whether the call is asked again. Only while it still waits, and a caller waits for it."""
        if self.calls.get(request_id) is not call:
            return False
        if call.abandoned():
            del self.calls[request_id]
            call.dropped()
            return False
        return True

    # -- the connection --------------------------------------------------------------------------------------

    def first_pause(self) -> float:
        """How long to wait before the first attempt to connect again."""
        return 0.0 if self._proven else self._pauses.pause()

    def next_pause(self) -> float:
        """How long to wait after an attempt that failed."""
        return self._pauses.pause()

    def attempt_failed(self, refusal: PenstockError | None, reason: str, *, once: bool) -> float | None:
        """An attempt to connect failed; how long to wait before the next one, None: nothing waits for a connection any more.

        `once`: the first attempt is the only one.
        """
        if refusal is not None and refusal.code in FINAL:
            self.fail_all(refusal)
        elif once:
            self.fail_all(PenstockError(ErrorCode.UNREACHABLE, reason))
        return self.next_pause() if self else None

    def connected(self, clock: float = 0.0) -> Iterator[tuple[int, Call | Stream]]:
        """There is a connection: everything that waits is sent on it, in the order it was asked in.

        `clock`: what the computer's clock shows, in seconds, which goes on while the computer sleeps.
        """
        self._proven = False
        self._liveness.reset()
        waiting = list(self.calls.items())
        for request_id, call in waiting:
            if call.has_outlived(clock):
                del self.calls[request_id]
                call.cut_off(outlived())  # what waited for this one may be sent at once: not again below
        yield from [(request_id, call) for request_id, call in waiting if self.calls.get(request_id) is call]
        yield from list(self.streams.items())

    def heard(self) -> None:
        """The server has sent something."""
        if not self._proven:
            self._proven = True
            self._pauses.reset()

    def look_alive(self, *, heard: bool) -> Sign:
        """Whether the server is alive: if it is silent while a request waits it is pinged; if it stays silent it is given up."""
        return self._liveness.look(heard=heard, waits=bool(self))

    def connection_lost(self, now: float, reason: str) -> None:
        """Keeps what can be asked again on the next connection and fails the rest."""
        for request_id, call in list(self.calls.items()):
            call.resent += 1
            call.deadline = now + self.timeout
            if call.abandoned():
                del self.calls[request_id]
                call.dropped()
            elif not call.resend or call.resent > RESENDS_AT_MOST:
                del self.calls[request_id]
                call.fail(Unanswered(f"the connection broke before the answer: {reason}"))
        for stream in self.streams.values():
            stream.deadline = now + self.timeout

    def soonest_deadline(self) -> float | None:
        """When the first request gives up waiting for a connection."""
        calls = (call.deadline for call in self.calls.values())
        streams = (stream.deadline for stream in self.streams.values())
        return min((deadline for deadline in (*calls, *streams) if deadline is not None), default=None)

    def give_up(self, now: float, reason: str) -> None:
        """Fails what has waited for a connection for the whole timeout."""
        why = f"no connection for {self.timeout:g} s: {reason}"
        for request_id, call in list(self.calls.items()):
            if call.abandoned():
                del self.calls[request_id]
                call.dropped()
            elif call.deadline is not None and call.deadline <= now:
                del self.calls[request_id]
                call.fail(Unanswered(why))
        for request_id, stream in list(self.streams.items()):
            if stream.deadline is not None and stream.deadline <= now:
                del self.streams[request_id]
                stream.failed(Unanswered(why))

    def fail_all(self, error: PenstockError) -> None:
        """Empties the table."""
        calls, self.calls = self.calls, {}
        streams, self.streams = self.streams, {}
        for call in calls.values():
            call.cut_off(error)
        for stream in streams.values():
            stream.failed(error)
