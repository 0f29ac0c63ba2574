"""What a front end remembers of receives: which partition has given messages to an attempt."""

from __future__ import annotations

import pytest

from penstock.cluster.layout.entries import QueueEntry
from penstock.model.settings import QueueSettings
from penstock.routing import spread


def test_the_oldest_attempt_goes_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "ATTEMPTS_REMEMBERED", 10)
    queue = QueueEntry(
        name="q", queue_id=1, settings=QueueSettings(partitions=3), created_ms=1, partitions=[2, 3, 4]
    )
    known = spread.Spread(lambda partition: 0.0)
    for number in range(10):
        known.received(queue, number % 3, b"attempt %d" % number, something=True)
    known.received(queue, 0, b"attempt 0", something=True)  # asked again
    known.received(queue, 1, b"one more", something=True)
    assert known.served(queue, b"attempt 0") == 0
    assert known.served(queue, b"attempt 1") is None
    assert [known.served(queue, b"attempt %d" % number) for number in range(2, 10)] == [
        number % 3 for number in range(2, 10)
    ]
    assert known.served(queue, b"one more") == 1
