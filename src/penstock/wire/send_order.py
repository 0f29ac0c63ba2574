"""Which sends of a connection are accepted: one that follows another only after that one.

A producer that sends without waiting for answers names in each `Send` the batch that it follows (`after`). The server
remembers the last accepted batch of each producer, by connection and queue. A send that follows another batch is refused
with `out-of-order`: the batch before it was refused, here or at an earlier hop. The producer sends it again when it knows
the outcome of that batch. A node remembers the epoch too: batches that it accepted as the primary of an earlier epoch may
be lost.

The reason of a refusal does not matter. If the answer is lost with its connection, the producer sends the batch again, and
by then it may be accepted: the limit is higher, the stamp is past, the user has the right.

The memory only ever permits sends. So it may be dropped at any time, and is bounded: a send that follows a forgotten batch
is refused, and sent again when the one before it is answered.
"""

from __future__ import annotations

from collections import OrderedDict

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.requests import Send

REMEMBERED = 16_384
"""Producers and queues, over all connections; about 5 MB."""

_Key = tuple[int, int, int]


class SendOrder:
    """The last batch of each producer, by connection and queue."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._last: OrderedDict[_Key, tuple[int, int]] = OrderedDict()
        """(epoch, number)."""

    def __len__(self) -> int:
        return len(self._last)

    def check(self, connection: int, request: Send, epoch: int = 0) -> None:
        """Raises where a send follows another batch than the last that was taken."""
        key = (connection, request.queue_id, request.producer)
        if request.after and self._last.get(key) != (epoch, request.after):
            raise out_of_order()

    def taken(self, connection: int, request: Send, epoch: int = 0) -> None:
        """A send was accepted: the next one may come."""
        if request.producer:
            key = (connection, request.queue_id, request.producer)
            self._last[key] = (epoch, request.number)
            self._last.move_to_end(key)
            if len(self._last) > self._most:
                self._last.popitem(last=False)

    def refused(self, connection: int, request: Send) -> None:
        """An accepted send was refused later: the next one must wait until its producer knows that."""
        key = (connection, request.queue_id, request.producer)
        found = self._last.get(key)
        if found is None or request.number > found[1]:
            return
        if request.after:
            self._last[key] = (found[0], request.after)
        else:
            del self._last[key]

    def still_follows(self, connection: int, request: Send, epoch: int = 0) -> bool:
        """Whether a send that was taken before, and held, may still be stored: none that it follows was refused since."""
        if not request.after:
            return True
        last = self._last.get((connection, request.queue_id, request.producer), (0, 0))
        return last[0] == epoch and last[1] >= request.number


def out_of_order() -> PenstockError:
    """The error for a send that follows a refused one."""
    return PenstockError(
        ErrorCode.OUT_OF_ORDER,
        "a send before it was refused; send it again when that one is stored or given up",
    )
