"""Failures between this process and one metadata server, and their meaning for a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

from penstock.metadata.organisation.server_search import Failure
from penstock.metadata.store.interface import (
    ABSENT,
    LeaseEndedError,
    StoreUnavailableError,
    VersionConflictError,
    WatchLostError,
)
from penstock.wire.metadata_messages import Failed


class ServerFailure(Exception):
    """One server could not be asked, or its answer not be understood."""


class NotDoneError(ServerFailure):
    """Certainly nothing was done: the request may be sent to another server."""


class StrangerError(NotDoneError):
    """Server and process do not trust each other: another secret, or certificates of different authorities."""


class PerhapsDoneError(ServerFailure):
    """The outcome is unknown: only a request that may be carried out twice may be repeated."""


class StoreFailedError(ServerFailure):
    """The server is running and its store is unavailable; a write may have been done."""


def failure_of(error: ServerFailure) -> Failure:
    """What an error means for the next server."""
    match error:
        case StrangerError():
            return Failure.STRANGER
        case NotDoneError():
            return Failure.NOT_DONE
        case StoreFailedError():
            return Failure.WITHOUT_STORE
        case _:
            return Failure.PERHAPS_DONE


def raise_failed(failed: Failed) -> NoReturn:
    """Raises the error in an answer."""
    match failed.kind:
        case "conflict":
            raise VersionConflictError(failed.message)
        case "lease-ended":
            raise LeaseEndedError(failed.message)
        case "watch-lost":
            raise WatchLostError(failed.message)
        case "not-done":
            raise NotDoneError(failed.message)
        case "unavailable":
            raise StoreFailedError(failed.message)
        case "bad-request":
            raise StoreUnavailableError(failed.message)


def uncertain(error: Exception) -> StoreUnavailableError:
    """The error for a write with an unknown outcome."""
    return StoreUnavailableError(
        f"no metadata server confirmed the change; check whether it was made, and try again if not ({error})"
    )


async def write_once(
    version: int | None, first: Callable[[], Awaitable[int]], again: Callable[[], Awaitable[int]]
) -> int:
    """Writes, and tries again if the outcome is unknown and the write cannot be carried out twice.

    A version that was once seen never returns. But a missing entry may be missing again: a creation that is still in
    transit could follow a deletion, so it is not repeated.
    """
    try:
        return await first()
    except PerhapsDoneError as error:
        if version is None or version == ABSENT:
            raise uncertain(error) from error
    try:
        return await again()
    except PerhapsDoneError as error:
        raise uncertain(error) from error
    except VersionConflictError as error:
        raise uncertain(
            PerhapsDoneError("the entry has changed since, by this write or by another")
        ) from error
