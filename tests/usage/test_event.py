"""A row of usage has one order of fields: that of the event and of the table."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.columnar.usage import USAGE
from penstock.usage.event import UsageEvent, usage_row

FIELDS: dict[str, Any] = {
    "time_ms": 1,
    "account": "an account",
    "user": "a user",
    "address": "an address",
    "action": "an action",
    "queue": "a queue",
    "messages": 2,
    "bytes_in": 3,
    "bytes_out": 4,
    "outcome": "ok",
    "status": 200,
    "latency_us": 5,
    "request_id": "an id",
}


def test_a_row_has_the_fields_of_the_event_in_their_order() -> None:
    event = UsageEvent(**FIELDS)
    assert usage_row(event) == event.row() == tuple(FIELDS[name] for name in event.__struct_fields__)
    assert UsageEvent(*usage_row(event)) == event


def test_the_table_has_the_fields_in_the_same_order() -> None:
    names = list(UsageEvent.__struct_fields__)
    assert [column.name for column in USAGE.columns] == ["time", "front_end", "number", *names[1:]]
    assert {
        name: type(value).__name__ for name, value in msgspec.structs.asdict(UsageEvent(**FIELDS)).items()
    } == {field.name: field.type.__name__ for field in msgspec.structs.fields(UsageEvent)}
