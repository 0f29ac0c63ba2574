"""Processes that may outlive the command that started them: identified by their id and their start time, so that a reused id
is never mistaken for one.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

_STATE, _USER_TICKS, _SYSTEM_TICKS, _START, _RESIDENT = 0, 11, 12, 19, 21
"""Fields of `/proc/ID/stat` behind the name."""
_children: list[subprocess.Popen[bytes]] = []
"""Those that this process started, so that they are fetched when they end."""


class Running(msgspec.Struct, frozen=True):
    """A process: its id, and the tick of the kernel's clock at which it began."""

    process: int
    began: int


def start(
    command: Sequence[str], log: Path, *, directory: Path, environment: Mapping[str, str] | None = None
) -> Running:
    """Starts a program in a separate session: an interrupt from the keyboard is for the command that started it."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=directory,
            env=dict(environment) if environment is not None else None,
            start_new_session=True,
        )
    _children.append(child)
    return identified(child.pid)


def identified(process: int) -> Running:
    """A process that has just been started, or this one."""
    found = _fields(process)
    return Running(process, int(found[_START]) if found is not None else 0)


def is_alive(running: Running) -> bool:
    """Whether it still runs; one that has ended and waits to be fetched does not."""
    _fetch_ended()
    found = _fields(running.process)
    return found is not None and int(found[_START]) == running.began and found[_STATE] not in ("Z", "X")


def tell(running: Running, number: signal.Signals) -> bool:
    """Sends a signal; False if the process is gone."""
    try:
        handle = os.pidfd_open(running.process)
    except OSError:
        return False
    try:
        # The handle refers to the present process with this id: if that is ours, the signal cannot reach another one.
        if not is_alive(running):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def wait_until_gone(running: Running, seconds: float) -> bool:
    """Whether it is gone within the time."""
    try:
        handle = os.pidfd_open(running.process)
    except OSError:
        return True
    try:
        if not is_alive(running):
            return True
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(max(0, round(seconds * 1000)))) or not is_alive(running)
    finally:
        os.close(handle)
        _fetch_ended()


def stop(running: Running, seconds: float) -> bool:
    """Asks it to end, and ends it by force when it has not in time; whether it ended by itself. It may be paused."""
    tell(running, signal.SIGTERM)
    tell(running, signal.SIGCONT)
    if wait_until_gone(running, seconds):
        return True
    kill(running)
    return False


def kill(running: Running) -> bool:
    """Ends it without last words; False where it was gone already. It is gone when this returns."""
    told = tell(running, signal.SIGKILL)
    wait_until_gone(running, 10.0)
    return told


def cpu_seconds(running: Running) -> float:
    """Processor time of all its threads so far; 0 where it is gone."""
    found = _fields(running.process)
    if found is None or int(found[_START]) != running.began:
        return 0.0
    return (int(found[_USER_TICKS]) + int(found[_SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(running: Running) -> int:
    """Memory it holds that is really there; 0 where it is gone."""
    found = _fields(running.process)
    if found is None or int(found[_START]) != running.began:
        return 0
    return int(found[_RESIDENT]) * os.sysconf("SC_PAGE_SIZE")


def _fields(process: int) -> list[str] | None:
    try:
        return (
            Path(f"/proc/{process}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()
        )
    except OSError:
        return None


def _fetch_ended() -> None:
    with suppress(ValueError):
        for child in tuple(_children):
            if child.poll() is not None:
                _children.remove(child)
