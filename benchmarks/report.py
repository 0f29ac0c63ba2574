"""The report of a run: machine, options, figures and verdicts, in the shape that `--json` writes."""

from __future__ import annotations

import msgspec

from benchmarks.figures import Figure
from benchmarks.machine import MachineFacts
from benchmarks.targets import Target, target_of

REPORT_VERSION = 1


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A figure, the target it is held against, and whether it holds."""

    section: str
    figure: Figure
    target: Target | None
    met: bool | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a reader needs to judge a run."""

    report_version: int
    penstock_version: str
    started_at: str
    seconds: float
    machine: MachineFacts
    options: dict[str, str]
    lines: list[Line]
    failures: dict[str, str]
    """Sections that could not be measured, and why."""
    bystanders: dict[str, float]
    """By section: the share of the processors, 0 to 1, that other programs used while it was measured."""
    load_after: float


def line_of(section: str, figure: Figure) -> Line:
    """The figure beside its target."""
    target = target_of(figure)
    met = target.met(figure.value) if target is not None else None
    return Line(section=section, figure=figure, target=target, met=met)


def encode_report(report: Report) -> bytes:
    """The report as JSON that people can read too."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def decode_report(data: bytes) -> Report:
    """What `encode_report` wrote."""
    return msgspec.json.decode(data, type=Report)
