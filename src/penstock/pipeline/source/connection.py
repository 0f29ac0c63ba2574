"""A client of the queue for a driver or a task: connected to one of the endpoints, with errors in words for users.

It is the blocking client, with its event loop in a separate thread: Spark's Python workers are plain programs, and a
program that runs a loop itself (a notebook) is not disturbed.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from penstock import BlockingClient, BlockingLog, OffsetGone
from penstock.client.blocking.connecting import connect_blocking_to_any
from penstock.client.connection.address import parse_address
from penstock.client.connection.endpoints import NoEndpoint
from penstock.client.connection.failure import Unreached, Untrusted
from penstock.model.errors import ErrorCode, PenstockError
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.source.options import Target
from penstock.wire.greeting import NO_SERVER
from penstock.wire.messages import QueueDescription


class Connection:
    """Connected on first use; only its target is sent between processes."""

    def __init__(self, target: Target, turn: int = 0) -> None:
        self.target = target
        self._turn = turn
        """Which endpoint is tried first, so that tasks spread over all of them."""
        self._client: BlockingClient | None = None
        self.queue_id = 0
        """The incarnation of the queue, as of the last look."""

    @property
    def client(self) -> BlockingClient:
        """The client; raises where no endpoint answers."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    def description(self) -> QueueDescription:
        """The queue as it is now."""
        with self.explained():
            return self.client.describe_queue(self.target.queue)

    def log(self) -> BlockingLog:
        """The queue's log; raises where it has none."""
        description = self.description()
        self.queue_id = description.queue_id
        if not description.settings.has_log:
            raise PipelineError(
                f"queue {self.target.queue!r} has no retained log, so Spark cannot read "
                "it. Create a queue with `--consumption log` (or `both`)"
            )
        return self.client.queue(self.target.queue).log()

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Errors of the client, in here, as what a person can do about them."""
        try:
            yield
        except OffsetGone:
            raise  # the reader decides what to do about that
        except PenstockError as error:
            raise PipelineError(explanation(error, self.target)) from None

    def close(self) -> None:
        """Ends the connection, if there is one."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Connection], tuple[Target, int]]:
        return Connection, (self.target, self._turn)

    def _connect(self) -> BlockingClient:
        endpoints = self.target.endpoints
        first = self._turn % len(endpoints)
        key, secret = self.target.credentials or (None, None)
        return connect_blocking_to_any(
            endpoints[first:] + endpoints[:first],
            timeout=self.target.timeout,
            name="spark",
            access_key=key,
            secret_key=secret,
            ca=self.target.authority,
        )


def explanation(error: PenstockError, target: Target) -> str:
    """The meaning of the error for a user of Spark."""
    if isinstance(error, NoEndpoint):
        asked = tuple(f"penstock://{address}" for address in error.telling_at)
        meaning = explanation(error.telling, dataclasses.replace(target, endpoints=asked))
        stop = "" if meaning.endswith("?") else "."
        return f"{meaning}{stop} What each endpoint answered: {error.said}"
    where = ", ".join(str(parse_address(url)) for url in target.endpoints)
    queue = target.queue
    if isinstance(error, Untrusted):
        return f"{error.message}; for Spark, the option ca"
    match error.code:
        case ErrorCode.QUEUE_NOT_FOUND:
            return (
                f"there is no queue {queue!r} at {where}. See what there is with `penstock queue list`, or create it "
                f"with `penstock queue create {queue} --consumption log`"
            )
        case ErrorCode.UNAUTHENTICATED:
            return (
                f"{where} refuses Spark: {error.message.partition(': ')[0]}. Set the options accessKey and "
                "secretKey to the access key of a user, or PENSTOCK_ACCESS_KEY and PENSTOCK_SECRET_KEY where the driver "
                "runs"
                if target.credentials is None
                else f"{where} refuses Spark: access key {target.credentials.access_key!r} does not exist "
                "there, or its secret is wrong"
            )
        case ErrorCode.ACCESS_DENIED:
            return (
                f"no permission for queue {queue!r} at {where}: {error.message}. An administrator of the server can allow "
                "it with `penstock user policy put`"
            )
        case ErrorCode.UNREACHABLE if NO_SERVER not in error.message:
            reason = error.reason if isinstance(error, Unreached) else error.message
            return (
                f"no Penstock server answers at {where} within {target.timeout:g} s ({reason}). Is it running, "
                "can this machine reach it, and is this the address of the native protocol (usually port 9326), not "
                "that of SQS or of monitoring?"
            )
        case ErrorCode.UNREACHABLE | ErrorCode.BAD_FRAME:
            return (
                f"the program at {where} does not accept Spark: it does not use the native protocol, or it is a "
                "node of a cluster, which accepts only processes that know the cluster's secret. Give the address of "
                "`penstock serve`, or of a front end of the cluster"
            )
        case ErrorCode.NOT_A_MEMBER:
            return f"the group has members that read {queue!r} now; use a separate group for Spark"
        case _:
            return f"queue {queue!r} at {where}: {error.message} [{error.code}]"
