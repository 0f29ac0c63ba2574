"""The table `audit`, for the job that fills it and for the search that reads it without Spark."""

from __future__ import annotations

from penstock.pipeline.warehouse.table import WarehouseTable, column

AUDIT = WarehouseTable(
    "audit",
    "Every request, once: user, action, time and result.",
    "batches",
    (
        column("time", "timestamp", "When the request arrived."),
        column("account", "string", "The account that asked."),
        column("user", "string", "The user; empty: unknown."),
        column("address", "string", "The address of the client."),
        column("action", "string", "The requested action, such as DeleteQueue."),
        column("queue", "string", "The queue's ARN; empty for an action on no queue."),
        column("messages", "int64", "Messages it was about."),
        column("bytes_in", "int64", "Bytes of the request."),
        column("bytes_out", "int64", "Bytes of the answer."),
        column("outcome", "string", "`ok`, or the error code that the caller was given."),
        column("status", "int32", "The HTTP status of the answer."),
        column("latency_us", "int64", "Processing time, in microseconds."),
        column("request_id", "string", "The request id in the answer."),
        column("front_end", "string", "The front end that received it."),
        column("number", "int64", "The front end's own count of requests."),
    ),
    by_day=True,
)
