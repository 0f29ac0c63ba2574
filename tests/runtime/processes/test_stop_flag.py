"""A flag that a signal handler sets while its own thread waits for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from penstock.runtime.processes.stop_flag import StopFlag


@pytest.mark.parametrize("step", range(1, 30))
def test_it_can_be_set_at_every_step_of_a_wait_by_who_waits(step: int) -> None:
    """As a signal handler does it, which runs between two steps of its thread. An `Event` would wait for ever."""
    flag, steps = StopFlag(), 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal steps
        steps += 1
        if steps == step:
            flag.set()
        return trace

    def wait() -> None:
        sys.settrace(trace)
        while not flag.wait(0.001):
            pass

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_wait_ends_soon_after_it_was_set() -> None:
    flag = StopFlag()
    threading.Timer(0.05, flag.set).start()
    began = time.monotonic()
    assert flag.wait(60)
    assert time.monotonic() - began < 30
    assert flag.is_set()


def test_a_wait_ends_with_its_time() -> None:
    assert not StopFlag().wait(0.01)
