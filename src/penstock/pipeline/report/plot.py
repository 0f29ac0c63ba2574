"""Plots as SVG inside the page: lines over time, and bars, in the colours of the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 720, 220
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 28
LINES = 4
"""Between the floor and the ceiling of a plot."""
LABELS = 6


class Series(NamedTuple):
    """One line."""

    name: str
    points: Sequence[tuple[datetime, float]]


def line_plot(series: Sequence[Series], written: Callable[[float], str], step_seconds: float) -> str:
    """Lines over time from zero up; a step without a point interrupts the line."""
    times = [time.timestamp() for one in series for time, _ in one.points]
    if not times:
        return '<p class="none">Nothing in this time.</p>'
    first, last = _shown(min(times), max(times), step_seconds)
    ceiling = nice_ceiling(max(value for one in series for _, value in one.points))

    def x_of(time: float) -> float:
        return LEFT + (time - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - value / ceiling * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">']
    for line in range(LINES + 1):
        value = ceiling * line / LINES
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(value):.1f}" y2="{y_of(value):.1f}"/>'
        )
        parts.append(
            f'<text x="{LEFT - 6}" y="{y_of(value) + 4:.1f}" text-anchor="end">{escape(written(value))}</text>'
        )
    form = "%H:%M" if last - first <= 2 * 86_400 else "%b %d"
    for label in range(LABELS):
        time = first + (last - first) * label / (LABELS - 1)
        text = datetime.fromtimestamp(time, UTC).strftime(form)
        anchor = "start" if label == 0 else "end" if label == LABELS - 1 else "middle"
        parts.append(f'<text x="{x_of(time):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{text}</text>')
    for number, one in enumerate(series):
        for piece in _pieces(one.points, step_seconds):
            name = escape(one.name)
            if len(piece) == 1:
                (time, value) = piece[0]
                parts.append(
                    f'<circle class="c{number}" cx="{x_of(time):.1f}" cy="{y_of(value):.1f}" r="4">'
                    f"<title>{name}: {escape(written(value))}</title></circle>"
                )
            else:
                points = " ".join(f"{x_of(time):.1f},{y_of(value):.1f}" for time, value in piece)
                parts.append(
                    f'<polyline class="c{number}" points="{points}"><title>{name}</title></polyline>'
                )
    parts.append("</svg>")
    if len(series) > 1:
        names = "".join(
            f'<span><i class="c{number}"></i>{escape(one.name)}</span>' for number, one in enumerate(series)
        )
        parts.append(f'<p class="legend">{names}</p>')
    return "".join(parts)


def _shown(first: float, last: float, step_seconds: float) -> tuple[float, float]:
    """Of a short time also what is around it, so that every label names another step."""
    shortest = (LABELS - 1) * step_seconds
    if last - first >= shortest:
        return first, last
    first -= (shortest - (last - first)) // (2 * step_seconds) * step_seconds
    return first, first + shortest


def bar(part: float, whole: float) -> str:
    """A bar in a cell of a table."""
    width = max(0.0, min(1.0, part / whole)) * 100 if whole > 0 else 0.0
    return f'<span class="bar"><i style="width:{width:.1f}%"></i></span>'


def nice_ceiling(value: float) -> float:
    """The next of 1, 2, 2.5, 4, 5, 8 and 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    return next(power * step for step in (1, 2, 2.5, 4, 5, 8, 10) if power * step >= value)


def _pieces(points: Sequence[tuple[datetime, float]], step_seconds: float) -> list[list[tuple[float, float]]]:
    """Points that follow each other step by step are one piece."""
    pieces: list[list[tuple[float, float]]] = []
    for time, value in sorted(points):
        at = time.timestamp()
        if not pieces or at - pieces[-1][-1][0] > 1.5 * step_seconds:
            pieces.append([])
        pieces[-1].append((at, value))
    return pieces
