"""Errors of the client and of the server, as one kind: `PenstockError`."""

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
    """The server at an address has no certificate, or one that is not trusted."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNAUTHENTICATED, message)


def closed() -> PenstockError:
    """The client was used after it was closed."""
    return PenstockError(ErrorCode.BAD_REQUEST, "this client is closed; connect again")


def refused(message: str) -> PenstockError:
    """The client refuses what the server would refuse."""
    return PenstockError(ErrorCode.BAD_REQUEST, message)
