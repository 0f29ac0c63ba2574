"""What can go wrong between us and one metadata server, and what that means for whoever asked."""

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
    """One server could not be asked, or not understood."""


class NotDoneError(ServerFailure):
    """Certainly nothing was done: another server may be asked the same."""


class StrangerError(NotDoneError):
    """The server and we do not trust each other: another secret, or certificates of different authorities."""


class PerhapsDoneError(ServerFailure):
    """Nobody knows whether it was done: only what does no harm when done twice may be asked again."""


class StoreFailedError(ServerFailure):
    """The server is there and its store is not; a write may have been done."""


def failure_of(error: ServerFailure) -> Failure:
    """What an error means for whom to ask next."""
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
    """The error that an answer stands for."""
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
    """What is said of a write that nobody knows the outcome of."""
    return StoreUnavailableError(
        f"no metadata server said whether the change was made; look, and try again if it was not ({error})"
    )


async def write_once(
    version: int | None, first: Callable[[], Awaitable[int]], again: Callable[[], Awaitable[int]]
) -> int:
    """Writes, and tries again where nobody knows whether it was done and it cannot be done twice.

    A version that was once seen never comes back. That there is no entry may come true again: a creation that is
    still on its way somewhere could follow a deletion, so it is not tried again.
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
