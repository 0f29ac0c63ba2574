"""Requests of nobody known: a few of each minute are recorded one by one, the others as sums."""

from __future__ import annotations

from penstock.model.limits import MINUTE_MS
from penstock.usage.event import Row, UsageEvent
from penstock.usage.stranger_rows import KINDS, ROWS_A_MINUTE, StrangerRows

BEGIN_MS = 1_000 * MINUTE_MS


def refused(time_ms: int, outcome: str = "MissingAuthenticationToken", address: str = "192.0.2.1") -> Row:
    return (time_ms, "", "", address, "SendMessage", "", 0, 10, 20, outcome, 403, 5, "id")


def full_minute(rows: StrangerRows, begin_ms: int = BEGIN_MS) -> None:
    """As many as are kept as they are."""
    for number in range(ROWS_A_MINUTE):
        row = refused(begin_ms + number)
        assert rows.take(row) == [row]


def test_what_is_too_much_for_a_minute_is_added_up_by_outcome() -> None:
    rows = StrangerRows()
    full_minute(rows)
    for number in range(1_000):
        assert rows.take(refused(BEGIN_MS + 500 + number)) == []
    assert rows.take(refused(BEGIN_MS + 2_000, "InvalidClientTokenId", "192.0.2.1")) == []
    assert rows.take(refused(BEGIN_MS + 2_001, "InvalidClientTokenId", "192.0.2.2")) == []
    assert rows.due(BEGIN_MS + MINUTE_MS - 1) == []
    one, two = (UsageEvent(*row) for row in rows.due(BEGIN_MS + MINUTE_MS))
    assert one == UsageEvent(
        time_ms=BEGIN_MS + 500,
        account="",
        user="",
        address="192.0.2.1",
        action="Refused",
        queue="",
        messages=1_000,
        bytes_in=10_000,
        bytes_out=20_000,
        outcome="MissingAuthenticationToken",
        status=403,
        latency_us=5,
        request_id="",
    )
    assert (two.outcome, two.messages, two.address) == ("InvalidClientTokenId", 2, "")
    assert rows.rest() == []


def test_the_next_minute_begins_with_the_sums_of_the_last() -> None:
    rows = StrangerRows()
    full_minute(rows)
    assert rows.take(refused(BEGIN_MS + 500)) == []
    row = refused(BEGIN_MS + MINUTE_MS)
    summed, kept = rows.take(row)
    assert UsageEvent(*summed).messages == 1
    assert kept == row


def test_a_clock_that_is_set_back_allows_no_more_rows() -> None:
    rows = StrangerRows()
    full_minute(rows)
    assert rows.take(refused(BEGIN_MS - MINUTE_MS)) == []


def test_sums_are_few_however_many_kinds_there_are() -> None:
    rows = StrangerRows()
    full_minute(rows)
    for number in range(10 * KINDS):
        assert rows.take(refused(BEGIN_MS + 500, f"outcome-{number}")) == []
    sums = [UsageEvent(*row) for row in rows.rest()]
    assert len(sums) <= KINDS + 1
    assert sum(one.messages for one in sums) == 10 * KINDS
