"""Rows of usage and of lifecycles, made by hand: as tables of Spark, and as the Arrow streams that writers send."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from penstock.columnar.arrow import arrow_stream
from penstock.columnar.lifecycle import CENSUS, LIFECYCLE, Change
from penstock.columnar.table import Table
from penstock.columnar.usage import USAGE
from penstock.pipeline.local_rows import local_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGE_BODY = 32_768
"""Of which what is held back between two stages is few."""
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
_TYPES = {"timestamp": "timestamp", "string": "string", "int8": "byte", "int32": "int", "int64": "long"}

_USAGE: dict[str, Any] = {
    "time": NOON,
    "front_end": "front-1",
    "number": 1,
    "account": "000000000000",
    "user": "ada",
    "address": "10.0.0.1",
    "action": "SendMessage",
    "queue": "arn:aws:sqs:elsewhere:000000000000:orders",
    "messages": 1,
    "bytes_in": 100,
    "bytes_out": 50,
    "outcome": "ok",
    "status": 200,
    "latency_us": 1000,
    "request_id": "request-1",
}


def usage_row(number: int, **values: Any) -> dict[str, Any]:
    """One request; what is not said is the same for all."""
    return {**_USAGE, "number": number, "request_id": f"request-{number}", **values}


def frame(spark: SparkSession, table: Table, rows: list[dict[str, Any]]) -> DataFrame:
    """The rows as Spark has them."""
    schema = ", ".join(f"`{column.name}` {_TYPES[column.kind]}" for column in table.columns)
    return local_rows(spark, [tuple(row.get(name) for name in table.names) for row in rows], schema)


def usage_frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    """Rows of usage as Spark has them."""
    return frame(spark, USAGE, rows)


def lifecycle_frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    """Rows of lifecycles as Spark has them."""
    return frame(spark, LIFECYCLE, rows)


def stream_of(table: Table, rows: list[dict[str, Any]]) -> bytes:
    """The rows as the body of a message."""
    return arrow_stream(table, [[_cell(row.get(name)) for row in rows] for name in table.names])


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return value


class Partition:
    """Writes the rows of one partition, a number and a second each."""

    def __init__(
        self,
        queue: str = "orders",
        partition_id: int = 70,
        ordering: str = "best-effort",
        queue_id: int = 7,
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self._queue = queue
        self._queue_id = queue_id
        self._partition_id = partition_id
        self._ordering = ordering
        self.number = 0
        self.time = NOON

    def happens(self, change: Change | int, first: int, count: int = 1, **values: Any) -> dict[str, Any]:
        """The next row."""
        self.number += 1
        self.time += timedelta(seconds=1)
        row = {
            "time": self.time,
            "queue": self._queue,
            "queue_id": self._queue_id,
            "partition": 0,
            "partition_id": self._partition_id,
            "number": self.number,
            "change": int(change),
            "first": first,
            "count": count,
            **values,
        }
        if change in (Change.SENT, Change.ARRIVED, Change.STOOD):
            row.setdefault("ordering", self._ordering)
            row.setdefault("bytes", 100 * count)
        if change in CENSUS:
            row.setdefault("census_first", self.number)
            row.setdefault("census_last", self.number)
        self.rows.append(row)
        return row

    def counts(self, change: Change, *runs: tuple[int, int]) -> None:
        """Names all that is there, in as many rows as there are runs; none: nothing is there."""
        first = self.number + 1
        named = runs or ((1, 0),)
        for run in named:
            self.happens(change, *run, census_first=first, census_last=first + len(named) - 1)

    def sent(self, first: int, count: int = 1, **values: Any) -> None:
        """A producer's send was acknowledged."""
        self.happens(Change.SENT, first, count, **values)

    def leased(self, first: int, count: int = 1, **values: Any) -> None:
        """Handed out."""
        self.happens(Change.LEASED, first, count, **values)

    def deleted(self, first: int, count: int = 1) -> None:
        """Done with."""
        self.happens(Change.DELETED, first, count)

    def worked_on(self, first: int, count: int = 1) -> None:
        """Handed out and deleted."""
        self.leased(first, count)
        self.deleted(first, count)
