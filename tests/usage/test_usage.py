"""Usage: every event is in a file or counted as dropped, whatever the disk does and however fast they come."""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest

from penstock.model.limits import HOUR_MS
from penstock.usage.collector import UsageCollector, UsageTotals
from penstock.usage.event import UsageEvent
from penstock.usage.rolling_file import RollingFile

NOON_MS = 1_767_268_800_000
LONG_SECONDS = 20.0


def event(number: int = 0, user: str = "ada") -> UsageEvent:
    arn = "arn:aws:sqs:us-east-1:000000000000:orders"
    return UsageEvent(
        NOON_MS, user, "000000000000", "SendMessage", arn, 1, 1024, "ok", 200, number, f"id-{number}"
    )


def collector(directory: Path, now_ms: Callable[[], int] = lambda: NOON_MS, **options: Any) -> UsageCollector:
    values = {"file_bytes": 1 << 20, "keep_files": 10, **options}
    return UsageCollector(str(directory), now_ms=now_ms, **values)


def lines_of(directory: Path) -> list[dict[str, Any]]:
    lines = []
    for path in sorted(directory.glob("*.jsonl")):
        text = path.read_bytes()
        assert text.endswith(b"\n")
        lines += [msgspec.json.decode(line) for line in text.splitlines()]
    return lines


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        Event().wait(0.002)


def test_events_are_written_and_the_file_is_closed_at_the_end(tmp_path: Path) -> None:
    usage = collector(tmp_path / "deep" / "usage")
    for number in range(1_000):
        usage.record(event(number))
    assert usage.close()
    lines = lines_of(tmp_path / "deep" / "usage")
    assert [line["latency_us"] for line in lines] == list(range(1_000))
    assert lines[0] == msgspec.to_builtins(event(0))
    assert usage.totals() == UsageTotals(1_000, 1_000, 0, 0)
    (path,) = (tmp_path / "deep" / "usage").iterdir()
    assert path.name == "usage-20260101T120000Z-0001.jsonl"


def test_nothing_recorded_leaves_no_file(tmp_path: Path) -> None:
    assert collector(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


def test_what_finds_no_room_is_counted_and_said_in_the_file(tmp_path: Path) -> None:
    writing, go_on = Event(), Event()

    def now_ms() -> int:
        writing.set()
        go_on.wait(LONG_SECONDS)
        return NOON_MS

    usage = collector(tmp_path, now_ms, waiting_events=10)
    usage.record(event(0))
    assert writing.wait(LONG_SECONDS)  # the thread has taken it, and hangs
    waiting = usage.totals().waiting
    for number in range(1, 100):
        usage.record(event(number))
    dropped = 99 - (10 - waiting)
    assert usage.totals().dropped == dropped
    go_on.set()
    until(lambda: usage.totals().waiting == 0)
    assert usage.close()
    lines = lines_of(tmp_path)
    assert sum(line.get("dropped", 0) for line in lines) == dropped
    assert sum("action" in line for line in lines) == 100 - dropped
    assert usage.totals() == UsageTotals(100, 100 - dropped, dropped, 0)


def test_a_record_after_the_end_is_counted(tmp_path: Path) -> None:
    usage = collector(tmp_path)
    usage.close()
    usage.record(event())
    assert usage.totals() == UsageTotals(1, 0, 1, 0)


def test_a_disk_that_refuses_is_said_once_and_written_to_again_when_it_can_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "usage"
    directory.write_text("a file where the directory should be")
    usage = collector(directory, waiting_events=100)
    with caplog.at_level(logging.INFO, "penstock.usage"):
        for round_number in (1, 2, 3):
            usage.record(event(round_number))
            until(lambda count=round_number: usage.totals().dropped == count)  # type: ignore[misc]  # a lambda with its own number
        directory.unlink()
        usage.record(event(4))
        until(lambda: usage.totals().written == 1)
        assert usage.close()
    assert [line.get("dropped") or line["latency_us"] for line in lines_of(directory)] == [3, 4]
    assert [record.getMessage().split(" ")[:2] for record in caplog.records] == [
        ["cannot", "write"],
        ["usage", "is"],
    ]


def test_text_that_is_not_unicode_costs_only_its_own_event(tmp_path: Path) -> None:
    usage = collector(tmp_path)
    for user in ("ada", "\ud800", "eve"):
        usage.record(event(user=user))
    assert usage.close()
    assert [line.get("user", line.get("dropped")) for line in lines_of(tmp_path)] == ["ada", "eve", 1]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that is full after so many bytes of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_half_a_line_that_a_full_disk_took_is_not_kept(tmp_path: Path) -> None:
    files = RollingFile(str(tmp_path), 1 << 20, 3)
    files.write(b"first\n", NOON_MS)
    with files_of_at_most(10), pytest.raises(OSError, match="too large"):
        files.write(b"torn line\n", NOON_MS)
    assert next(tmp_path.iterdir()).read_bytes() == b"first\ntorn"
    files.write(b"2\n", NOON_MS)
    files.close()
    assert next(tmp_path.iterdir()).read_bytes() == b"first\n2\n"


def test_files_roll_by_size_and_by_the_hour_and_the_oldest_go(tmp_path: Path) -> None:
    files = RollingFile(str(tmp_path), 10, 3)
    for number in range(5):
        files.write(b"%d: 10 bytes\n" % number, NOON_MS)
    files.write(b"x\n", NOON_MS)
    files.roll_if_due(NOON_MS + HOUR_MS - 1)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        *(f"usage-20260101T120000Z-000{number}.jsonl" for number in (3, 4, 5)),
        "usage-20260101T120000Z-0006.jsonl.open",
    ]
    files.roll_if_due(NOON_MS + HOUR_MS)
    files.write(b"y\n", NOON_MS + HOUR_MS)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[-2:] == ["usage-20260101T120000Z-0006.jsonl", "usage-20260101T130000Z-0001.jsonl.open"]
    assert len(names) == 4


def test_what_a_crash_left_open_is_closed_without_its_torn_line(tmp_path: Path) -> None:
    for name, text in {
        "1": "a\nb\ntorn",
        "2": "only torn",
        "3": "c\n" + "x" * 200_000,
        "4": "whole\n",
    }.items():
        (tmp_path / f"usage-20260101T110000Z-000{name}.jsonl.open").write_text(text)
    alive = RollingFile(str(tmp_path), 1 << 20, 10)
    alive.write(b"mine\n", NOON_MS)
    assert RollingFile(str(tmp_path), 1 << 20, 10).recover() == 4
    found = {path.name[-11:]: path.read_text() for path in tmp_path.iterdir()}
    assert found == {
        "-0001.jsonl": "a\nb\n",
        "-0003.jsonl": "c\n",
        "-0004.jsonl": "whole\n",
        ".jsonl.open": "mine\n",
    }
    alive.close()
