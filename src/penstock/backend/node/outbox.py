"""The outbox: an answer leaves when everything that was appended before it is on disk, and not earlier.

The answer to a send with a server stamp waits until the stamp has certainly passed as well. In a cluster an answer also
names the partitions that it is about, and leaves when their state is committed on the replicas.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode
from penstock.model.runs import Runs
from penstock.replication.interface import Commitment, Need
from penstock.wire.frames import encode_frame
from penstock.wire.messages import Answer, Failed, encode_message

_LOST = Failed(
    ErrorCode.UNREACHABLE,
    "this node is no longer the primary of the partition, and its other replicas may not have the request: it may or may not have been carried out",
)
_TOO_FEW = Failed(
    ErrorCode.UNREACHABLE,
    "replicas were lost before enough of them had the batch: it may or may not be stored",
)


class LeaseRef(NamedTuple):
    """The lease that an answer delivers; it is returned if the receiver is gone."""

    partition_id: int
    lease: int
    runs: Runs


class HandedAnswer(NamedTuple):
    """An answer to a client in this process, which is not encoded."""

    request_id: int
    answer: Answer
    body: Sequence[Buffer]


HandOver = Callable[[list[HandedAnswer]], None]
"""How a client in this process takes answers."""
_Form = list[Buffer] | HandedAnswer
"""A frame for a socket, or what is handed over."""


class _Waiting(NamedTuple):
    position: int
    connection: int
    form: _Form
    leases: Sequence[LeaseRef]
    body_bytes: int
    stamp_us: int
    request_id: int
    needs: Sequence[Need]
    needs_copies: bool


class Outbox:
    """Answers in the order in which they were made."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self.stamped: list[tuple[int, int, int, _Form]] = []
        """(stamp, number, connection, form) of answers on disk whose stamp may not have passed yet: a separate heap, so that
        no other answer waits behind them.
        """
        self._stamped_total = 0
        self._ready: dict[int, list[Buffer]] = {}
        self._handed: dict[int, list[HandedAnswer]] = {}
        self.in_process: dict[int, HandOver] = {}
        """The connections that are no sockets, but clients in this process."""
        self._body_bytes: dict[int, int] = {}
        self.undelivered: list[LeaseRef] = []
        """Leases whose receiver was gone when the answer could leave."""
        self.commitment: Commitment
        """Says what is committed; set once the node's data is open."""
        self._held: dict[int, deque[_Waiting]] = {}
        """By the partition that they wait for next: answers that are on this node's disk."""

    def put(
        self,
        position: int,
        connection: int,
        request_id: int,
        answer: Answer,
        body: Sequence[Buffer] = (),
        leases: Sequence[LeaseRef] = (),
        stamp_us: int = 0,
        needs: Sequence[Need] = (),
        *,
        needs_copies: bool = False,
    ) -> None:
        """The answer may leave once the journal is on disk up to `position`, what it needs is committed, and time is
        past `stamp_us`. One that `needs_copies` says something else where that is committed on too few disks."""
        form = self._form(connection, request_id, answer, body)
        body_bytes = sum(map(len, body)) if body else 0
        if body_bytes:
            self._body_bytes[connection] = self._body_bytes.get(connection, 0) + body_bytes
        self._waiting.append(
            _Waiting(
                position, connection, form, leases, body_bytes, stamp_us, request_id, needs, needs_copies
            )
        )

    def put_now(self, connection: int, request_id: int, answer: Answer) -> None:
        """The answer may leave at once: it does not depend on stored data."""
        self._let_leave(connection, self._form(connection, request_id, answer, ()))

    def _form(self, connection: int, request_id: int, answer: Answer, body: Sequence[Buffer]) -> _Form:
        if connection in self.in_process:
            return HandedAnswer(request_id, answer, body)
        return encode_frame(request_id, encode_message(answer), body)

    def _let_leave(self, connection: int, form: _Form) -> None:
        if isinstance(form, HandedAnswer):
            self._handed.setdefault(connection, []).append(form)
        elif (queued := self._ready.get(connection)) is None:
            self._ready[connection] = form
        else:
            queued += form

    def body_bytes(self, connection: int) -> int:
        """Bytes of messages on their way to a connection that may not leave yet."""
        return self._body_bytes.get(connection, 0)

    def committed(self, position: int, connections: Collection[int]) -> None:
        """The journal is on disk up to `position`."""
        waiting = self._waiting
        while waiting and waiting[0].position <= position:
            first = waiting.popleft()
            _, connection, form, leases, body_bytes, stamp_us, _, needs, _ = first
            if needs:
                self._let_go(first, connections)
                continue
            if stamp_us:
                self._stamped_total += 1
                heappush(self.stamped, (stamp_us, self._stamped_total, connection, form))
                continue
            if body_bytes:
                self._count_out(connection, body_bytes)
            if connection in connections:
                self._let_leave(connection, form)
            else:
                self.undelivered += leases

    def replicated(self, partition: int, connections: Collection[int]) -> None:
        """More of a partition is committed, or will never be: checks the answers that wait for it."""
        held = self._held.get(partition)
        while held:
            if self.commitment.is_committed(_need_of(held[0], partition)) is False:
                return
            self._let_go(held.popleft(), connections)
        self._held.pop(partition, None)

    def _let_go(self, answer: _Waiting, connections: Collection[int]) -> None:
        """Lets an answer leave if all that it needs is committed; else it waits for what is not."""
        for need in answer.needs:
            state = self.commitment.is_committed(need)
            if state is None:
                answer = self._instead(answer, _LOST)
                break
            if not state:
                self._held.setdefault(need[0], deque()).append(answer)
                return
            if answer.needs_copies and not self.commitment.has_copies(need):
                answer = self._instead(answer, _TOO_FEW)
                break
        if answer.stamp_us:
            self._stamped_total += 1
            heappush(self.stamped, (answer.stamp_us, self._stamped_total, answer.connection, answer.form))
            return
        if answer.body_bytes:
            self._count_out(answer.connection, answer.body_bytes)
        if answer.connection in connections:
            self._let_leave(answer.connection, answer.form)
        else:
            self.undelivered += answer.leases

    def _instead(self, answer: _Waiting, failed: Failed) -> _Waiting:
        """The answer in place of one that became untrue."""
        form = self._form(answer.connection, answer.request_id, failed, ())
        return answer._replace(form=form, leases=(), stamp_us=0)

    def passed(self, time_us: int, connections: Collection[int]) -> None:
        """Time is past this for certain: answers with stamps up to it may leave."""
        stamped = self.stamped
        while stamped and stamped[0][0] <= time_us:
            _, _, connection, form = heappop(stamped)
            if connection in connections:
                self._let_leave(connection, form)

    def next_stamp_us(self) -> int | None:
        """The stamp that the next of these answers waits for."""
        return self.stamped[0][0] if self.stamped else None

    def _count_out(self, connection: int, body_bytes: int) -> None:
        left = self._body_bytes[connection] - body_bytes
        if left:
            self._body_bytes[connection] = left
        else:
            del self._body_bytes[connection]

    def take(self) -> list[tuple[int, list[Buffer]]]:
        """The bytes that may be written now, by connection."""
        if not self._ready:
            return []
        taken = list(self._ready.items())
        self._ready = {}
        return taken

    def take_handed(self) -> list[tuple[int, list[HandedAnswer]]]:
        """The same for connections in this process."""
        if not self._handed:
            return []
        taken = list(self._handed.items())
        self._handed = {}
        return taken


def _need_of(answer: _Waiting, partition: int) -> Need:
    """The latest that the answer needs of a partition."""
    return max(need for need in answer.needs if need[0] == partition)
