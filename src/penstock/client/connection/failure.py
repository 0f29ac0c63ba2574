"""Errors the client makes itself, and those it is told, as one kind: `PenstockError`."""

from __future__ import annotations

from penstock.model.errors import ErrorCode, PenstockError


class Unreached(PenstockError):
    """No server answered at an address, for `reason`."""

    def __init__(self, address: object, seconds: float | None, reason: str) -> None:
        """`seconds`: for how long it was tried, None: once."""
        within = "" if seconds is None else f" within {seconds:.3g} s"
        super().__init__(
            ErrorCode.UNREACHABLE,
            f"could not reach a server at {address}{within}: {reason}. Is `penstock serve` running there?",
        )
        self.reason = reason


class Untrusted(PenstockError):
    """What listens at an address shows a certificate that is not taken, or none."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNAUTHENTICATED, message)


def closed() -> PenstockError:
    """Somebody uses a client after closing it."""
    return PenstockError(ErrorCode.BAD_REQUEST, "this client is closed; connect again")


def refused(message: str) -> PenstockError:
    """The client refuses what the server would refuse."""
    return PenstockError(ErrorCode.BAD_REQUEST, message)
