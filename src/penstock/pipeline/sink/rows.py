"""Rows of Spark as messages to send."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from penstock.client.produce.outgoing import OutgoingMessage, Sendable
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.sink.identity import RowIdentities

_encode = msgspec.msgpack.Encoder().encode


def messages_of(batch: pa.RecordBatch, identities: RowIdentities | None) -> list[Sendable]:
    """The messages for the rows; with `identities` each has a deduplication id, its own or one of those."""
    columns = {name: _cells(batch, name) for name in batch.schema.names}
    bodies = columns.pop("body")
    if None in bodies:
        raise PipelineError(
            "a row has no body: column body is NULL. Leave such rows out, or write an empty body"
        )
    if not columns:
        if identities is None:
            return list(bodies)
        return [
            OutgoingMessage(body, deduplication_id=identifier)
            for body, identifier in zip(bodies, identities.take(bodies), strict=True)
        ]
    nothing: list[Any] = [None] * len(bodies)
    given = columns.get("deduplication_id", nothing)
    rows = list(
        zip(
            bodies,
            columns.get("attributes", nothing),
            columns.get("delay", nothing),
            columns.get("ttl", nothing),
            columns.get("priority", nothing),
            columns.get("group", nothing),
            strict=True,
        )
    )
    identifiers = given if identities is None else _identified(rows, given, identities)
    return [
        OutgoingMessage(body, attributes, delay, ttl, priority, group, identifier)
        for (body, attributes, delay, ttl, priority, group), identifier in zip(rows, identifiers, strict=True)
    ]


def _identified(rows: Sequence[Any], given: Sequence[str | None], identities: RowIdentities) -> list[str]:
    """The row's own id where it has one."""
    nameless = [row for row, identifier in zip(rows, given, strict=True) if identifier is None]
    made = iter(identities.take([_encode(row) for row in nameless]))
    return [next(made) if identifier is None else identifier for identifier in given]


def _cells(batch: pa.RecordBatch, name: str) -> list[Any]:
    column = batch.column(name)
    if name == "body":
        if pa.types.is_string(column.type):
            column = column.cast(pa.binary())
        elif pa.types.is_large_string(column.type):
            column = column.cast(pa.large_binary())
    cells: list[Any] = column.to_pylist()
    if name == "attributes":
        return [None if cell is None else _attributes(cell) for cell in cells]
    if name in ("delay", "ttl"):
        return [_seconds(cell, name) for cell in cells]
    return cells


def _attributes(cell: list[tuple[str, str | None]]) -> dict[str, Any]:
    for name, value in cell:
        if value is None:
            raise PipelineError(
                f"a row has attribute {name!r} without a value: it is NULL. Leave it out of the map, or give it a text"
            )
    return dict(sorted(cell))


def _seconds(cell: float | Decimal | timedelta | None, name: str) -> float | None:
    if cell is None:
        return None
    seconds = cell.total_seconds() if isinstance(cell, timedelta) else float(cell)
    if not seconds >= 0:
        raise PipelineError(f"a row has {name} {seconds:g}: give seconds, 0 or more")
    return seconds
