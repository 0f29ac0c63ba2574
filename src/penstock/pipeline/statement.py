"""SQL over frames: a job says what it wants in one statement.

Made of `Column` objects, every name, function and operator is a question to Java of its own, which waits for its answer: a
roll-up of the ledger asked some 8,000, and took longer to say what it wanted than Spark took to do it. A statement is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def select(text: str, **frames: DataFrame) -> DataFrame:
    """What the statement says; `{name}` in it is the frame of that name."""
    some = next(iter(frames.values()))
    return some.sparkSession.sql(text, **frames)
