"""Requests and answers on the wire, the action of a metadata server for each, and errors as answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from penstock.metadata.remote.failures import PerhapsDoneError, StoreFailedError
from penstock.metadata.server.service import MetadataService
from penstock.metadata.store.interface import (
    Entry,
    LeaseEndedError,
    Listing,
    StoreUnavailableError,
    VersionConflictError,
    WatchLostError,
)
from penstock.wire.metadata_messages import (
    Answer,
    Delete,
    Failed,
    FailureKind,
    Found,
    Get,
    Grant,
    Granted,
    Listed,
    Put,
    Renew,
    Renewed,
    Request,
    Revoke,
    Revoked,
    Written,
    encode_items,
)

PART_BYTES = 1 << 20

_logger = logging.getLogger(__name__)

_KINDS: list[tuple[type[Exception], FailureKind]] = [
    (VersionConflictError, "conflict"),
    (LeaseEndedError, "lease-ended"),
    (WatchLostError, "watch-lost"),
    (StoreUnavailableError, "unavailable"),
    (StoreFailedError, "unavailable"),
    (PerhapsDoneError, "unavailable"),
]


async def answered(service: MetadataService, request: Request, body: bytes) -> tuple[Answer, bytes]:
    """The answer to a request that has one, with its body."""
    match request:
        case Get():
            found = await service.get(request)
            return Found(found.version, found.behind), found.value
        case Put():
            return Written(await service.put(request, body)), b""
        case Delete():
            return Written(await service.delete(request)), b""
        case Grant():
            return Granted(await service.grant(request.seconds)), b""
        case Renew():
            return Renewed(await service.renew(request.lease)), b""
        case Revoke():
            await service.revoke(request.lease)
            return Revoked(), b""
        case _:
            return Failed("bad-request", f"{type(request).__name__} cannot be asked here"), b""


def failed(error: Exception) -> Failed:
    """The answer for an error."""
    for kind, name in _KINDS:
        if isinstance(error, kind):
            return Failed(name, str(error))
    _logger.error("a request failed: this is a defect of Penstock; please report it", exc_info=error)
    return Failed("bad-request", f"a defect of the metadata server; its log says more ({error})")


def listing_parts(listing: Listing) -> Iterator[tuple[Listed, bytes]]:
    """A listing in frames of bounded size, the last of which says so."""
    part: list[Entry] = []
    size = 0
    for entry in listing.entries:
        if part and size + len(entry.value) > PART_BYTES:
            yield Listed(listing.version, True), encode_items(part)
            part, size = [], 0
        part.append(entry)
        size += len(entry.key) + len(entry.value) + 16
    yield Listed(listing.version, False), encode_items(part)
