"""The two sides of a client's session, its socket and the handler of its requests, and the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from penstock.model.batch import Buffer
from penstock.wire.frames import Frame


class Handler(Protocol):
    """Handles requests: the driver of a node, or a gateway to a cluster."""

    @property
    def congested(self) -> bool:
        """Whether no client may be read from at the moment."""
        ...

    def connected(self, connection: int) -> None:
        """A client has connected."""
        ...

    def behind(self, connection: int) -> None:
        """A client does not read what it is sent."""
        ...

    def caught_up(self, connection: int) -> None:
        """A client has read what it was sent."""
        ...

    def disconnected(self, connection: int) -> None:
        """A client is gone."""
        ...

    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
        """Whole frames arrived."""
        ...


class ClientSocket(Protocol):
    """One connection, for its session."""

    @property
    def peer(self) -> str:
        """The peer, for the log."""
        ...

    @property
    def is_closing(self) -> bool:
        """Whether it is about to end, or gone."""
        ...

    @property
    def unread_bytes(self) -> int:
        """How much was written and has not left yet."""
        ...

    def say(self, frame: Sequence[Buffer]) -> None:
        """Writes a frame that is no answer of the handler."""
        ...

    def end_output(self) -> None:
        """Nothing more is written, if the protocol can express that."""
        ...

    def pause_reading(self) -> None:
        """Reads nothing more."""
        ...

    def resume_reading(self) -> None:
        """Reads on."""
        ...

    def abort(self) -> None:
        """Closes at once."""
        ...


class Complain(Protocol):
    """Logs why a connection was refused; `kind` limits how often."""

    def __call__(self, kind: str, sentence: str, **values: object) -> None: ...
