"""Patterns with `*` and `?`, as policies use them, and the variables that may stand in them.

A pattern is a text in which two characters that no policy may hold stand for the wildcards. So a variable's
value can be put in afterwards and is never taken for a wildcard, and matching is linear in practice and
quadratic at worst: there is nothing to blow up.
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
    """The pattern a text stands for; None when it needs a variable that has no value.

    Without `value_of` variables are plain text, as in policies older than variables are.
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
    for piece in middle:
        found = _find(piece, text, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at <= end


def _find(piece: str, text: str, start: int, end: int) -> int:
    """The first place of a piece; the earliest is always good enough, as what follows only needs room."""
    if ONE not in piece:
        return text.find(piece, start, end)
    for at in range(start, end - len(piece) + 1):
        if _matches_here(piece, text[at : at + len(piece)]):
            return at
    return -1
