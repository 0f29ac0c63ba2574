"""The usage record of readers with tickets at a node: rows like those of front ends, each about many reads.

A row contains the reads of one connection in up to ten seconds. Reads never wait for it: counting is an addition, a row
goes to the spool like those of front ends, and a task sends the spool to the log, through the node's own cluster.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from penstock.frontend.native.answers import OK_STATUS, messages_in
from penstock.frontend.usage.record_usage import SUCCEEDED, RequestIds
from penstock.model.batch import Buffer
from penstock.model.limits import MEBIBYTE
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.runtime.disk.spool_directory import SpoolDirectory
from penstock.runtime.usage.sender import UsageSender
from penstock.usage.collector import UsageCollector, UsageTotals
from penstock.usage.event import UsageEvent
from penstock.wire.frames import Frame, frames_in
from penstock.wire.messages import LogSlice, decode_answer
from penstock.wire.read_ticket import Holder

ACTION = "ReadLogAtNode"
"""Not `ReadLog`, of which a row is one."""
ROW_SECONDS = 10.0
"""What may be unrecorded when a node is killed."""
SPOOL_BYTES = 4 * MEBIBYTE


class Tally:
    """What one connection was sent since its last row."""

    __slots__ = ("_address", "_bytes_in", "_bytes_out", "_holder", "_messages", "_since_ms")

    def __init__(self, holder: Holder, address: str) -> None:
        self._holder = holder
        self._address = address
        self._since_ms = 0
        self._bytes_in = 0
        self._bytes_out = 0
        self._messages = 0

    def asked(self, frames: Sequence[Frame]) -> None:
        """Reads that the node is asked for."""
        self._bytes_in += sum(len(frame.head) for frame in frames)

    def answered(self, buffers: Sequence[Buffer], now_ms: int) -> bool:
        """Counts an answer; True with the first messages since the last row."""
        begins = False
        for _, head, size in frames_in(buffers):
            answer = decode_answer(head)
            if isinstance(answer, LogSlice):  # refusals are asked of a front end again, which records them
                found = messages_in(answer)
                if found and not self._messages:
                    begins, self._since_ms = True, now_ms
                self._messages += found
                self._bytes_out += size
        return begins

    def taken(self, request_id: str) -> UsageEvent | None:
        """The row, after which it counts from nothing; None: there were no messages to tell of."""
        if not self._messages:
            return None
        holder = self._holder
        event = UsageEvent(
            time_ms=self._since_ms,
            account=holder.account,
            user=holder.user,
            address=self._address,
            action=ACTION,
            queue=holder.queue,
            messages=self._messages,
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
            outcome=SUCCEEDED,
            status=OK_STATUS,
            latency_us=0,
            request_id=request_id,
        )
        self._bytes_in = self._bytes_out = self._messages = 0
        return event


class ReaderRecord:
    """Accepts rows from the beginning; they go to the log after `start`."""

    def __init__(self, directory: str, node: str) -> None:
        self._collector = UsageCollector(
            SpoolDirectory(directory), node, token=secrets.token_bytes(16), spool_bytes=SPOOL_BYTES
        )
        self._request_ids = RequestIds(secrets.token_bytes(10))
        self._link: ClusterLink | None = None
        self._sender: UsageSender | None = None

    def start(self, link: ClusterLink) -> None:
        """Rows, and those that an earlier process has left, go to the log over this link, which is closed with it."""
        self._link = link
        self._sender = UsageSender(self._collector, link)
        self._sender.start()

    def write(self, tally: Tally) -> None:
        """A row about what was sent since the last."""
        event = tally.taken(self._request_ids.next())
        if event is not None:
            self._collector.record(event)

    def totals(self) -> UsageTotals:
        """The counts of rows so far."""
        return self._collector.totals()

    async def close(self) -> None:
        """Hands on what there is, if the log takes it soon; the rest stays for the next process."""
        if self._sender is not None:
            await self._sender.close()
        self._collector.close()
        if self._link is not None:
            await self._link.close()
