"""The client: queues by name, and requests about queues rather than messages."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Generator
from types import TracebackType
from typing import Unpack

from penstock.client.connection.address import DEFAULT_URL, parse_url
from penstock.client.connection.call import FutureCall, expecting
from penstock.client.connection.credentials import chosen_credentials
from penstock.client.connection.failure import refused
from penstock.client.connection.link import Link
from penstock.client.connection.route import Route
from penstock.client.connection.trust import Authority, trust_at
from penstock.client.duration import Duration, milliseconds
from penstock.client.options import changes_of, settings_of
from penstock.client.produce.clock import LOCAL_CLOCK, ClientClock, ClockStatus
from penstock.client.produce.sequencer import ClientSequencer
from penstock.client.produce.stamping import Stamping
from penstock.client.queue import Queue
from penstock.client.queue_options import QueueOptions
from penstock.client.replies.replier import Replier
from penstock.client.replies.requester import Requester
from penstock.client.settle.settlement import Settler
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings_checks import check_queue_name, check_settings
from penstock.ordering.clock_estimator import DRIFT_PPM
from penstock.ordering.local_clock import LocalClock
from penstock.ordering.timestamp_id import IdRange, TimestampId
from penstock.wire.messages import (
    AlterQueue,
    CreateQueue,
    DeleteQueue,
    DescribeNode,
    DescribeQueue,
    Done,
    ListQueues,
    NodeDescription,
    QueueDescription,
    QueueList,
    TakeIds,
    TakenIds,
)

QUEUES_PER_PAGE = 100


class Client:
    """A connection to a server that reconnects by itself; made by `penstock.connect()`. Use it from one event loop."""

    def __init__(self, link: Link, local_clock: LocalClock, drift_ppm: int) -> None:
        self._link = link
        self._clock = ClientClock(link, local_clock, drift_ppm)
        self._stamping = Stamping(self._clock)
        self.sequencer: ClientSequencer = ClientSequencer(self._stamping)
        """Timestamp ids made here, by the server's time: `await client.sequencer.take(10)`."""
        self._producer = secrets.randbits(63) or 1
        self._replier = Replier(self._new_route)
        self._requester = Requester(link, self._new_route)
        self._queues: dict[str, Queue] = {}
        self._routes: dict[str, Route] = {}

    async def close(self) -> None:
        """Flushes producers, ends consumers, closes the connection. `async with` does it by itself."""
        await self._link.close()

    # -- queues ----------------------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        """A handle on a queue; the server is asked on first use."""
        queue = self._queues.get(name)
        if queue is None:
            route = Route(name, self._link, self._producer, self._stamping)
            queue = Queue(route, Settler(name, self._link, self._replier), self._requester)
            self._routes[name] = route
            self._queues[name] = queue
        return queue

    def _new_route(self, name: str) -> Route:
        """A separate route, which numbers its batches independently."""
        return Route(name, self._link, secrets.randbits(63) or 1, self._stamping)

    async def create_queue(self, name: str, **options: Unpack[QueueOptions]) -> Queue:
        """Creates a queue, or finds the one that has the same settings. See `QueueOptions`."""
        check_queue_name(name)
        settings = settings_of(options)
        check_settings(name, settings)
        description = await self._link.ask(CreateQueue(name, settings), QueueDescription)
        queue = self.queue(name)
        self._routes[name].learn(description)
        return queue

    async def alter_queue(self, name: str, **options: Unpack[QueueOptions]) -> QueueDescription:
        """Changes settings of a queue; those not named stay as they are."""
        if not options:
            raise refused("name at least one option to change")
        description = await self._link.ask(AlterQueue(name, changes_of(options)), QueueDescription)
        if name in self._routes:
            self._routes[name].learn(description)
        return description

    async def delete_queue(self, name: str) -> None:
        """Deletes a queue and what is in it."""
        queue_id = await self._id_of(name)
        # Sent again it must not delete another queue that was made under the name since.
        call = FutureCall(self._link.loop, expecting(Done), resend=queue_id > 0)
        self._link.start(call, DeleteQueue(name, queue_id))
        try:
            await call.future
        except PenstockError as error:
            # Sent again after a lost connection, it may find that it was done before.
            if error.code is not ErrorCode.QUEUE_NOT_FOUND or not call.resent:
                raise
        if name in self._routes:
            self._routes[name].forget()

    async def _id_of(self, name: str) -> int:
        """Which queue has the name now; 0 where this user may not know."""
        try:
            return (await self._link.ask(DescribeQueue(name), QueueDescription)).queue_id
        except PenstockError as error:
            if error.code is not ErrorCode.ACCESS_DENIED:
                raise
            return 0

    async def describe_queue(self, name: str) -> QueueDescription:
        """Settings and statistics of a queue, as of now."""
        return await self.queue(name).describe()

    async def list_queues(self, prefix: str = "") -> AsyncIterator[QueueDescription]:
        """All queues whose name begins with `prefix`, by name."""
        async for page in self.queue_pages(prefix):
            for description in page.queues:
                yield description

    async def queue_pages(self, prefix: str) -> AsyncIterator[QueueList]:
        """The requests of `list_queues`, one page at a time."""
        after = ""
        more = True
        while more:
            page = await self._link.ask(ListQueues(prefix, after, QUEUES_PER_PAGE), QueueList)
            yield page
            more = page.more and bool(page.queues)
            after = page.queues[-1].name if page.queues else ""

    async def describe_node(self) -> NodeDescription:
        """The server itself: disk, memory, what is wrong."""
        return await self._link.ask(DescribeNode(), NodeDescription)

    # -- time ------------------------------------------------------------------------------------------------

    async def clock(self) -> ClockStatus:
        """The server's time, how far this computer's clock is from it, and how far that may be off."""
        return await self._clock.status()

    async def timestamp_id(self) -> TimestampId:
        """A new timestamp id, made here: greater than all that this client made before. See `sequencer`."""
        return (await self.sequencer.take())[0]

    async def timestamp_ids(self, count: int = 1) -> list[TimestampId]:
        """New timestamp ids, made here, all of one time. See `sequencer`."""
        return await self.sequencer.take(count)

    async def take_ids(self, count: int = 1) -> list[TimestampId]:
        """New timestamp ids from the server's sequencer, for programs without a clock of their own."""
        # Asked again after a lost connection it gives other ids, which does no harm.
        taken = await self._link.ask(TakeIds(count), TakenIds)
        return list(IdRange(TimestampId(taken.time_us, taken.process, taken.counter), taken.count).ids())


class Connecting:
    """A client that is not connected yet: `async with penstock.connect() as client`, or `client = await penstock.connect()`."""

    def __init__(
        self,
        url: str,
        timeout: Duration,
        name: str | None,
        local_clock: LocalClock = LOCAL_CLOCK,
        drift_ppm: int = DRIFT_PPM,
        access_key: str | None = None,
        secret_key: str | None = None,
        ca: Authority | None = None,
    ) -> None:
        self.address, in_url = parse_url(url)
        self._tls = trust_at(self.address, ca)
        self._credentials = chosen_credentials(access_key, secret_key, in_url)
        self._timeout = milliseconds(timeout, "timeout") / 1000
        if not self._timeout:
            raise refused("timeout is 0: give seconds, above 0")
        self._name = name or f"python {socket.gethostname()}:{os.getpid()}"
        self._local_clock = local_clock
        self._drift_ppm = drift_ppm
        self._client: Client | None = None

    async def connect(self, within: float | None = None, *, once: bool = False) -> Client:
        """Connects; raises when the server cannot be reached, `within` so many seconds or the timeout, or `once`."""
        loop = asyncio.get_running_loop()
        link = Link(self.address, self._timeout, self._name, loop, self._credentials, self._tls)
        try:
            await link.open(within, once=once)
        except BaseException:
            await link.close()
            raise
        return Client(link, self._local_clock, self._drift_ppm)

    def __await__(self) -> Generator[object, None, Client]:
        return self.connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self.connect()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()


def connect(
    url: str = DEFAULT_URL,
    *,
    timeout: Duration = 30.0,
    name: str | None = None,
    local_clock: LocalClock = LOCAL_CLOCK,
    drift_ppm: int = DRIFT_PPM,
    access_key: str | None = None,
    secret_key: str | None = None,
    ca: Authority | None = None,
) -> Connecting:
    """Connects to a server: `async with penstock.connect("penstock://127.0.0.1:9326") as client: ...`.

    `access_key` and `secret_key`: the credentials, if the server has users; without them those of the URL
    (`penstock://KEY:SECRET@host`) or of the environment are used (`PENSTOCK_ACCESS_KEY` and `PENSTOCK_SECRET_KEY`, or
    `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`). The secret is never sent.

    For TLS the URL begins with `penstocks://`. The server's certificate must contain the host of the URL, and be signed by
    an authority of `ca` (a PEM file, or its contents), of the URL (`?ca=FILE`) or of the environment (`PENSTOCK_CA`);
    without any of these, by one that this computer trusts.

    `timeout`: for how many seconds the client tries to reconnect before waiting requests fail with `unreachable`, and
    repeats a send that a cluster cannot accept now. `name` is the client's name for operators. `local_clock`: the clocks
    to use instead of this computer's; `drift_ppm`: their maximum error in millionths.
    """
    return Connecting(url, timeout, name, local_clock, drift_ppm, access_key, secret_key, ca)
