"""SQL over frames: a job declares its result in one statement.

With `Column` objects every name, function and operator is a separate call to Java, which waits for its answer: a roll-up
of the ledger made some 8,000, and took longer to build its plan than Spark took to run it. A statement is one call.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from pyspark.sql import DataFrame

_numbers = count(1)


def select(text: str, **frames: DataFrame) -> DataFrame:
    """The result of the statement; `{name}` in it is the frame of that name.

    PySpark's own `sql(text, name=frame)` cannot be used with cached frames: afterwards it drops its views with a call that
    also drops the cache of their data, and the next step computes everything again.

    A statement whose result is cached has no `with`: Spark numbers named subqueries through a whole statement, so within
    another statement that has one it would not recognize the cached frame.
    """
    session: Any = next(iter(frames.values())).sparkSession
    views = {name: f"penstock_{name}_{next(_numbers)}" for name in frames}
    catalog = session._jsparkSession.sessionState().catalog()
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(views[name])
            text = text.replace(f"{{{name}}}", views[name])
        stated: DataFrame = session.sql(text)
        return stated
    finally:
        for view in views.values():
            catalog.dropTempView(view)


def listed(values: Iterable[object]) -> str:
    """For `in (…)`, which SQL does not have of nothing: of nothing it is null, in which nothing is."""
    return ", ".join(str(value) for value in values) or "null"


def texts_of(values: Iterable[str]) -> str:
    """For `in (…)`; none of them has a quote or a backslash."""
    return listed(f"'{value}'" for value in values)


def within(days: Iterable[date]) -> str:
    """Whether a row's `day`, which every row has, is one of these."""
    wanted = [f"date'{day.isoformat()}'" for day in days]
    return f"(day in ({listed(wanted)}))" if wanted else "false"
