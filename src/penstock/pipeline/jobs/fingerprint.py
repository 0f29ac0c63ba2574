"""The fingerprint of an error: what is left when all that differs from one case to the next is taken out."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

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
"""In this order: what is in quotes may be anything, so it goes first."""


def fingerprint(error: Column) -> Column:
    """The same for errors that differ in numbers, ids, addresses and quoted text only; empty where none was given."""
    found = sf.coalesce(error, sf.lit(""))
    for pattern, replacement in STEPS:
        found = sf.regexp_replace(found, pattern, replacement)
    return sf.substring(sf.trim(found), 1, LENGTH)
