"""Figures as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def count(value: float | None) -> str:
    """1,234, or 12.3 k and 4.56 M where the digits tell nothing."""
    if value is None:
        return "–"
    for size, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == ' k' else size):.3g}{unit}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


def size(value: float | None) -> str:
    """Bytes."""
    if value is None:
        return "–"
    for unit_bytes, unit in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if abs(value) >= unit_bytes:
            return f"{value / unit_bytes:.3g} {unit}"
    return f"{value:.0f} B"


def microseconds(value: float | None) -> str:
    """A span of time."""
    if value is None:
        return "–"
    if value < 1000:
        return f"{value:.0f} µs"
    if value < 1_000_000:
        return f"{value / 1000:.3g} ms"
    return span(value / 1_000_000)


def span(seconds: float | None) -> str:
    """A longer span of time."""
    if seconds is None:
        return "–"
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"


def moment(value: datetime | None) -> str:
    """A time of day, in UTC."""
    if value is None:
        return "–"
    known = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return known.strftime("%Y-%m-%d %H:%M")


def share(part: float, whole: float) -> str:
    """A percentage."""
    return f"{100 * part / whole:.3g} %" if whole else "–"
