"""Messages between nodes of a cluster, in the same frames as those of clients and servers; request ids are 0.

Primary to replica: `Lead`, then `Cut`, `Image`, `Batches` and `Append` as the logs require. Replica to primary:
`Standing`, `Confirm`, `Refuse`, `Lost`. Between the primaries of two queues: `MoveIn`, `MovedIn`, `MoveDone`, and
`AskArrived` and `Arrived` if the target's queue is deleted. Nodes of an earlier version ignore messages that they do not
know.
"""

from __future__ import annotations

import msgspec

from penstock.model.document import DocumentReader
from penstock.model.origin import Origin
from penstock.model.runs import Runs

Sizes = list[tuple[int, int]]
"""(bytes of the head, bytes of the payload) of each entry in the body, one after the other."""


class Lead(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """This node leads the partition in this epoch: what is your position? Answered with `Standing` or `Refuse`."""

    partition: int
    epoch: int
    name: str = ""
    """The nodes' name of the partition: a node with data of another queue under this id does not follow. Empty: from an
    earlier version.
    """
    unclean: int = 0
    """The newest epoch that began with an unclean election. The layout contains it too; a replica that does not know it yet
    learns it here, and does not take the records that it must cut for uncommitted ones.
    """


class Standing(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The replica's log. Sent on request, when received records do not follow it, and after a cut."""

    partition: int
    epoch: int
    """Of the primary that it follows."""
    epochs: list[tuple[int, int]]
    last: int
    whole: bool = False
    """It has nothing that could be built on: send the partition whole."""
    joined: int | None = None
    """Of the entry that the replica knows (`PartitionEntry.joined`); None: it cannot say, as earlier versions cannot."""


class Refuse(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A higher epoch is known here."""

    partition: int
    epoch: int


class Append(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The records after `previous`, verbatim. Body: their heads and payloads."""

    partition: int
    epoch: int
    previous: int
    previous_epoch: int
    committed: int
    sizes: Sizes


class Confirm(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """(partition, epoch, index): up to where the replica's disk has each log; and the number of bytes that it has received."""

    rows: list[tuple[int, int, int]]
    taken_bytes: int


class Cut(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Records after `last` were never committed: cut them and answer `Standing`."""

    partition: int
    epoch: int
    last: int


class Image(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A part of the partition's state as of `index`. Body: its bytes."""

    partition: int
    epoch: int
    index: int
    part: int
    parts: int


class Batches(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Stored batches that the state refers to. Body: their records and the batches."""

    partition: int
    epoch: int
    index: int
    sizes: Sizes


class MoveIn(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Messages that move to a partition that the other node leads. Body: one batch. Answered with `MovedIn`."""

    number: int
    """Rises with every request of a node."""
    target: int
    origin: Origin
    stamps: tuple[int, int, int]
    epoch: int = 0
    """In which the sender leads the source; 0: it is of an earlier version, and cannot say."""
    follows: int = 0
    """The request that the target must have accepted before this one; 0: none."""


class MovedIn(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """The messages are committed at the target; or the reason why they are not."""

    number: int
    refused: str = ""


class MoveDone(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """It is committed that the messages have left their source: the target need not remember their origin."""

    target: int
    source: int
    runs: Runs
    epoch: int = 0
    number: int = 0
    """All requests up to this one were sent before, and may be about these messages."""


class Lost(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Replica to primary: so many messages were cut here that may have been acknowledged, by `async` or before an unclean
    election.
    """

    partition: int
    epoch: int
    messages: int
    cut_epoch: int = 0
    """The newest epoch of the log that was cut: replicas that were cut in the same epoch had the same messages, more or fewer."""


class AskArrived(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """The queue of the target is deleted: which of these messages has it accepted? Answered with `Arrived`."""

    target: int
    source: int
    runs: Runs


class Arrived(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """The queue of the target is deleted. Of the messages `asked` about it has accepted those in `arrived`, and accepts no
    more.

    Sent on request, and repeatedly about messages for which the source has not sent `MoveDone`. Answered with that.
    """

    target: int
    source: int
    asked: Runs
    arrived: Runs


PeerMessage = (
    Lead
    | Standing
    | Refuse
    | Append
    | Confirm
    | Cut
    | Image
    | Batches
    | MoveIn
    | MovedIn
    | MoveDone
    | Lost
    | AskArrived
    | Arrived
)

_encoder = msgspec.msgpack.Encoder()
_reader: DocumentReader[PeerMessage] = DocumentReader(PeerMessage, "msgpack", "a message between nodes")


def encode_peer_message(message: PeerMessage) -> bytes:
    """The head of a frame."""
    return _encoder.encode(message)


def decode_peer_message(head: bytes | memoryview) -> PeerMessage:
    """Raises `msgspec.DecodeError` on anything that is not one of these, `TooOldError` for one of a newer version."""
    try:
        return _reader.decode(head)
    except (RecursionError, UnicodeDecodeError):
        raise msgspec.DecodeError("it is nested too deeply, or a text in it is not UTF-8") from None
