"""The JavaScript SDK and sqs-consumer."""

from __future__ import annotations

import pytest

from tests.clients.environments import Environments
from tests.clients.server import Endpoint


@pytest.mark.slow
def test_the_javascript_sdk_does_the_whole_round(
    environments: Environments, guarded_endpoint: Endpoint
) -> None:
    failure = environments.run_node("sdk.mjs", guarded_endpoint)
    assert failure["error"] == "QueueDoesNotExist"
    assert failure["status"] == 400
    assert failure["requestId"]


@pytest.mark.slow
def test_sqs_consumer_handles_a_hundred_messages(
    environments: Environments, guarded_endpoint: Endpoint
) -> None:
    found = environments.run_node("consumer.mjs", guarded_endpoint)
    assert found == {
        "distinct": 100,
        "twice": 2,
        "processed": 100,
        "failed": 1,
        "errors": [],
        "left": 0,
    }
