"""Which files of the product a request passes: every call from one file into another is counted while it is under way."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import penstock

SOURCE = f"{Path(penstock.__file__).parent}/"
CLIENT = ("client/", "client_core/", "streams/")
"""The client that asks is in the same process, and is no part of what is counted."""


class Trace:
    """What was passed. Calls of this thread only: the flush thread and the helper thread are not seen."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.calls = 0
        """From one file into another."""

    def called(self, frame: FrameType, event: str, argument: object) -> None:
        """See `sys.setprofile`."""
        if event != "call" or (file := _file_of(frame)) is None:
            return
        back = frame.f_back
        while back is not None and _file_of(back) is None:
            back = back.f_back
        if back is None or _file_of(back) != file:
            self.files.add(file)
            self.calls += 1

    @property
    def of_the_front_end(self) -> int:
        """How many of the files are of the front end."""
        return sum(file.startswith(("frontend/", "sqs/", "steps/", "usage/")) for file in self.files)


def _file_of(frame: FrameType) -> str | None:
    path = frame.f_code.co_filename
    if not path.startswith(SOURCE):
        return None
    file = path.removeprefix(SOURCE)
    return None if file.startswith(CLIENT) else file


@contextmanager
def traced() -> Iterator[Trace]:
    """Traces this thread within the block."""
    trace = Trace()
    before = sys.getprofile()
    sys.setprofile(trace.called)
    try:
        yield trace
    finally:
        sys.setprofile(before)
