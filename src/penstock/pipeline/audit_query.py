"""Searches the audit trail without Spark: PyArrow reads the matching days and the needed columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.warehouse.arrow_files import file_system, is_directory, reading
from penstock.pipeline.warehouse.audit_table import AUDIT

HELD_ROWS = 100_000
"""So many more than are asked for are held in memory while the trail is gone through."""


@dataclass(frozen=True)
class AuditQuery:
    """The search conditions; None: any value."""

    user: str | None = None
    account: str | None = None
    queue: str | None = None
    """A name or an ARN."""
    action: str | None = None
    outcome: str | None = None
    """`ok`, `error` for anything else, or an error code."""
    request_id: str | None = None
    address: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None
    """The last so many."""


def search(warehouse: str, query: AuditQuery) -> Iterator[dict[str, Any]]:
    """Rows that match, in the order of time."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    system, place = file_system(warehouse)
    root = f"{place}/{AUDIT.name}"
    if not is_directory(system, root):
        raise PipelineError(
            f"there is no audit trail in {warehouse}: `penstock pipeline run audit --once` writes one; if it reports that a "
            "trail was lost, --rebuild writes it again; or name another warehouse with --warehouse"
        )
    keys = [
        ("gen", "string"),
        ("block", "int64"),
        ("span", "int64"),
        ("batch_id", "int64"),
        ("day", "string"),
    ]
    by_place = ds.partitioning(_schema(keys), flavor="hive")
    condition = pc.scalar(True)
    for wanted in _conditions(query):
        condition = condition & wanted
    with reading(warehouse):
        trail = ds.dataset(root, filesystem=system, format="parquet", partitioning=by_place)
        if not trail.files:  # all rows were too old to be kept
            return
        last = _last(trail.scanner(columns=list(AUDIT.names), filter=condition).to_reader(), query.limit)
    for batch in last.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


def _last(found: Any, limit: int | None) -> Any:
    """The last so many rows in the order of time; earlier ones are dropped on the way."""
    import pyarrow as pa

    held: list[Any] = []
    rows = 0
    for batch in found:
        held.append(batch)
        rows += batch.num_rows
        if limit is not None and rows > limit + HELD_ROWS:
            held = pa.Table.from_batches(held, found.schema).sort_by("time").slice(rows - limit).to_batches()
            rows = limit
    table = pa.Table.from_batches(held, found.schema).sort_by("time")
    return table if limit is None else table.slice(max(0, table.num_rows - limit))


def _schema(keys: list[tuple[str, str]]) -> Any:
    import pyarrow as pa

    return pa.schema([(name, pa.string() if kind == "string" else pa.int64()) for name, kind in keys])


def _conditions(query: AuditQuery) -> Iterator[Any]:
    import pyarrow.compute as pc

    field = pc.field
    for name in ("user", "account", "action", "request_id", "address"):
        value = getattr(query, name)
        if value is not None:
            yield field(name) == value
    if query.queue is not None:
        yield (field("queue") == query.queue) | pc.ends_with(field("queue"), f":{query.queue}")
    if query.outcome == "error":
        yield field("outcome") != "ok"
    elif query.outcome is not None:
        yield field("outcome") == query.outcome
    # Days are directories: those that cannot have it are never opened.
    if query.since is not None:
        yield (field("day") >= query.since.astimezone(UTC).date().isoformat()) & (
            field("time") >= query.since
        )
    if query.until is not None:
        yield (field("day") <= query.until.astimezone(UTC).date().isoformat()) & (field("time") < query.until)
