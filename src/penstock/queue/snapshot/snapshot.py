"""A partition as bytes and back, in one step: everything that records made, nothing that can be derived.

`capture` makes the bytes a few pages at a time, `building` reads them, and `pages` defines them.
"""

from __future__ import annotations

from penstock.queue.partition import Partition
from penstock.queue.snapshot.building import Builder
from penstock.queue.snapshot.capture import Capture


def dump(partition: Partition) -> bytes:
    """The partition as bytes; equal states give equal bytes."""
    capture = Capture(partition, exact=True)
    while not capture.is_done:
        capture.step(1_000)
    return b"".join(capture.buffers)


def load(data: bytes | memoryview, *, elsewhere: bool = False) -> Partition:
    """The partition from bytes; raises `msgspec.DecodeError` or `ValueError` on anything else.

    `elsewhere`: another replica's bytes; every position in it is marked as one of the other's.
    """
    builder = Builder(elsewhere=elsewhere)
    builder.feed(data)
    return builder.finish()
