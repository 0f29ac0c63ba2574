"""A server with its SQS port open, one user, and one queue."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from benchmarks.processes import BenchError
from benchmarks.sqs.singles import create_queue
from benchmarks.sqs.tasks import Endpoint
from benchmarks.stage import AccessKey, Server, Stage
from penstock.sqs.names import DEFAULT_ACCOUNT

QUEUE = "bench"
_VISIBILITY_SECONDS = "600"
_CONNECTIONS = 20_000


class _User(msgspec.Struct, frozen=True):
    """The part that matters of what `penstock user create --json` prints."""

    access_key: AccessKey


@contextmanager
def sqs_server(stage: Stage) -> Iterator[tuple[Server, Endpoint]]:
    """The server and the way to its queue; there is a user, so every request must be signed with its key."""
    with stage.server(
        sqs=True, prepare=_create_user, PENSTOCK_SQS_MAX_CONNECTIONS=str(_CONNECTIONS)
    ) as server:
        assert server.key is not None, "it was prepared with a user"
        url = server.sqs_url or ""
        address = urlsplit(url)
        if address.hostname is None or address.port is None:
            raise BenchError("the server does not say where its SQS port is")
        endpoint = Endpoint(
            host=address.hostname,
            port=address.port,
            access_key=server.key.key_id,
            secret=server.key.secret,
            queue_url=f"{url.rstrip('/')}/{DEFAULT_ACCOUNT}/{QUEUE}",
        )
        create_queue(endpoint, QUEUE, VisibilityTimeout=_VISIBILITY_SECONDS)
        yield server, endpoint


def _create_user(data: Path) -> AccessKey:
    command = [sys.executable, "-m", "penstock.cli.main", "user", "create", "bench", "--root", "--json"]
    made = subprocess.run([*command, "--data", str(data)], check=False, capture_output=True)
    if made.returncode:
        raise BenchError(f"no user could be made: {made.stderr.decode(errors='replace').strip()}")
    return msgspec.json.decode(made.stdout, type=_User).access_key


def raise_file_limit() -> int:
    """Lets this process and those it starts open as many files as they may; returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1_000_000
