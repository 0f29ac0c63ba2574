"""Patterns with `*` and `?` in policies, and the variables in them.

A pattern is a text in which two characters that no policy may contain represent the wildcards. So a variable's value can
be inserted later and is never taken for a wildcard. Matching is linear; with `*` and `?` together it takes one operation
on a bit set of the text for each character of the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable

ANY, ONE = "\ufdd0", "\ufdd1"
"""Noncharacters: Unicode keeps them for uses like this one."""

ValueOf = Callable[[str], str | None]
"""The value of a variable, or None when it has none."""

_RESERVED = re.compile(r"[\ufdd0\ufdd1]|\\ufdd[01]", re.IGNORECASE)
_VARIABLE_OR_WILDCARD = re.compile(r"\$\{([^{}]*)\}|[*?]")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")


def has_reserved_characters(text: str) -> bool:
    """Whether a text holds what only patterns may hold, as it is or as JSON escapes it."""
    return bool(_RESERVED.search(text))


def has_variables(text: str) -> bool:
    """Whether a text means something else in every request."""
    return bool(_VARIABLE.search(text))


def pattern_of(text: str, value_of: ValueOf | None = None) -> str | None:
    """The pattern of a text; None when it needs a variable that has no value.

    Without `value_of` variables are plain text, as in policies older than variables.
    """
    return _replaced(_VARIABLE_OR_WILDCARD, text, value_of)


def text_of(text: str, value_of: ValueOf | None = None) -> str | None:
    """The same of a text in which wildcards are plain characters."""
    return text if value_of is None else _replaced(_VARIABLE, text, value_of)


def _replaced(special: re.Pattern[str], text: str, value_of: ValueOf | None) -> str | None:
    missing = False

    def replace(match: re.Match[str]) -> str:
        nonlocal missing
        whole: str = match[0]
        if whole == "*":
            return ANY
        if whole == "?":
            return ONE
        if value_of is None:
            return whole
        name: str = match[1]
        if name in ("*", "?", "$"):
            return name
        value = value_of(name)
        if value is None or has_reserved_characters(value):
            missing = True
            return ""
        return value

    replaced = special.sub(replace, text)
    return None if missing else replaced


def matches(pattern: str, text: str) -> bool:
    """Whether a text is of a pattern's form."""
    if ANY not in pattern:
        return pattern == text or (ONE in pattern and _matches_here(pattern, text))
    if pattern == ANY:
        return True
    return _matches_anywhere(pattern, text)


def _matches_here(pattern: str, text: str) -> bool:
    """A pattern without `*`."""
    return len(pattern) == len(text) and all(
        want in (ONE, have) for want, have in zip(pattern, text, strict=True)
    )


def _matches_anywhere(pattern: str, text: str) -> bool:
    """The pieces between the `*`: the first at the start, the last at the end, the others in between in order."""
    first, *middle, last = pattern.split(ANY)
    end = len(text) - len(last)
    if (
        end < len(first)
        or not _matches_here(first, text[: len(first)])
        or not _matches_here(last, text[end:])
    ):
        return False
    at = len(first)
    places = _Places(text)
    for piece in middle:
        found = places.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at <= end


class _Places:
    """Finds pieces with `?` in a text.

    A set of positions in the text is one integer, with a bit for each position. A character of a piece keeps the positions
    at which the text has it. So a piece costs one operation on such integers for each of its characters; trying it at each
    position would cost its length times that of the text (a pattern of 7,000 and a text of 30,000 characters: 12 s, now 20
    ms).
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._places_of: dict[str, int] = {}

    def find(self, piece: str, start: int, end: int) -> int:
        """The first place of a piece; the earliest is always good enough, as what follows only needs room."""
        if ONE not in piece:
            return self._text.find(piece, start, end)
        room = end - len(piece) + 1 - start
        if room <= 0:
            return -1
        found = (1 << room) - 1  # bit 0 is `start`
        for offset, wanted in enumerate(piece, start):
            if wanted != ONE:
                found &= self._of(wanted) >> offset
                if not found:
                    return -1
        return start + (found & -found).bit_length() - 1

    def _of(self, character: str) -> int:
        """The places of a character."""
        places = self._places_of.get(character)
        if places is None:
            text = self._text
            bits = bytearray(len(text) // 8 + 1)
            at = text.find(character)
            while at >= 0:
                bits[at >> 3] |= 1 << (at & 7)
                at = text.find(character, at + 1)
            places = self._places_of[character] = int.from_bytes(bits, "little")
        return places
