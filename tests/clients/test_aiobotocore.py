"""aiobotocore: many long polls at once."""

from __future__ import annotations

import pytest

from tests.clients.environments import Environments
from tests.clients.server import Endpoint


@pytest.mark.slow
def test_many_long_polls_at_once(environments: Environments, guarded_endpoint: Endpoint) -> None:
    found = environments.run_python("asynchronous", "aiobotocore_polls.py", guarded_endpoint)
    polls = found["polls"]
    assert found["all_get_one"]["bodies"] == found["all_get_one"]["distinct"] == polls
    assert found["all_get_one"]["seconds"] < 18, "the polls were not woken by the sends"
    assert found["given_up"]["received"] == found["given_up_polls"]
    assert found["batches"] == {
        "sent": 10,
        "listed": True,
        "error": "AWS.SimpleQueueService.NonExistentQueue",
    }
