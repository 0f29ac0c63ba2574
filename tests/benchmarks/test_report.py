"""The report: targets beside figures, JSON that reads back, a table that marks what was missed."""

from __future__ import annotations

import json
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from benchmarks.figures import figure
from benchmarks.machine import MachineFacts
from benchmarks.report import REPORT_VERSION, Line, Report, decode_report, encode_report, line_of
from benchmarks.table import number, report_table
from benchmarks.targets import TARGETS, Target

FACTS = MachineFacts(
    cores=2,
    processor="some processor",
    memory_bytes=8 * 1024**3,
    kernel="Linux 6.1",
    filesystem="ext4 on /dev/vda",
    python="CPython 3.11.7",
    load_before=0.1,
)


def report_of(*lines: Line, failures: dict[str, str] | None = None) -> Report:
    return Report(
        report_version=REPORT_VERSION,
        penstock_version="0.1.0",
        started_at="2026-11-15T22:00:00+00:00",
        seconds=12.3,
        machine=FACTS,
        options={"durability": "sync"},
        lines=list(lines),
        failures=failures or {},
        bystanders={"throughput": 0.01},
        load_after=1.5,
    )


def shown(report: Report) -> str:
    out = StringIO()
    Console(file=out, width=240).print(report_table(report))
    return out.getvalue()


def test_target_comparisons_include_their_bound() -> None:
    assert Target(">=", 10).met(10)
    assert not Target(">=", 10).met(9.99)
    assert Target("<=", 10).met(10)
    assert not Target("<=", 10).met(10.01)


def test_line_has_the_target_of_its_figure() -> None:
    fast = line_of("throughput", figure("publish.100.rate", "publish", "msg/s", [1_000_000.0]))
    slow = line_of("throughput", figure("publish.100.rate", "publish", "msg/s", [999_999.0]))
    free = line_of("machine", figure("machine.write", "write", "MB/s", [500.0]))
    assert (fast.met, slow.met, free.met, free.target) == (True, False, None, None)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("receive.100.rate", 600_000, 599_999),
        ("publish.1024.rate", 180_000, 179_999),
        ("receive.1024.rate", 210_000, 209_999),
        ("both.1024.rate", 100_000, 99_999),
        ("publish.1024.server-cpu", 5.0, 5.1),
        ("receive.1024.server-cpu", 4.0, 4.1),
        ("single.ratio", 1.3, 1.31),
        ("memory.engine", 16, 16.1),
        ("memory.resident", 40, 40.1),
        ("backlog.ratio", 0.9, 0.89),
        ("fifo.publish.rate", 100_000, 99_999),
        ("fifo.receive.rate", 100_000, 99_999),
    ],
)
def test_targets(name: str, good: float, bad: float) -> None:
    assert TARGETS[name].met(good)
    assert not TARGETS[name].met(bad)


def test_json_reads_back_and_has_a_stable_shape() -> None:
    line = line_of("memory", figure("memory.engine", "engine memory", "B", [6.0], "its columns"))
    report = report_of(line, failures={"fifo": "the server did not start"})
    encoded = encode_report(report)
    assert decode_report(encoded) == report
    value = json.loads(encoded)
    assert value["machine"]["filesystem"] == "ext4 on /dev/vda"
    assert value["failures"] == {"fifo": "the server did not start"}
    assert value["lines"] == [
        {
            "section": "memory",
            "figure": {
                "name": "memory.engine",
                "title": "engine memory",
                "unit": "B",
                "value": 6.0,
                "low": 6.0,
                "high": 6.0,
                "rounds": 1,
                "note": "its columns",
            },
            "target": {"comparison": "<=", "bound": 16.0},
            "met": True,
        }
    ]


def test_table_shows_value_target_and_mark() -> None:
    text = shown(
        report_of(
            line_of(
                "throughput",
                figure("publish.100.rate", "publish", "msg/s", [900_000.0, 950_000.0, 1_200_000.0]),
            ),
            line_of("memory", figure("memory.engine", "engine memory", "B", [6.25])),
            failures={"fifo": "no room"},
        )
    )
    publish = next(row for row in text.splitlines() if "publish" in row)
    assert "950,000" in publish
    assert "900,000 – 1,200,000" in publish
    assert "≥ 1,000,000" in publish
    assert "✗" in publish
    memory = next(row for row in text.splitlines() if "engine memory" in row)
    assert "6.25" in memory
    assert "✓" in memory
    assert "fifo could not be measured: no room" in text
    assert "1 of 2 targets met" in text
    assert "ext4 on /dev/vda" in text


def test_table_says_when_others_were_busy() -> None:
    report = report_of(line_of("memory", figure("memory.engine", "engine memory", "B", [6.25])))
    assert "run again when it is idle" not in shown(report)
    disturbed = msgspec.structs.replace(report, bystanders={"throughput": 0.41, "fifo": 0.02})
    text = " ".join(shown(disturbed).split())
    assert "other programs used the processors meanwhile (throughput 41%): run again when it is idle" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1_234_567.8, "1,234,568"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.0, "0.00")],
)
def test_numbers_have_the_digits_that_say_something(value: float, text: str) -> None:
    assert number(value) == text
