"""Reads partitions directly from the nodes that lead them, and through the front end whenever that fails.

Every read is one call that is answered once: by the node, or, if the node refuses, dies, moves the partition away, is
silent or cannot be reached, by the front end, which gets the same read. So nothing is lost or repeated in between. While
reads go through the front end, the client tries the node again, less and less often.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from penstock.client.connection.link import Link
from penstock.client.log.node_reads import Asked, NodeReads, connect_to_node
from penstock.client_core.call import Call
from penstock.client_core.node_search import FIND_SECONDS, NodeSearch, ReadRoute
from penstock.model.errors import PenstockError
from penstock.wire.log_messages import LocateLog, LogAddress, ReadLog

logger = logging.getLogger("penstock.client")


class ReadsThrough(Protocol):
    """Sends reads of a log: the link to the front end, or a `DirectPartition`."""

    def start(self, call: Call, message: ReadLog) -> object:
        """Asks; the call gets the answer."""


class DirectReads:
    """The partitions of one queue that are read from nodes; all readers of a client share it."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._queue_id = 0
        self._partitions: dict[int, DirectPartition] = {}
        self._earlier_bytes = 0

    def partition(self, queue_id: int, partition: int) -> DirectPartition:
        """Reads of a partition, by its ordinal, of an incarnation of the queue."""
        if queue_id != self._queue_id:
            self._earlier_bytes = self.received_bytes
            for one in self._partitions.values():
                one.end()
            self._queue_id, self._partitions = queue_id, {}
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = DirectPartition(self._link, queue_id, partition)
            self._link.background.add(found)
        return found

    @property
    def received_bytes(self) -> int:
        """The bytes of the log that came from nodes, without passing a front end."""
        return self._earlier_bytes + sum(one.received_bytes for one in self._partitions.values())


class DirectPartition:
    """Reads of one partition."""

    def __init__(self, link: Link, queue_id: int, partition: int) -> None:
        self._link = link
        self._queue_id = queue_id
        self._partition = partition
        self._node: NodeReads | None = None
        self._finding: asyncio.Task[None] | None = None
        self._held: list[Asked] = []
        """Reads that wait while the node is looked for the first time."""
        self._search = NodeSearch()
        self._told = False
        self._earlier_bytes = 0
        self._closed = False

    @property
    def received_bytes(self) -> int:
        """The bytes that came from nodes."""
        return self._earlier_bytes + (self._node.received_bytes if self._node is not None else 0)

    def start(self, call: Call, message: ReadLog) -> None:
        """Asks the node, or the front end where there is no connection to the node."""
        if self._search.looks(self._link.loop.time()):
            self._finding = self._link.loop.create_task(
                self._find(), name="penstock finds a node to read from"
            )
        match self._search.way():
            case ReadRoute.NODE if self._node is not None:
                self._node.ask(call, message)
            case ReadRoute.HELD:
                self._held.append((call, message))
            case _:
                self._link.start(call, message)

    async def close(self) -> None:
        """Called before the link is closed."""
        self.end()

    def end(self) -> None:
        """Reads that are under way, and later ones, go through the front end."""
        self._closed = True
        self._search.close()
        if self._finding is not None:
            self._finding.cancel()
        if self._node is not None:
            self._node.close()

    # -- finding the node ------------------------------------------------------------------------------------

    async def _find(self) -> None:
        place = LogAddress()
        try:
            async with asyncio.timeout(FIND_SECONDS):
                place = await self._link.ask(LocateLog(self._queue_id, self._partition), LogAddress)
                if not place.address:
                    self._search.not_offered(self._link.loop.time())
                    return
                if self._link.is_secure and not place.authority:
                    raise ConnectionError(
                        "it does not use TLS, which this client requires (cluster.tls_certificate)"
                    )
                self._found(await connect_to_node(place, self._partition, self._link.loop, self._handed_back))
        except (OSError, PenstockError) as error:
            self._not_found(place, error)
        finally:
            self._finding = None
            self._search.ended()
            held, self._held = self._held, []
            for call, message in held:
                self._ask_again(call, message)

    def _not_found(self, place: LogAddress, error: OSError | PenstockError) -> None:
        code = error.code if isinstance(error, PenstockError) else None
        self._search.not_found(self._link.loop.time(), code)
        if place.address and not self._told:
            self._told = True
            why = str(error) or f"it does not answer within {FIND_SECONDS:g} s"
            logger.warning(
                "reading partition %(partition)d through the front end, because its node cannot be read "
                "at %(address)s: %(reason)s",
                {"partition": self._partition, "address": place.address, "reason": why},
            )

    def _found(self, node: NodeReads) -> None:
        if self._node is not None:
            self._earlier_bytes += self._node.received_bytes
        self._node = node
        if not node.ended:
            self._search.found()
        if self._closed:
            node.close()

    # -- what the node did not answer ------------------------------------------------------------------------

    def _handed_back(self, asked: list[Asked]) -> None:
        """The front end answers what the node did not; a node that was good for something is looked for again soon."""
        node = self._node
        self._search.handed_back(
            self._link.loop.time(),
            reads=len(asked),
            was_good=node is not None and bool(node.received_bytes),
            is_gone=node is not None and node.ended,
        )
        for call, message in asked:
            if not call.abandoned():
                self._through_front_end(call, message)

    def _ask_again(self, call: Call, message: ReadLog) -> None:
        if call.abandoned():
            return
        if self._search.way() is ReadRoute.NODE and self._node is not None:
            self._node.ask(call, message)
        else:
            self._through_front_end(call, message)

    def _through_front_end(self, call: Call, message: ReadLog) -> None:
        try:
            self._link.start(call, message)
        except PenstockError as error:  # the client is closed
            call.fail(error)
