"""Which processors a server uses: its own choice, all of them, or a list such as `0-3,6`."""

from __future__ import annotations

from typing import Literal

Processors = Literal["auto", "all"] | tuple[int, ...]

PROCESSOR_EXAMPLES = "auto, all, or numbers of processors such as 0 or 0-3,6"
HIGHEST = 4095


def parse_processors(text: str) -> Processors:
    """Raises `ValueError` where the text is none of the three."""
    if text == "auto":
        return "auto"
    if text == "all":
        return "all"
    numbers: set[int] = set()
    for part in text.split(","):
        low, dash, high = (piece.strip() for piece in part.partition("-"))
        first, last = _number(low, text), _number(high if dash else low, text)
        if last < first:
            raise ValueError(f'"{text}" has a range that ends before it begins; write {PROCESSOR_EXAMPLES}')
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def format_processors(processors: Processors) -> str:
    """As it is written: neighbours as a range."""
    if isinstance(processors, str):
        return processors
    ranges: list[list[int]] = []
    for number in processors:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges)


def _number(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 4 or int(digits) > HIGHEST:
        raise ValueError(f'"{text}" names no processors; write {PROCESSOR_EXAMPLES}')
    return int(digits)
