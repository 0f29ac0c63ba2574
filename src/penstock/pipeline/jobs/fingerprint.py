"""The fingerprint of an error: its text without the parts that differ from case to case."""

from __future__ import annotations

LENGTH = 200

STEPS = (
    (r"'[^']*'|\"[^\"]*\"|`[^`]*`", "'…'"),
    (r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "<id>"),
    (r"\b0[xX][0-9a-fA-F]+\b", "<hex>"),
    # Eight or more hexadecimal digits, at least one of them a digit: "deadbeef" alone may be a word.
    (r"\b(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{8,}\b", "<hex>"),
    (r"[-+]?\d+(?:[.,:]\d+)*", "<n>"),
    (r"\s+", " "),
)
"""In this order: quoted text may be anything, so it is removed first."""


def fingerprint(error: str) -> str:
    """In SQL: the same for errors that differ in numbers, ids, addresses and quoted text only; empty where none was given."""
    found = f"coalesce({error}, '')"
    for pattern, replacement in STEPS:
        found = f"regexp_replace({found}, {_text(pattern)}, {_text(replacement)})"
    return f"substring(trim({found}), 1, {LENGTH})"


def _text(value: str) -> str:
    """As SQL writes it."""
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"
