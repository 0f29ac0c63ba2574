"""Connects the native protocol's sockets with the native guard, for a node's driver and a cluster's gateway."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence

from penstock.backend.admin.catalogue import Catalogue
from penstock.columnar.usage import USAGE_QUEUE
from penstock.config.address import Address
from penstock.frontend.native.authentication import Authentication
from penstock.frontend.native.limits import NativeLimits
from penstock.frontend.native.native_guard import NativeGuard
from penstock.frontend.native.permissions import Permissions, QueueNames
from penstock.frontend.native.record import NativeRecord
from penstock.frontend.throttle.failed_signatures import FailedSignatures, limit_of
from penstock.frontend.usage.record_usage import RequestIds
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.runtime.clocks.clock import timer_us
from penstock.runtime.native.server import Server
from penstock.runtime.processes.shared_services import SharedServices
from penstock.sqs.names import QueueArn
from penstock.sqs.protocols.http import Peer


class NativeSockets:
    """See `Outside`: a server's connections, for the guard."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.write: Callable[[int, list[Buffer]], None] = server.write

    def peer_of(self, connection: int) -> Peer:
        """The address from which a client connects."""
        return self._server.connections[connection].socket.client

    def channel_of(self, connection: int) -> bytes:
        """The identity of this end for a client that connects correctly."""
        return self._server.connections[connection].socket.channel

    def allow(self, connection: int, frame_bytes: int) -> None:
        """Frames of a client may be so long from now on."""
        self._server.connections[connection].allow(frame_bytes)

    def refuse(self, connection: int, error: PenstockError, request_id: int) -> None:
        """Says what is wrong, and ends the connection."""
        if (client := self._server.connections.get(connection)) is not None:
            client.refuse(error, request_id)

    def expect(self, connection: int) -> Callable[[], None]:
        """Ends the connection unless what is returned is called soon."""
        late = PenstockError(ErrorCode.UNAUTHENTICATED, "the client did not authenticate in time")
        loop = asyncio.get_running_loop()
        return loop.call_later(
            self._server.sessions.terms.hello_timeout_seconds, self.refuse, connection, late, 0
        ).cancel

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls in so many seconds."""
        asyncio.get_running_loop().call_later(seconds, call)


class MetadataLooks:
    """See `Look`: reads the store itself, for when the cache may be behind."""

    def __init__(self, mirror: MetadataMirror) -> None:
        self._mirror = mirror
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, keys: Sequence[str], done: Callable[[PenstockError | None], None]) -> None:
        """Each read has its task; they are rare."""
        task = asyncio.get_running_loop().create_task(self._look(keys, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look(self, keys: Sequence[str], done: Callable[[PenstockError | None], None]) -> None:
        try:
            for key in keys:
                await self._mirror.refresh(key)
        except StoreUnavailableError as error:
            done(PenstockError(ErrorCode.METADATA_UNAVAILABLE, str(error)))
            return
        done(None)


class CatalogueNames:
    """See `QueueNames`: those of a single server."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def name_of(self, queue_id: int) -> str | None:
        """The name of a queue."""
        partition = self._catalogue.partitions.get(queue_id)
        return partition.name if partition is not None else None

    def id_of(self, name: str) -> int | None:
        """The incarnation that has a name now."""
        return self._catalogue.names.get(name)

    def may_be_new(self, queue_id: int) -> bool:
        """The catalogue knows all queues."""
        return False


class ClusterNames:
    """See `QueueNames`: those of a cluster."""

    def __init__(self, layout: ClusterMap) -> None:
        self._layout = layout

    def name_of(self, queue_id: int) -> str | None:
        """The name of a queue."""
        entry = self._layout.incarnation(queue_id)
        return entry.name if entry is not None else None

    def id_of(self, name: str) -> int | None:
        """The incarnation that has a name now."""
        entry = self._layout.named(name)
        return entry.queue_id if entry is not None else None

    def may_be_new(self, queue_id: int) -> bool:
        """Whether the layout does not say that it is gone: the layout may be behind the metadata."""
        return not self._layout.is_gone(queue_id)


def make_native_guard(
    server: Server,
    shared: SharedServices,
    names: QueueNames,
    listen: Address,
    failed_signatures: int | None,
    now_ms: Callable[[], int],
) -> NativeGuard:
    """The guard of a listening server; its `inside` must still be set."""
    authentication = Authentication(
        shared.users,
        shared.home,
        FailedSignatures(limit_of(failed_signatures)),
        link_secret=shared.link_secret,
        open_without_users=listen.is_loopback,
        token=secrets.token_bytes,
    )
    own_queue = str(QueueArn(shared.home.region, shared.home.account, USAGE_QUEUE))
    record = NativeRecord(shared.usage, RequestIds(secrets.token_bytes(10)), timer_us, own_queue)
    permissions = Permissions(shared.home, shared.queues, names)
    limits = NativeLimits(shared.throttle, names)
    sockets, looks = NativeSockets(server), MetadataLooks(shared.mirror)
    return NativeGuard(
        authentication, permissions, limits, record, shared.metadata, sockets, looks.look, now_ms
    )
