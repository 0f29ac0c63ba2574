"""Durations and sizes as people write them.

Everything inside Penstock counts milliseconds and bytes; only this file knows `30s` and `64KiB`.
"""

from __future__ import annotations

import re
from fractions import Fraction

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")

DURATION_UNITS_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
SIZE_UNITS_BYTES = {
    "b": 1,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
DURATION_EXAMPLES = "250ms, 30s, 5m, 2h or 1d"
SIZE_EXAMPLES = "4096, 64KiB, 1MiB or 2GiB"


def parse_duration_ms(text: str) -> int:
    """Milliseconds of `250ms`, `1.5s`, `5m`, `1h30m`; a bare number counts seconds. Raises `ValueError`."""
    total, end = Fraction(0), 0
    stripped = text.strip()
    for found in _NUMBER.finditer(stripped):
        if found.start() != end:
            break
        number, unit = found.groups()
        if unit == "" and (found.start(), found.end()) != (0, len(stripped)):
            break
        scale = DURATION_UNITS_MS.get(unit if unit else "s")
        if scale is None:
            raise ValueError(f"{text!r} has the unknown unit {unit!r}; write {DURATION_EXAMPLES}")
        total += Fraction(number) * scale
        end = found.end()
    if not stripped or end != len(stripped):
        raise ValueError(f"{text!r} is not a duration; write {DURATION_EXAMPLES}")
    if total.denominator != 1:
        raise ValueError(f"{text!r} is finer than a millisecond")
    return int(total)


def parse_size_bytes(text: str) -> int:
    """Bytes of `4096`, `64KiB`, `1.5MiB`, `10MB`. Raises `ValueError`."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size; write {SIZE_EXAMPLES}")
    number, unit = found.groups()
    scale = SIZE_UNITS_BYTES.get(unit.lower() if unit else "b")
    if scale is None:
        raise ValueError(f"{text!r} has the unknown unit {unit!r}; write {SIZE_EXAMPLES}")
    total = Fraction(number) * scale
    if total.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(total)


def format_duration(milliseconds: int) -> str:
    """The shortest exact way to write it: `1m30s`, `250ms`, `4d`."""
    if milliseconds == 0:
        return "0s"
    parts, rest = [], milliseconds
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, DURATION_UNITS_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def format_size(size_bytes: int) -> str:
    """Exact where a unit divides it (`64KiB`), else one decimal (`1.4MiB`)."""
    for unit, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= scale:
            whole, rest = divmod(size_bytes, scale)
            return f"{whole}{unit}" if rest == 0 else f"{size_bytes / scale:.1f}{unit}"
    return f"{size_bytes}B"
