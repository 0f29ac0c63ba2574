"""Messages for a native client that has gone, at the gateway of a cluster."""

from __future__ import annotations

import pytest

from penstock.steps.step import Reply
from penstock.wire import messages
from tests.runtime.cluster.link.test_gateway_order import Cluster
from tests.runtime.harness import async_test


@pytest.mark.parametrize("attempt", [b"", b"attempt"])
@async_test
async def test_messages_for_somebody_who_has_gone_are_given_back_unless_they_are_asked_for_again(
    attempt: bytes,
) -> None:
    """Under an attempt id the client may have the same lease already, over its next connection."""
    cluster = Cluster()
    cluster.say(1, 5, messages.Receive(1, 10, attempt=attempt))
    [(_, answer)] = cluster.asked
    cluster.gateway.disconnected(1)
    delivery = messages.Delivery(b"token", 1_000, [messages.DeliveredBatch(1, 3, 0, 0, 1, 0)])
    answer(Reply(delivery, memoryview(b"")))
    given_back = [request for request, _ in cluster.asked[1:]]
    released = messages.Release([messages.Receipt(b"token", [(1, 3)])], unreceived=True)
    assert given_back == ([] if attempt else [released])
