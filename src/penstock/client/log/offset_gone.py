"""The error of a reader that asks for messages which the log has removed."""

from __future__ import annotations

from penstock.model.errors import ErrorCode, PenstockError


class OffsetGone(PenstockError):
    """The log begins after the requested offset; `begin` is where the reader can continue.

    Nothing is skipped silently. Continue at `begin`, or read with `when_gone="earliest"` to do so always.
    """

    def __init__(self, message: str, wanted: int, begin: int) -> None:
        super().__init__(ErrorCode.OFFSET_GONE, message)
        self.wanted = wanted
        """The message that was asked for."""
        self.begin = begin
        """The first message that the log still has."""
