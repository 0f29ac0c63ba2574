"""The parts of the report about messages: what happened to them, why some died, and which queues fill up."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from math import inf
from typing import Any

from penstock.pipeline.report import figures
from penstock.pipeline.report.page import Cell, Section, not_there, number, text_table, tiles
from penstock.pipeline.report.plot import Series, bar, line_plot
from penstock.pipeline.report.reading import Greatest, Shelf

MOST = 20
HOUR_SECONDS = 3600.0
_ENDINGS = ["deleted", "expired", "dropped", "purged", "moved", "queue_deleted"]


def ledger_section(shelf: Shelf) -> Section:
    """Whether every message is accounted for."""
    columns = ["hour", "queue", "began", "ended", *_ENDINGS, "redeliveries", "dwell_ms_p50", "dwell_ms_p99"]
    hours = shelf.rows("ledger_hours", columns, "hour")
    if hours is None:
        return Section("Ledger", not_there("ledger"))
    columns = ["kind", "queue", "partition", "sequence", "message_id", "explanation", "time"]
    findings = shelf.greatest("ledger_findings", columns, "time", MOST) or Greatest([], 0)
    sums: dict[str, int] = defaultdict(int)
    for row in hours:
        for name in ("began", "ended", "redeliveries", *_ENDINGS):
            sums[name] += row[name] or 0
    html = tiles(
        [
            ("began", figures.count(sums["began"])),
            *((name.replace("_", " "), figures.count(sums[name])) for name in _ENDINGS if sums[name]),
            ("still there", figures.count(shelf.count("ledger_open"))),
            ("redeliveries", figures.count(sums["redeliveries"])),
            ("findings", figures.count(findings.total)),
        ]
    )
    if findings.total:
        html += '<p class="bad">Promises that were broken, or that cannot be verified:</p>'
        html += text_table(
            ["kind", "queue", "partition", "sequence", "message", "problem"],
            [
                [
                    *(
                        str(row[name] if row[name] is not None else "–")
                        for name in ("kind", "queue", "partition", "sequence", "message_id", "explanation")
                    )
                ]
                for row in findings.rows
            ],
        )
        html += _rest(findings, "earlier ones: table ledger_findings has them all")
    else:
        html += '<p class="none">Every acknowledged send ended in exactly one way or is still there: no findings.</p>'
    began = _by_hour(hours, "began")
    ended = _by_hour(hours, "ended")
    html += f"<h3>Messages an hour</h3>{line_plot([Series('began', began), Series('ended', ended)], figures.count, HOUR_SECONDS)}"
    return Section("Ledger", html + f"<h3>By queue</h3>{_ledger_table(hours)}")


def dead_letters_section(shelf: Shelf) -> Section:
    """Why messages die."""
    columns = [
        "queue",
        "reason",
        "consumer",
        "fingerprint",
        "messages",
        "last_day",
        "day_before",
        "last_hour",
    ]
    found = shelf.greatest("dead_letter_causes", columns, "messages", MOST)
    if found is None:
        return Section("Dead letters", not_there("dead-letters"))
    causes = found.rows
    hours = shelf.rows("dead_letters", ["hour", "queue", "messages"], "hour") or []
    by_queue: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in hours:
        by_queue[row["queue"]].append(row)
    busiest = sorted(by_queue, key=lambda queue: -sum(row["messages"] for row in by_queue[queue]))[:6]
    series = [Series(queue, _by_hour(by_queue[queue], "messages")) for queue in busiest]
    most = causes[0]["messages"] if causes else 0
    html = f"<h3>Deaths an hour</h3>{line_plot(series, figures.count, HOUR_SECONDS)}"
    rows: list[list[str | Cell]] = [
        [
            row["queue"],
            row["reason"] or "–",
            row["consumer"] or "–",
            row["fingerprint"] or "–",
            number(figures.count(row["messages"])),
            Cell(bar(row["messages"], most)),
            number(_trend(row["last_day"], row["day_before"])),
            figures.moment(row["last_hour"]),
        ]
        for row in causes
    ]
    heads = ["queue", "reason", "consumer", "error", "messages", "", "last day", "last seen"]
    html += "<h3>Causes</h3>" + text_table(heads, rows, "No message has died.")
    return Section(
        "Dead letters", html + _rest(found, "of fewer messages: table dead_letter_causes has them all")
    )


def capacity_section(shelf: Shelf) -> Section:
    """When which queue is full."""
    names = [
        "queue",
        "messages",
        "bytes",
        "messages_per_hour",
        "limit",
        "fill",
        "full_at",
        "partitions",
        "recommended_partitions",
    ]
    queues = shelf.rows("capacity", names)
    if queues is None:
        return Section("Capacity", not_there("capacity"))
    queues.sort(key=lambda row: (_soon(row["full_at"]), -(row["fill"] or 0)))
    rows: list[list[str | Cell]] = [
        [
            row["queue"],
            number(figures.count(row["messages"])),
            number(figures.size(row["bytes"])),
            number(figures.count(row["messages_per_hour"])),
            row["limit"] or "–",
            Cell(bar(row["fill"] or 0, 1)),
            number("–" if row["fill"] is None else f"{100 * row['fill']:.3g} %"),
            _full_at(row),
            number(f"{row['partitions'] or 1} → {row['recommended_partitions'] or row['partitions'] or 1}"),
        ]
        for row in queues[:MOST]
    ]
    heads = [
        "queue",
        "messages",
        "bytes",
        "growth an hour",
        "first limit",
        "fill",
        "",
        "80 % full",
        "partitions",
    ]
    return Section("Capacity", text_table(heads, rows, "No queue is followed yet."))


def _full_at(row: dict[str, Any]) -> str:
    if row["full_at"]:
        return figures.moment(row["full_at"])
    return "not in sight" if row["messages_per_hour"] is not None else "not known: not followed"


def _rest(shown: Greatest, what: str) -> str:
    left = shown.total - len(shown.rows)
    return f'<p class="none">and {figures.count(left)} {what}</p>' if left > 0 else ""


def _ledger_table(hours: list[dict[str, Any]]) -> str:
    queues: dict[str, dict[str, Any]] = {}
    for row in hours:
        known = queues.setdefault(
            row["queue"], {"began": 0, "ended": 0, "redeliveries": 0, "p50": 0, "p99": 0}
        )
        for name in ("began", "ended", "redeliveries"):
            known[name] += row[name] or 0
        known["p50"] = max(known["p50"], row["dwell_ms_p50"] or 0)
        known["p99"] = max(known["p99"], row["dwell_ms_p99"] or 0)
    rows: list[list[str | Cell]] = [
        [
            queue,
            number(figures.count(known["began"])),
            number(figures.count(known["ended"])),
            number(figures.count(known["redeliveries"])),
            number(figures.span(known["p50"] / 1000)),
            number(figures.span(known["p99"] / 1000)),
        ]
        for queue, known in sorted(queues.items(), key=lambda item: -int(item[1]["began"]))[:MOST]
    ]
    heads = ["queue", "began", "ended", "redeliveries", "stay, p50 of the slowest hour", "p99"]
    return text_table(
        heads, rows, "No queue is followed yet: `penstock queue alter QUEUE --lifecycle` begins it."
    )


def _by_hour(rows: list[dict[str, Any]], name: str) -> list[tuple[datetime, float]]:
    sums: dict[datetime, float] = defaultdict(float)
    for row in rows:
        sums[row["hour"]] += row[name] or 0
    return sorted(sums.items())


def _soon(full_at: datetime | None) -> float:
    return inf if full_at is None else full_at.timestamp()


def _trend(now: int | None, before: int | None) -> str:
    now, before = now or 0, before or 0
    if not before:
        return f"{figures.count(now)} (new)" if now else "0"
    return f"{figures.count(now)} ({100 * (now - before) / before:+.0f} %)"
