"""One server for all clients of a run, and the environments that the clients live in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.environments import Environments
from tests.clients.server import served

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def sqs_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that has no users: any credentials do.

    `PENSTOCK_SQS_ENDPOINT` names another server to run the same tests against.
    """
    given = os.environ.get("PENSTOCK_SQS_ENDPOINT")
    if given is not None:
        yield given
        return
    with served(tmp_path_factory.mktemp("sqs")) as url:
        yield url


@pytest.fixture(scope="session")
def environments() -> Environments:
    """Where the clients are installed; built now when they are not (at once when they are)."""
    subprocess.run([ROOT / "scripts" / "client-environments"], check=True)
    return Environments(ROOT)
