"""The error of a reader that asks for messages which the log has let go of."""

from __future__ import annotations

from penstock.model.errors import ErrorCode, PenstockError


class OffsetGone(PenstockError):
    """The log begins later than the reader wants to read: `begin` is where it can go on.

    Nothing is skipped silently. Go on at `begin`, or read with `when_gone="earliest"` to do so always.
    """

    def __init__(self, message: str, wanted: int, begin: int) -> None:
        super().__init__(ErrorCode.OFFSET_GONE, message)
        self.wanted = wanted
        """The message that was asked for."""
        self.begin = begin
        """The first message that the log still has."""
