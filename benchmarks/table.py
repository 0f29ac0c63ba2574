"""The report as a table for people: each figure, its spread, its target and a mark."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.report import Line, Report

_GIBIBYTE = 1024**3
DISTURBED = 0.1
"""The share of the processors that others may use before the reader is warned."""


def number(value: float) -> str:
    """A number with as many digits as say something."""
    size = abs(value)
    if size >= 1_000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def mark(line: Line) -> Text:
    """✓ or ✗ for a figure with a target, nothing for one without."""
    if line.met is None:
        return Text("")
    return Text("✓", style="bold green") if line.met else Text("✗", style="bold red")


def report_table(report: Report) -> RenderableType:
    """The whole report."""
    return Group(_figures(report), *_failures(report), _verdict(report))


def machine_line(report: Report) -> str:
    """Where the figures come from, in one line."""
    machine = report.machine
    return (
        f"{machine.cores} cores ({machine.processor}), {machine.memory_bytes / _GIBIBYTE:.1f} GiB, {machine.kernel}, "
        f"{machine.filesystem}, {machine.python}; load {machine.load_before:.2f} before, {report.load_after:.2f} after"
    )


def _figures(report: Report) -> Table:
    table = Table(
        title=f"Penstock {report.penstock_version}, {report.started_at}, {report.seconds:.0f} s",
        caption=machine_line(report),
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("figure")
    table.add_column("median", justify="right")
    table.add_column("min – max", justify="right", style="dim")
    table.add_column("unit")
    table.add_column("target", justify="right")
    table.add_column("")
    table.add_column("note", style="dim")
    section = None
    for line in report.lines:
        if section is not None and line.section != section:
            table.add_section()
        section = line.section
        figure = line.figure
        spread = f"{number(figure.low)} – {number(figure.high)}" if figure.rounds > 1 else ""
        target = ""
        if line.target is not None:
            target = f"{'≥' if line.target.comparison == '>=' else '≤'} {number(line.target.bound)}"
        table.add_row(
            figure.title, number(figure.value), spread, figure.unit, target, mark(line), figure.note
        )
    return table


def _failures(report: Report) -> list[Text]:
    return [
        Text(f"{section} could not be measured: {why}", style="bold red")
        for section, why in report.failures.items()
    ]


def _verdict(report: Report) -> Text:
    judged = [line for line in report.lines if line.met is not None]
    missed = [line for line in judged if not line.met]
    if not judged:
        return Text("no figure of this run has a target")
    text = f"{len(judged) - len(missed)} of {len(judged)} targets met"
    disturbed = [f"{name} {share:.0%}" for name, share in report.bystanders.items() if share > DISTURBED]
    if disturbed:
        text += f"; other programs used the processors meanwhile ({', '.join(disturbed)}): run again when it is idle"
    return Text(text, style="bold green" if not missed else "bold yellow")
