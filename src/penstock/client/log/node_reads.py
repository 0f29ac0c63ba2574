"""One connection to a node's port for readers: sends its ticket and reads slices of one partition, and nothing else.

It only ever succeeds: reads that it cannot answer go back to its owner, who asks the front end instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from penstock.client.connection.address import parse_address
from penstock.client.connection.trust import trusting
from penstock.client_core.call import Call
from penstock.model.errors import ErrorCode
from penstock.model.partition_numbers import number_in_partition, number_of
from penstock.streams.framed import FramedConnection
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.liveness import Liveness, Sign
from penstock.wire.log_messages import LogAddress, LogSlice, ReadLog
from penstock.wire.messages import Failed, Ping, Welcome, decode_answer, encode_message
from penstock.wire.request_ids import RequestIds

LOOK_SECONDS = 2.5
"""A node that has sent nothing for so long is pinged; after as long again the connection is ended."""

Asked = tuple[Call, ReadLog]
HandedBack = Callable[[list[Asked]], None]
"""Called with a read that was not answered."""


class NodeReads:
    """Made by `connect_to_node`; `partition` is the ordinal of the partition."""

    def __init__(
        self, place: LogAddress, partition: int, loop: asyncio.AbstractEventLoop, handed_back: HandedBack
    ) -> None:
        self.greeted: asyncio.Future[None] = loop.create_future()
        self.ended = False
        self.received_bytes = 0
        """Of slices."""
        self._place = place
        self._partition = partition
        self._loop = loop
        self._handed_back = handed_back
        self._calls: dict[int, Asked] = {}
        self._ids = RequestIds()
        self._watch: asyncio.TimerHandle | None = None
        self._liveness = Liveness()
        self.connection = FramedConnection(self, loop)

    # -- asking ----------------------------------------------------------------------------------------------

    def ask(self, call: Call, request: ReadLog) -> None:
        """Asks the node; the call gets a slice, or is handed back."""
        start = number_in_partition(request.start)
        asked = msgspec.structs.replace(request, queue_id=self._place.partition_id, start=start)
        request_id = self._ids.next(self._calls)
        self._calls[request_id] = (call, request)
        self.connection.write(encode_frame(request_id, encode_message(asked)))

    def close(self) -> None:
        """Ends it; unanswered reads are handed back."""
        self.connection.abort(ConnectionError("closed"))

    # -- called by the connection ----------------------------------------------------------------------------

    def frames_received(self, connection: FramedConnection, frames: Iterable[Frame]) -> None:
        """Slices arrived, or refusals."""
        for request_id, head, body, _ in frames:
            try:
                answer = decode_answer(head)
            except msgspec.DecodeError:
                connection.abort(ConnectionError("the program there is not a node of a Penstock cluster"))
                return
            if isinstance(answer, Welcome):
                self._welcomed()
                continue
            asked = self._calls.pop(request_id, None)
            if asked is None:
                continue  # the answer to a question whether it is there
            if isinstance(answer, LogSlice):
                self.received_bytes += len(body)
                asked[0].succeed(outward(answer, self._partition), body)
                continue
            self._handed_back([asked])
            if not isinstance(answer, Failed) or answer.code != ErrorCode.OFFSET_GONE:
                # It no longer leads the partition, or has a problem about which the front end knows more.
                connection.abort(ConnectionError("the node refused the connection"))
                return

    def connection_lost(self, connection: FramedConnection, error: Exception | None) -> None:
        """Everything that was asked is asked elsewhere."""
        self.ended = True
        if self._watch is not None:
            self._watch.cancel()
        if not self.greeted.done():
            self.greeted.set_exception(error or ConnectionError("the node refused the ticket"))
        calls, self._calls = self._calls, {}
        self._handed_back(list(calls.values()))

    def _welcomed(self) -> None:
        if not self.greeted.done():
            self.greeted.set_result(None)
            self._watch = self._loop.call_later(LOOK_SECONDS, self._look_alive)

    def _look_alive(self) -> None:
        self._watch = self._loop.call_later(LOOK_SECONDS, self._look_alive)
        connection = self.connection
        heard, connection.heard = connection.heard, False
        match self._liveness.look(heard=heard, waits=bool(self._calls)):
            case Sign.PROBE:
                connection.write(encode_frame(self._ids.next(self._calls), encode_message(Ping())))
            case Sign.GIVE_UP:
                connection.abort(TimeoutError(f"silent for {2 * LOOK_SECONDS:g} s"))
            case Sign.LIVES:
                pass


async def connect_to_node(
    place: LogAddress, partition: int, loop: asyncio.AbstractEventLoop, handed_back: HandedBack
) -> NodeReads:
    """A connection that the node has accepted; raises `OSError` and `PenstockError`."""
    address = parse_address(f"penstock://{place.address}")
    # Names count where the cluster's configuration says so (`cluster.tls_name`).
    tls = trusting(place.authority, named=bool(place.certified_name)) if place.authority else None
    name = (place.certified_name or address.host) if tls is not None else None
    reads = NodeReads(place, partition, loop, handed_back)
    try:
        await loop.create_connection(
            lambda: reads.connection, address.host, address.port, ssl=tls, server_hostname=name
        )
        reads.connection.write(encode_frame(0, place.ticket))
        await reads.greeted
    except BaseException:
        reads.close()
        if reads.greeted.done() and not reads.greeted.cancelled():
            reads.greeted.exception()  # this error already explains the failure
        raise
    return reads


def outward(given: LogSlice, partition: int) -> LogSlice:
    """A slice with the numbers that a front end would give it."""
    if not partition:
        return given
    replace = msgspec.structs.replace
    batches = [replace(batch, first=number_of(partition, batch.first)) for batch in given.batches]
    return LogSlice(batches, number_of(partition, given.next), number_of(partition, given.end))
