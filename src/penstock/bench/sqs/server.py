"""A server with its SQS door open, one user, and one queue."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from penstock.bench.processes import BenchError
from penstock.bench.sqs.singles import create_queue
from penstock.bench.sqs.tasks import Endpoint
from penstock.bench.stage import Server, Stage
from penstock.sqs.names import DEFAULT_ACCOUNT

QUEUE = "bench"
_VISIBILITY_SECONDS = "600"
_CONNECTIONS = 20_000


@contextmanager
def sqs_server(stage: Stage) -> Iterator[tuple[Server, Endpoint]]:
    """The server and the way to its queue; every request must be signed with the user's key."""
    endpoint = Endpoint(host="", port=0, access_key="PENSTOCKBENCH", secret="the bench's own", queue_url="")

    def prepare(data: Path) -> None:
        nonlocal endpoint

    with stage.server(sqs=True, prepare=prepare, PENSTOCK_SQS_MAX_CONNECTIONS=str(_CONNECTIONS)) as server:
        if server.sqs_url is None:
            raise BenchError("the server does not say where its SQS door is")
        address = urlsplit(server.sqs_url)
        assert address.hostname is not None
        assert address.port is not None
        endpoint = msgspec.structs.replace(
            endpoint,
            host=address.hostname,
            port=address.port,
            queue_url=f"{server.sqs_url.rstrip('/')}/{DEFAULT_ACCOUNT}/{QUEUE}",
        )
        create_queue(endpoint, QUEUE, VisibilityTimeout=_VISIBILITY_SECONDS)
        yield server, endpoint


def raise_file_limit() -> int:
    """Lets this process and those it starts open as many files as they may; returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1_000_000
