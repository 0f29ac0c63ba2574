"""One server for all clients of a run, and the environments that the clients live in."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.environments import Environments
from tests.clients.server import Endpoint, create_user, served, served_apart

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def sqs_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The address of a server that has no users: any credentials do.

    `PENSTOCK_SQS_ENDPOINT` names another server to run the same tests against.
    """
    given = os.environ.get("PENSTOCK_SQS_ENDPOINT")
    if given is not None:
        yield Endpoint(given)
        return
    with served(tmp_path_factory.mktemp("open")) as url:
        yield Endpoint(url)


@pytest.fixture(scope="session")
def guarded_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The address of a server that has a user: every signature is checked, and the clients sign as they do."""
    directory = tmp_path_factory.mktemp("guarded")
    access_key, secret = create_user(directory, "admin", "--root")
    with served(directory) as url:
        yield Endpoint(url, access_key, secret)


@pytest.fixture(scope="session")
def apart_endpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Endpoint, Endpoint]]:
    """Two front ends, each a process of its own, before one server."""
    with served_apart(tmp_path_factory.mktemp("apart")) as urls:
        yield Endpoint(urls[0]), Endpoint(urls[1])


@pytest.fixture(scope="session")
def apart_endpoint(apart_endpoints: tuple[Endpoint, Endpoint]) -> Endpoint:
    """The first of the two."""
    return apart_endpoints[0]


@pytest.fixture(scope="session")
def strict_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """The address of a server that keeps to the limits of SQS."""
    with served(tmp_path_factory.mktemp("strict"), PENSTOCK_SQS_COMPATIBILITY="strict") as url:
        yield Endpoint(url)


@pytest.fixture(scope="session")
def environments() -> Environments:
    """Where the clients are installed; built now when they are not (at once when they are)."""
    program = ROOT / "scripts" / "client-environments"
    with program.open() as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)  # one process builds them, the others wait
        subprocess.run([program], check=True)
    return Environments(ROOT)
