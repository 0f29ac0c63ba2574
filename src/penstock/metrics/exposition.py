"""Metric families as text in the format of Prometheus.

The format is a line of help, a line of type and a line for each value. A library for it would add a registry of counters,
which the engine's own totals already are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Sample(NamedTuple):
    """One value, and its labels."""

    value: float
    labels: Mapping[str, str] = {}


class Family(NamedTuple):
    """The values of one metric."""

    name: str
    kind: Literal["gauge", "counter"]
    meaning: str
    samples: Iterable[Sample]


def exposition(families: Iterable[Family]) -> bytes:
    """All families, one after the other; one without figures is left out."""
    lines: list[str] = []
    for family in families:
        samples = [
            f"{family.name}{_labels(sample.labels)} {_number(sample.value)}" for sample in family.samples
        ]
        if samples:
            lines += (
                f"# HELP {family.name} {family.meaning}",
                f"# TYPE {family.name} {family.kind}",
                *samples,
            )
    return ("\n".join(lines) + "\n").encode()


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()) + "}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(value)
