"""The native port of a simulated front end: the twin of `runtime.cluster_link.gateway`. It may be killed, and starts again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from penstock.model.errors import PenstockError
from penstock.simulation.network import Link
from penstock.simulation.schedule import Schedule
from penstock.steps.step import Outcome
from penstock.wire import messages
from penstock.wire.frames import Frame, FrameReader, encode_frame
from penstock.wire.send_order import SendOrder

_KILLED_SHARE = 0.4
_KILLED_MS = (1_500, 7_000)


class Told(Protocol):
    """Is told what a front end says of a request, and whether it settled something for the second time, perhaps."""

    def __call__(self, outcome: Outcome, *, again: bool) -> None: ...


class FrontEnd(Protocol):
    """One process: what routes requests."""

    def carry_out(self, request: messages.Request, body: bytes, done: Told) -> int: ...
    def stop(self) -> None: ...


class FrontDoor:
    """Reads frames, keeps sends of a connection in order, has requests routed, and answers."""

    def __init__(
        self,
        start: Callable[[], FrontEnd],
        schedule: Schedule,
        random: Random,
        is_calm: Callable[[], bool],
    ) -> None:
        self._start = start
        self._schedule = schedule
        self._random = random
        self._is_calm = is_calm
        self._front_end = start()
        self._order = SendOrder()
        self._links: dict[int, tuple[Link, FrameReader]] = {}
        if random.random() < _KILLED_SHARE:
            schedule.after(random.randint(*_KILLED_MS), self._kill)

    def accepts(self) -> bool:
        """Somebody listens."""
        return True

    def opened(self, link: Link) -> None:
        """A client has connected."""
        self._links[link.number] = (link, FrameReader())

    def lost(self, link: Link) -> None:
        """A client is gone; what it asked for goes on."""
        self._links.pop(link.number, None)

    def arrived(self, link: Link, data: bytes) -> None:
        """Bytes of a client."""
        if link.number in self._links:
            for frame in self._links[link.number][1].feed(data):
                self._take(link, frame)

    def _take(self, link: Link, frame: Frame) -> None:
        request_id, request = frame.request_id, messages.decode_request(frame.head)
        if isinstance(request, messages.Hello | messages.Ping):
            self._answer(link, request_id, messages.Done())
            return
        if isinstance(request, messages.Send):
            try:
                self._order.check(link.number, request)
            except PenstockError as error:
                self._answer(link, request_id, messages.Failed(error.code, error.message))
                return
            self._order.taken(link.number, request)
        front_end = self._front_end

        def done(outcome: Outcome, *, again: bool) -> None:
            if front_end is not self._front_end:
                return
            if not isinstance(outcome, PenstockError):
                self._answer(link, request_id, outcome.answer, bytes(outcome.body))
                return
            if isinstance(request, messages.Send):
                self._order.refused(link.number, request)
            self._answer(link, request_id, messages.Failed(outcome.code, outcome.message))

        front_end.carry_out(request, bytes(frame.body), done)

    def _answer(self, link: Link, request_id: int, answer: messages.Answer, body: bytes = b"") -> None:
        if link.number in self._links:
            frame = encode_frame(request_id, messages.encode_message(answer), (body,) if body else ())
            link.to_client(b"".join(frame))

    def _kill(self) -> None:
        """The process dies with all that it remembers; another one takes its place at once."""
        if self._is_calm():
            return
        links, self._links = self._links, {}
        self._front_end.stop()
        self._front_end = self._start()
        self._order = SendOrder()
        for link, _ in links.values():
            link.server_stopped()
        self._schedule.after(self._random.randint(*_KILLED_MS), self._kill)
