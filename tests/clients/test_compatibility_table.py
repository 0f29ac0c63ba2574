"""`docs/reference/sqs-compatibility.md` says what the server does: every action is tried, in both protocols.

`make compatibility` writes the page anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.compatibility.recording import Recording
from tests.clients.compatibility.table import write_page
from tests.clients.environments import Environments
from tests.clients.server import Endpoint

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sqs-compatibility.md"


@pytest.fixture
def recordings(
    environments: Environments, guarded_endpoint: Endpoint
) -> Iterator[tuple[Recording, Recording]]:
    """Clients that speak JSON by the newest model, and Query by the last model that had it."""
    made = Recording(guarded_endpoint), Recording(guarded_endpoint, environments.query_models)
    yield made
    for recording in made:
        recording.client.close()


@pytest.mark.slow
def test_the_page_says_what_the_server_does(recordings: tuple[Recording, Recording]) -> None:
    json_recording, query_recording = recordings
    assert (json_recording.protocol, query_recording.protocol) == ("json", "query")
    page = write_page(json_recording, query_recording)
    if os.environ.get("PENSTOCK_WRITE_COMPATIBILITY"):
        PAGE.write_text(page, encoding="utf-8")
    assert page == PAGE.read_text(encoding="utf-8"), "run `make compatibility`, and look at what changed"
    assert "missing" not in page.partition("## What differs")[0].partition("|---|")[2]
