"""Renews docs/benchmarks.md: writes the tables of reports between the page's marks, and the plot of order beside it.

Runs as `python -m benchmarks.page REPORT.json…` (`scripts/benchmark-pages`). What stands outside the marks is
written by people and stays as it is. A table is renewed only by a report that has all its sections: half a table
from one run and half from another would compare what cannot be compared.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.options import (
    CLUSTER_SECTIONS,
    LOG_SECTIONS,
    ORDER_SECTIONS,
    SECTIONS,
    SPARK_SECTIONS,
    SQS_SECTIONS,
)
from benchmarks.order_page import order_plot, order_table
from benchmarks.report import Report, decode_report
from benchmarks.table import DISTURBED, number

PAGE = Path("docs/benchmarks.md")
PLOT = Path("images/order.svg")
_GIBIBYTE = 1024**3


class PageError(Exception):
    """A page or a report does not fit; the message says what to do."""


def figure_table(report: Report, sections: Sequence[str]) -> str:
    """One row a figure."""
    rows = ["| figure | median | rounds | target |", "|---|---|---|---|"]
    for line in report.lines:
        if line.section not in sections:
            continue
        figure = line.figure
        title = f"— {figure.title.strip()}" if figure.title.startswith(" ") else figure.title
        spread = f"{number(figure.low)}–{number(figure.high)}" if figure.rounds > 1 else ""
        target = ""
        if line.target is not None:
            sign = "≥" if line.target.comparison == ">=" else "≤"
            target = f"{sign} {number(line.target.bound)} {'✓' if line.met else '✗'}"
        rows.append(f"| {title} | {number(figure.value)} {figure.unit} | {spread} | {target} |")
    return "\n".join(rows)


@dataclass(frozen=True)
class Block:
    """A marked part of the page."""

    name: str
    sections: tuple[str, ...]
    table: Callable[[Report, Sequence[str]], str] = figure_table


BLOCKS = (
    Block("native", SECTIONS),
    Block("sqs", SQS_SECTIONS),
    Block("log", LOG_SECTIONS),
    Block("order", ORDER_SECTIONS, order_table),
    Block("cluster", CLUSTER_SECTIONS),
    Block("spark", SPARK_SECTIONS),
)


def blocks_of(report: Report) -> list[Block]:
    """The parts that the report can renew: those of which it has every section."""
    measured = {line.section for line in report.lines} - set(report.failures)
    return [block for block in BLOCKS if measured.issuperset(block.sections)]


def provenance(report: Report, sections: Sequence[str]) -> str:
    """Where and when the figures come from, and what disturbed them."""
    machine = report.machine
    text = (
        f"Version {report.penstock_version}, {report.started_at[:10]}: {machine.cores} cores ({machine.processor}), "
        f"{machine.memory_bytes / _GIBIBYTE:.0f} GiB, {machine.kernel.partition('-')[0]}, {machine.filesystem.partition(' on ')[0]}, "
        f"{machine.python}. Medians of the rounds, then lowest and highest round. "
        f"Load {machine.load_before:.1f} before the run; "
    )
    others = max(report.bystanders.get(section, 0.0) for section in sections)
    if others > DISTURBED:
        text += f"**other programs used {others:.0%} of the processors meanwhile, so renew this on a quiet machine**."
    else:
        text += f"other programs used {others:.0%} of the processors meanwhile."
    if report.options.get("quick") == "true":
        text += " A quick run: a first impression, not a result."
    return text


def renewed(page: str, report: Report) -> str:
    """The page with the tables of the report; raises `PageError` where there is no place for them."""
    blocks = blocks_of(report)
    if not blocks:
        wanted = "; ".join(f"{block.name}: {', '.join(block.sections)}" for block in BLOCKS)
        raise PageError(
            f"the report has all sections of no table ({wanted}): run the benchmark without --only"
        )
    for block in blocks:
        marked = re.compile(rf"(<!-- figures: {block.name} -->\n).*?(\n<!-- end of figures -->)", re.DOTALL)
        text = f"{provenance(report, block.sections)}\n\n{block.table(report, block.sections)}"
        page, count = marked.subn(lambda match, text=text: match[1] + text + match[2], page)  # type: ignore[misc]  # a lambda with its own value
        if count != 1:
            raise PageError(f"the page has {count} places marked <!-- figures: {block.name} -->, not one")
    return page


def main(arguments: Sequence[str], page: Path = PAGE) -> int:
    """Renews the page from reports, in the order given; changes nothing unless all of them fit."""
    if not arguments:
        print(
            "usage: scripts/benchmark-pages REPORT.json…   (made by penstock bench --output)", file=sys.stderr
        )
        return 2
    try:
        text, plot, names = page.read_text(), "", []
        for argument in arguments:
            report = decode_report(Path(argument).read_bytes())
            text = renewed(text, report)
            names += [block.name for block in blocks_of(report)]
            if "order" in names and set(ORDER_SECTIONS) <= {line.section for line in report.lines}:
                plot = order_plot(report)
    except (PageError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    page.write_text(text)
    if plot:
        (page.parent / PLOT).parent.mkdir(exist_ok=True)
        (page.parent / PLOT).write_text(plot)
    print(f"{page}: renewed {', '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
