"""The two sides of the native guard: the handler of admitted requests, and the sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.sqs.protocols.http import Peer
from penstock.wire.frames import Frame


class Inside(Protocol):
    """Handles admitted requests."""

    @property
    def congested(self) -> bool: ...
    def connected(self, connection: int) -> None: ...
    def behind(self, connection: int) -> None: ...
    def caught_up(self, connection: int) -> None: ...
    def disconnected(self, connection: int) -> None: ...
    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None: ...


Look = Callable[[Sequence[str], Callable[[PenstockError | None], None]], None]
"""Reads entries of the metadata as the store has them now, then calls back, with what is wrong if they cannot be read."""


class Learner(Protocol):
    """Looks up queues that another front end may have just created."""

    def unheard(self, queue_ids: Iterable[int]) -> list[int]:
        """Those that are neither known nor known to be gone."""
        ...

    def learn(self, queue_ids: Iterable[int], done: Callable[[PenstockError | None], None]) -> None:
        """Asks the store about such queues, then calls back, never from within, with what is wrong if it cannot be asked."""
        ...


class KnowsAll:
    """See `Learner`: a single server creates all its queues itself."""

    def unheard(self, queue_ids: Iterable[int]) -> list[int]:
        """There are none."""
        return []

    def learn(self, queue_ids: Iterable[int], done: Callable[[PenstockError | None], None]) -> None:
        """Never called: there is nothing to learn."""
        done(None)


class Outside(Protocol):
    """The sockets."""

    def write(self, connection: int, buffers: list[Buffer]) -> None:
        """Sends to a client, if it is still there."""
        ...

    def peer_of(self, connection: int) -> Peer:
        """The address from which a client connects."""
        ...

    def channel_of(self, connection: int) -> bytes:
        """The identity of this end for a client that connects correctly (`wire.credentials.channel_of`); empty: there is no
        TLS.
        """
        ...

    def allow(self, connection: int, frame_bytes: int) -> None:
        """Frames of a client may be so long from now on."""
        ...

    def refuse(self, connection: int, error: PenstockError, request_id: int) -> None:
        """Says what is wrong, and ends the connection."""
        ...

    def expect(self, connection: int) -> Callable[[], None]:
        """Ends the connection unless what is returned is called soon."""
        ...

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls in so many seconds."""
        ...
