"""What the simulation takes a refused send for."""

from __future__ import annotations

import pytest

from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.simulation.message_history import QueueLife, SentBatch, SentMessage
from penstock.simulation.workload.producer import gone_in_shares


@pytest.mark.parametrize(
    ("partitions", "messages", "code", "is_open"),
    [
        (2, 2, ErrorCode.QUEUE_NOT_FOUND, True),
        (1, 2, ErrorCode.QUEUE_NOT_FOUND, False),
        (2, 1, ErrorCode.QUEUE_NOT_FOUND, False),
        (2, 2, ErrorCode.BAD_REQUEST, False),
    ],
)
def test_a_share_may_be_stored_before_the_queue_is_deleted(
    partitions: int, messages: int, code: ErrorCode, is_open: bool
) -> None:
    """One partition has stored its share and the other one is not reached before the queue is deleted."""
    life = QueueLife(1, "orders", [QueueSettings(partitions=partitions)], 0)
    sent = [SentMessage(n, life, b"x", b"", b"", 0, None, None, b"", 10, 10_000) for n in range(messages)]
    assert gone_in_shares(SentBatch(life, 7, 1, sent, b""), code) is is_open
