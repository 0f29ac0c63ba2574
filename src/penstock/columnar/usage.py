"""The table of usage: one row for each request, from any caller and with any result."""

from __future__ import annotations

from penstock.columnar.table import Column, Table

USAGE_QUEUE = "penstock.usage"
"""The retained log that holds it: every message's body is one Arrow stream of such rows."""

REFUSED = "Refused"
"""The action of a row that stands for many requests of unknown callers; `messages` is their number."""

USAGE = Table(
    "usage",
    (
        Column("time", "timestamp"),
        Column("front_end", "string"),  # with `number`: one request, for ever
        Column("number", "int64"),  # rises by one a request of the front end: a gap is a lost row
        Column("account", "string"),
        Column("user", "string"),  # empty: an unknown caller
        Column("address", "string"),
        Column("action", "string"),
        Column("queue", "string"),  # the queue's ARN; empty for an action on no queue
        Column("messages", "int64"),
        Column("bytes_in", "int64"),
        Column("bytes_out", "int64"),
        Column("outcome", "string"),  # `ok`, or the error code that the caller was given
        Column("status", "int32"),
        Column("latency_us", "int64"),
        Column("request_id", "string"),
    ),
)
