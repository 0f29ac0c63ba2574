"""Carries out requests of state machines to the metadata store (`cluster/membership/store_requests.py`) over a real one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.cluster.membership.store_requests import (
    Ask,
    Conflict,
    Delete,
    Done,
    Found,
    Grant,
    Granted,
    LeaseEnded,
    Look,
    Outcome,
    Put,
    Renew,
    Renewed,
    Request,
    Revoke,
    Revoked,
    Unknown,
)
from penstock.metadata.store.interface import (
    ABSENT,
    LeaseEndedError,
    MetadataStore,
    StoreUnavailableError,
    VersionConflictError,
)

StoreError = VersionConflictError | LeaseEndedError | StoreUnavailableError
STORE_ERRORS = (VersionConflictError, LeaseEndedError, StoreUnavailableError)

logger = logging.getLogger(__name__)


async def ask(store: MetadataStore, request: Request) -> Outcome:
    """Asks the store; raises what the store raises."""
    match request:
        case Grant(lease_ms):
            return Granted(await store.grant(lease_ms / 1000))
        case Renew(lease):
            return Renewed(await store.renew(lease))
        case Revoke(lease):
            await store.revoke(lease)
            return Revoked()
        case Look(key):
            entry = await store.get(key)
            return Found(entry.value, entry.version) if entry is not None else Found(None, ABSENT)
        case Put(key, value, version, lease):
            return Done(await store.put(key, value, version, lease))
        case Delete(key, version):
            return Done(await store.delete(key, version))


def failure(error: StoreError) -> Outcome:
    """The outcome of a request for which the store raised this."""
    match error:
        case VersionConflictError():
            return Conflict()
        case LeaseEndedError():
            return LeaseEnded()
        case _:
            return Unknown(str(error))


async def carry_out(store: MetadataStore, request: Request) -> Outcome:
    """Asks the store; every error becomes an outcome."""
    try:
        return await ask(store, request)
    except STORE_ERRORS as error:
        return failure(error)


class StoreQuestions:
    """The requests of one machine in progress, each a task; `answered` is called with each outcome."""

    def __init__(self, store: MetadataStore, answered: Callable[[int, Outcome], None]) -> None:
        self._store = store
        self._answered = answered
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, ask: Ask) -> None:
        """Asks one."""
        task = asyncio.get_running_loop().create_task(self._ask(ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, ask: Ask) -> None:
        try:
            outcome = await carry_out(self._store, ask.request)
        except Exception as error:
            # The machine must get an outcome for every request; one that may have been done counts as unknown.
            logger.exception(
                "a request to the metadata store failed: this is a defect of Penstock; please report it"
            )
            outcome = Unknown(f"{type(error).__name__}: {error}")
        self._answered(ask.number, outcome)

    async def close(self) -> None:
        """Reports nothing more; requests in progress may still be carried out."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
