"""The link of a simulated client: the counterpart of `client.connection.link`, over simulated time and networks.

The product (`client_core.link_table`) decides which requests wait, which are sent again, and when a server is given up.
Now and then a simulated limit refuses a send before any node gets it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from random import Random

from penstock.client_core.call import Call, Stream, unexpected
from penstock.client_core.link_table import Again, FinalRefusal, LinkTable, Nobody, Stopping, outlived
from penstock.model.errors import ErrorCode
from penstock.simulation.network import Link, Network
from penstock.simulation.schedule import Schedule
from penstock.wire import messages
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.liveness import Sign


class SimulatedLink:
    """Requests in, answers out, over the present connection."""

    def __init__(
        self,
        name: str,
        network: Network,
        timeout: float,
        random: Random,
        is_throttled: Callable[[], bool],
        throttled: tuple[type[messages.Request], ...] = (messages.Send,),
    ) -> None:
        self.table = LinkTable(timeout, random)
        self._name = name
        self._network = network
        self._is_throttled = is_throttled
        self._throttled = throttled
        """The kinds of requests that limits refuse."""
        self._link: Link | None = None
        self._heard = False
        self._is_seeking = False
        self._watches_deadlines = False

    @property
    def _schedule(self) -> Schedule:
        return self._network.schedule

    def now(self) -> float:
        """The time, in seconds."""
        return self._schedule.elapsed_ms / 1000

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Does something then; a moment that is no whole millisecond comes late."""
        self._schedule.after(max(1, ceil(1000 * (moment - self.now()))), action)

    def transmit(self, call: Call) -> None:
        """Sends a request, now or as soon as there is a connection."""
        if call.has_outlived(self.now()):
            raise outlived()
        link = self._link
        request_id = self.table.enter(call, self.now(), connected=link is not None)
        if link is not None:
            self._write(link, request_id, call)
        else:
            self._seek()

    def open_stream(self, stream: Stream) -> None:
        """Opens a subscription, now and again on every later connection."""
        link = self._link
        self.table.open(stream, self.now(), connected=link is not None)
        if link is not None:
            self._open_on(link, stream)
        else:
            self._seek()

    def close_stream(self, stream: Stream) -> None:
        """Ends a subscription; nothing that is on its way is taken any more."""
        if self.table.streams.pop(stream.request_id, None) is not None:
            self.post(messages.Unsubscribe(stream.request_id))

    def post(self, request: messages.Request) -> None:
        """Sends a request whose answer is ignored; without a connection it is dropped."""
        if self._link is not None:
            self._post(self._link, request)

    def disconnect(self) -> None:
        """Breaks the connection, if there is one."""
        if self._link is not None:
            self._link.break_off()

    # -- answers ---------------------------------------------------------------------------------------------

    def _arrived(self, link: Link, reader: FrameReader, data: bytes) -> None:
        if link is not self._link:
            return
        self._heard = True
        self.table.heard()
        for frame in reader.feed(data):
            self._answered(link, frame.request_id, messages.decode_answer(frame.head), frame.body)

    def _answered(self, link: Link, request_id: int, answer: messages.Answer, body: memoryview) -> None:
        if not isinstance(answer, messages.Failed):
            call = self.table.calls.pop(request_id, None)
            if call is not None:
                call.succeed(answer, body)
            else:
                self._delivered(request_id, answer, body)
            return
        match self.table.refused(request_id, answer, self.now()):
            case FinalRefusal(Call() as call, error):
                call.fail(error)
            case FinalRefusal(Stream() as stream, error):
                stream.failed(error)
            case Again(whom, seconds):
                self.at(self.now() + seconds, lambda: self._ask_again(link, request_id, whom))
            case Stopping(ends_connection):
                if ends_connection:
                    self.disconnect()
            case FinalRefusal() | Nobody():
                pass

    def _delivered(self, request_id: int, answer: messages.Answer, body: memoryview) -> None:
        stream = self.table.streams.get(request_id)
        if stream is None:
            return
        if isinstance(answer, messages.Delivery):
            stream.slowdown = None
            stream.delivered(answer, body)
        else:
            del self.table.streams[request_id]
            stream.failed(unexpected(answer))

    def _ask_again(self, link: Link, request_id: int, whom: Call | Stream) -> None:
        if link is not self._link:
            return
        if isinstance(whom, Stream):
            if self.table.streams.get(request_id) is whom:
                self._open_on(link, whom)
        elif self.table.asks_again(request_id, whom):
            self._write(link, request_id, whom)

    # -- the connection --------------------------------------------------------------------------------------

    def _write(self, link: Link, request_id: int, call: Call) -> None:
        request = call.request()
        call.writes(self.now())
        if isinstance(request, self._throttled) and self._is_throttled():
            refusal = messages.Failed(ErrorCode.THROTTLED, "a limit is used up")
            self._schedule.after(self._network.delay_ms(), lambda: self._refuse(link, request_id, refusal))
            return
        link.to_server(b"".join(encode_frame(request_id, messages.encode_message(request), call.body)))

    def _refuse(self, link: Link, request_id: int, refusal: messages.Failed) -> None:
        if link is self._link:
            self._answered(link, request_id, refusal, memoryview(b""))

    def _post(self, link: Link, request: messages.Request) -> None:
        link.to_server(b"".join(encode_frame(self.table.new_request_id(), messages.encode_message(request))))

    def _open_on(self, link: Link, stream: Stream) -> None:
        opening = messages.encode_message(stream.opening())
        link.to_server(b"".join(encode_frame(stream.request_id, opening)))

    def _seek(self) -> None:
        if not self._is_seeking:
            self._is_seeking = True
            self.at(self.now() + self.table.first_pause(), self._connect)
        self._watch_deadlines()

    def _connect(self) -> None:
        if not self.table:
            self._is_seeking = False
            return
        link: Link | None = None
        reader = FrameReader()

        def arrived(data: bytes) -> None:
            if link is not None:
                self._arrived(link, reader, data)

        def lost() -> None:
            if link is not None:
                self._lost(link)

        link = self._network.connect(arrived, lost)
        if link is None:
            self.at(self.now() + self.table.next_pause(), self._connect)
            return
        self._is_seeking = False
        self._link = link
        self._post(link, messages.Hello([messages.PROTOCOL_VERSION], self._name))
        self._look_alive_later(link)
        for request_id, waiting in self.table.connected(self.now()):
            if isinstance(waiting, Call):
                self._write(link, request_id, waiting)
            else:
                self._open_on(link, waiting)

    def _lost(self, link: Link) -> None:
        if link is self._link:
            self._link = None
            self.table.connection_lost(self.now(), "the connection was lost")
            if self.table:
                self._seek()

    def _watch_deadlines(self) -> None:
        """Fails what has waited for a connection for too long, now and when the next has."""
        if self._watches_deadlines:
            return
        soonest = self.table.soonest_deadline()
        if soonest is not None and self._link is None:
            self._watches_deadlines = True
            self.at(soonest, self._give_up)

    def _give_up(self) -> None:
        self._watches_deadlines = False
        if self._link is None:
            self.table.give_up(self.now(), "nobody answers")
            self._watch_deadlines()

    def _look_alive_later(self, link: Link) -> None:
        self.at(self.now() + self.table.timeout / 2, lambda: self._look_alive(link))

    def _look_alive(self, link: Link) -> None:
        if link is not self._link:
            return
        heard, self._heard = self._heard, False
        match self.table.look_alive(heard=heard):
            case Sign.PROBE:
                self._post(link, messages.Ping())
            case Sign.GIVE_UP:
                self.disconnect()
            case Sign.LIVES:
                pass
        self._look_alive_later(link)
