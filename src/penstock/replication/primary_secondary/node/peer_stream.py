"""The stream to another node: the bytes to write, and how many of them are in transit.

Data that fills memory and disks (records, states, batches) is counted. Beyond the window no more of it is sent until the
other side has the earlier data on disk.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model.batch import Buffer
from penstock.model.limits import MEBIBYTE
from penstock.wire.frames import encode_frame
from penstock.wire.peer_messages import Append, Batches, Image, PeerMessage, encode_peer_message

WINDOW_BYTES = 8 * MEBIBYTE
FRAME_OVERHEAD_BYTES = 64

DATA = Append | Image | Batches
"""The frames that are counted."""


def weight(body_bytes: int) -> int:
    """The counted size of a frame of data, the same on both sides."""
    return body_bytes + FRAME_OVERHEAD_BYTES


class PeerStream:
    """One connection to one node, from this side."""

    def __init__(self, node: str) -> None:
        self.node = node
        self._output: list[Buffer] = []
        self._under_way = 0
        self.sent_bytes = 0
        """Data that was sent, in all."""
        self.confirmed_bytes = 0
        """How much of it the other side has taken."""
        self.reading = False
        """A helper thread is reading for it. One read at a time; its result is sent even if there is no room by then."""
        self.ready: dict[int, None] = {}
        """Partitions of which there may be something to send, in the order in which that was noticed."""
        self.taken_bytes = 0
        """Of the other side's data: bytes on disk here since the last confirmation."""
        self.confirmations: dict[int, tuple[int, int]] = {}
        """Partition → (epoch, index) to be confirmed to the other side."""

    @property
    def has_room(self) -> bool:
        """Whether more data may be sent."""
        return self._under_way < WINDOW_BYTES

    def send(self, message: PeerMessage, body: Sequence[Buffer] = ()) -> None:
        """Puts a message at the end of the stream."""
        if isinstance(message, DATA):
            size = weight(sum(map(len, body)))
            self._under_way += size
            self.sent_bytes += size
        self._output += encode_frame(0, encode_peer_message(message), body)

    def taken(self, size: int) -> None:
        """The other side has so much more of it on disk."""
        self._under_way = max(0, self._under_way - size)
        self.confirmed_bytes += size

    def take_output(self) -> list[Buffer]:
        """The bytes to write now."""
        output, self._output = self._output, []
        return output
