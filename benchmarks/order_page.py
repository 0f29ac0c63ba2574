"""What a report says of order, for the page: a table with one row a kind, and a plot as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import log10

from benchmarks.figures import Figure
from benchmarks.order_modes import MODES
from benchmarks.report import Report
from benchmarks.sections.throughput import size_name
from benchmarks.table import number

_WIDTH, _ROW, _TOP, _LABELS, _PANEL, _GAP = 1000, 40, 70, 220, 315, 60
_COLOURS = ("#2f6f9f", "#9cc3dd", "#c0582b", "#e9b08f")
"""In, out, p50, p99."""


def _figures(report: Report) -> dict[str, Figure]:
    return {line.figure.name: line.figure for line in report.lines if line.section == "order"}


def _sizes(figures: Mapping[str, Figure]) -> list[int]:
    start = f"order.{MODES[0].name}.publish."
    names = (name.removeprefix(start) for name in figures if name.startswith(start))
    return sorted(int(name.partition(".")[0]) for name in names if name.endswith(".rate"))


def order_table(report: Report, _: Sequence[str]) -> str:
    """Rates in thousands a second and latencies in milliseconds; in brackets beside best-effort."""
    figures = _figures(report)
    sizes = _sizes(figures)
    heads = [f"{way}, {size_name(size)}" for size in sizes for way in ("in", "out")]
    heads += ["send, p50 / p99", "end to end, p50 / p99", *(["late"] if _late(figures) else [])]
    rows = [f"| order | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for mode in MODES:
        cells = [
            f"{number(figures[f'{name}.rate'].value / 1_000)} k/s{_beside(figures, name)}"
            for size in sizes
            for name in (f"order.{mode.name}.{way}.{size}" for way in ("publish", "receive"))
        ]
        for kind in ("send", "end-to-end"):
            p50, p99 = f"order.{mode.name}.{kind}.p50", f"order.{mode.name}.{kind}.p99"
            values = f"{number(figures[p50].value / 1_000)} / {number(figures[p99].value / 1_000)} ms"
            cells.append(values + _beside(figures, p50, p99))
        if _late(figures):
            worst = [
                figures[name].high
                for name in (f"order.{mode.name}.late.{size}" for size in sizes)
                if name in figures
            ]
            cells.append(f"up to {number(max(worst))} %" if any(worst) else "none" if worst else "")
        rows.append(f"| {mode.title} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _late(figures: Mapping[str, Figure]) -> bool:
    return any(".late." in name and figure.high for name, figure in figures.items())


def _beside(figures: Mapping[str, Figure], *names: str) -> str:
    ratios = [figures[f"{name}.ratio"].value for name in names if f"{name}.ratio" in figures]
    return f" ({' / '.join(f'{ratio:.2f}' for ratio in ratios)} ×)" if ratios else ""


def order_plot(report: Report) -> str:
    """Two panels with one row a mode: rates of the largest size, and end-to-end latency on a logarithmic scale."""
    figures = _figures(report)
    size = _sizes(figures)[-1]
    rates = {
        mode: [figures[f"order.{mode.name}.{way}.{size}.rate"].value for way in ("publish", "receive")]
        for mode in MODES
    }
    waits = {
        mode: [figures[f"order.{mode.name}.end-to-end.{share}"].value / 1_000 for share in ("p50", "p99")]
        for mode in MODES
    }
    fastest = max(map(max, rates.values()))
    shortest, longest = min(map(min, waits.values())) / 2, max(map(max, waits.values()))
    span = log10(longest / shortest)
    left, right = _LABELS, _LABELS + _PANEL + _GAP + 40
    height = _TOP + _ROW * len(MODES) + 20
    frame = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame} font-family="sans-serif" font-size="13">',
        "<title>What each kind of order costs</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        *_heading(left, f"thousand messages a second, {size_name(size)}", ("in", "out"), _COLOURS[:2]),
        *_heading(right, "end to end, ms, logarithmic", ("p50", "p99"), _COLOURS[2:]),
    ]
    for row, mode in enumerate(MODES):
        y = _TOP + row * _ROW
        parts.append(_text(_LABELS - 10, y + 20, mode.title, anchor="end"))
        for place, (rate, wait) in enumerate(zip(rates[mode], waits[mode], strict=True)):
            top = y + 2 + place * 16
            parts += _bar(left, top, rate / fastest, _COLOURS[place], number(rate / 1_000))
            parts += _bar(right, top, log10(wait / shortest) / span, _COLOURS[2 + place], number(wait))
    return "\n".join([*parts, "</svg>", ""])


def _heading(x: int, title: str, names: Sequence[str], colours: Sequence[str]) -> list[str]:
    parts = [_text(x, 24, title, weight="bold")]
    for place, (name, colour) in enumerate(zip(names, colours, strict=True)):
        parts.append(f'<rect x="{x + place * 70}" y="38" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(x + place * 70 + 18, 49, name))
    return parts


def _bar(x: int, y: int, share: float, colour: str, label: str) -> list[str]:
    width = max(1.0, share * _PANEL)
    bar = f'<rect x="{x}" y="{y}" width="{width:.1f}" height="14" fill="{colour}"/>'
    return [bar, _text(round(x + width + 5), y + 11, label, size=11)]


def _text(x: int, y: int, text: str, *, anchor: str = "start", weight: str = "normal", size: int = 13) -> str:
    style = f'text-anchor="{anchor}" font-weight="{weight}" font-size="{size}" fill="#222"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'
