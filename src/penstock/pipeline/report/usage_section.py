"""The part of the report about requests: how many, of what kind, how fast, and from which users."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from penstock.pipeline.report import figures
from penstock.pipeline.report.page import Cell, Section, not_there, number, text_table, tiles
from penstock.pipeline.report.plot import Series, bar, line_plot
from penstock.pipeline.report.reading import Shelf

TITLE = "Requests"
TABLE = "usage_parts"
BUCKET = "latency_le_"
"""The prefix of columns of counts; the rest of the name is their bound."""
_SUMS = ["requests", "messages", "bytes_in", "bytes_out", "errors", "throttles", "latency_us_max"]
_KEYS = ["user", "queue", "action"]
MOST = 15
"""Rows of a table."""


def usage_section(shelf: Shelf) -> Section:
    """From the sums by minute, because counts add up and percentiles do not."""
    buckets = sorted(
        (name for name in shelf.names(TABLE) if name.startswith(BUCKET)),
        key=lambda name: int(name[len(BUCKET) :]),
    )
    parts = shelf.table(TABLE, ["minute", *_KEYS, *_SUMS, *buckets], "minute")
    if parts is None:
        return Section(TITLE, not_there("usage"))
    if not parts.num_rows:
        return Section(TITLE, '<p class="none">No requests in this time.</p>')
    step, unit = step_of(parts)
    over_time = _grouped(parts, ["step"], buckets, unit)
    seconds = step.total_seconds()
    rates = Series("requests a second", [(row["step"], row["requests"] / seconds) for row in over_time])
    errors = Series("errors a second", [(row["step"], row["errors"] / seconds) for row in over_time])
    times = [
        Series(f"p{percent}", [(row["step"], percentile(row, buckets, percent / 100)) for row in over_time])
        for percent in (50, 95, 99)
    ]
    (total,) = _grouped(parts, [], buckets, unit)
    html = tiles(
        [
            ("requests", figures.count(total["requests"])),
            ("messages", figures.count(total["messages"])),
            ("bytes in", figures.size(total["bytes_in"])),
            ("bytes out", figures.size(total["bytes_out"])),
            ("errors", figures.share(total["errors"], total["requests"])),
            ("throttled", figures.count(total["throttles"])),
            ("p99", figures.microseconds(percentile(total, buckets, 0.99))),
        ]
    )
    html += f"<h3>Requests a second</h3>{line_plot([rates, errors], figures.count, seconds)}"
    html += f"<h3>Time the server took</h3>{line_plot(times, figures.microseconds, seconds)}"
    for name, key in (("By action", "action"), ("By queue", "queue"), ("By user", "user")):
        html += f"<h3>{name}</h3>{_table(_grouped(parts, [key], buckets, unit), key, buckets)}"
    return Section(TITLE, html + _missing(shelf))


def step_of(parts: Any) -> tuple[timedelta, str]:
    """How finely time is cut: by how long there is something to show."""
    import pyarrow.compute as pc

    ends = pc.min_max(parts["minute"]).as_py()
    length = ends["max"] - ends["min"]
    if length <= timedelta(hours=6):
        return timedelta(minutes=1), "minute"
    if length <= timedelta(days=10):
        return timedelta(hours=1), "hour"
    return timedelta(days=1), "day"


def percentile(row: dict[str, Any], buckets: list[str], share: float) -> float:
    """The time that this share of the requests took at most, between the bounds of its bucket."""
    largest = float(row["latency_us_max"])
    rank = share * float(row["requests"])
    below, low = 0.0, 0.0
    for name in buckets:
        bound, within = float(name[len(BUCKET) :]), float(row[name])
        if within >= rank:
            high = min(bound, largest)
            return low + (high - low) * (rank - below) / max(1.0, within - below)
        below, low = within, bound
    return largest


def _grouped(parts: Any, keys: list[str], buckets: list[str], unit: str) -> list[dict[str, Any]]:
    """Sums by the keys; `step` is the time, cut by the unit."""
    import pyarrow.compute as pc

    if keys == ["step"]:
        parts = parts.append_column("step", pc.floor_temporal(parts["minute"], unit=unit))
    names = [*_SUMS[:-1], *buckets]
    found = parts.group_by(keys).aggregate([*((name, "sum") for name in names), ("latency_us_max", "max")])
    rows: list[dict[str, Any]] = [
        {
            name.removesuffix("_sum") if name != "latency_us_max_max" else "latency_us_max": value
            for name, value in row.items()
        }
        for row in found.to_pylist()
    ]
    if keys == ["step"]:
        return sorted(rows, key=lambda row: _moment(row["step"]))
    return sorted(rows, key=lambda row: -int(row["requests"]))


def _moment(value: datetime) -> float:
    return value.timestamp()


def _table(rows: list[dict[str, Any]], key: str, buckets: list[str]) -> str:
    most = rows[0]["requests"] if rows else 0
    cells: list[list[str | Cell]] = [
        [
            str(row[key]).rpartition(":")[2] or "(none)",
            number(figures.count(row["requests"])),
            Cell(bar(row["requests"], most)),
            number(figures.count(row["messages"])),
            number(figures.size(row["bytes_in"] + row["bytes_out"])),
            number(figures.share(row["errors"], row["requests"])),
            number(figures.microseconds(percentile(row, buckets, 0.5))),
            number(figures.microseconds(percentile(row, buckets, 0.99))),
        ]
        for row in rows[:MOST]
    ]
    left = f"<p class=none>and {len(rows) - MOST} more</p>" if len(rows) > MOST else ""
    return text_table([key, "requests", "", "messages", "bytes", "errors", "p50", "p99"], cells) + left


def _missing(shelf: Shelf) -> str:
    gaps = shelf.rows("usage_gaps", ["front_end", "missing"]) or []
    lost = sum(int(row["missing"]) for row in gaps)
    if not lost:
        return '<p class="none">No request is missing: the numbers of every front end have no gap.</p>'
    return (
        f'<p class="bad">Requests that are not counted here: {figures.count(lost)}. Their rows were lost on the way to the '
        "log, or the log removed them before they were read; table usage_gaps says which.</p>"
    )
