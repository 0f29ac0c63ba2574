"""SQL over frames: a job says what it wants in one statement.

Made of `Column` objects, every name, function and operator is a question to Java of its own, which waits for its answer: a
roll-up of the ledger asked some 8,000, and took longer to say what it wanted than Spark took to do it. A statement is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from pyspark.sql import DataFrame


def select(text: str, **frames: DataFrame) -> DataFrame:
    """What the statement says; `{name}` in it is the frame of that name."""
    session = next(iter(frames.values())).sparkSession
    views = {name: f"penstock_{uuid4().hex}" for name in frames}
    for name, frame in frames.items():
        frame.createTempView(views[name])
        text = text.replace(f"{{{name}}}", views[name])
    try:
        return session.sql(text)
    finally:
        for view in views.values():
            session.catalog.dropTempView(view)


def numbers_of(values: Iterable[int]) -> str:
    """For `in (…)`."""
    return ", ".join(str(int(value)) for value in values)


def texts_of(values: Iterable[str]) -> str:
    """For `in (…)`; none of them has a quote or a backslash."""
    return ", ".join(f"'{value}'" for value in values)


def within(days: Iterable[date]) -> str:
    """Whether a row's `day` is one of these."""
    wanted = ", ".join(f"date'{day.isoformat()}'" for day in days)
    return f"(day in ({wanted}))" if wanted else "false"
