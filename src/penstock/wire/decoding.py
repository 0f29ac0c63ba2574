"""Decodes the request in a frame, or raises an error that says what is wrong with it."""

from __future__ import annotations

import msgspec

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire import messages
from penstock.wire.frames import Frame


def decode(frame: Frame) -> messages.Request:
    """The request of a frame; raises the error for its sender."""
    if frame.request is not None:
        known: messages.Request = frame.request
        return known
    try:
        return messages.decode_request(frame.head)
    except msgspec.DecodeError as error:
        if messages.is_known_request(frame.head):
            raise PenstockError(ErrorCode.BAD_REQUEST, f"the request cannot be read: {error}") from None
        raise PenstockError(ErrorCode.UNKNOWN_REQUEST, "this server does not know the request") from None
