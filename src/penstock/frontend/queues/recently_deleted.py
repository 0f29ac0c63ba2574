"""Names of recently deleted queues: as in SQS, they cannot be used again for a minute."""

from __future__ import annotations

import msgspec

from penstock.frontend.context import Context
from penstock.metadata.store.interface import VersionConflictError
from penstock.model.limits import SECOND_MS
from penstock.steps.asking import put, remove
from penstock.steps.step import Steps

PREFIX = "deleted/"
REST_MS = 60 * SECOND_MS
SWEPT = 10
"""Old ones that each new one takes away, so that they do not pile up."""


class DeletedName(msgspec.Struct, frozen=True):
    """When the queue was deleted."""

    deleted_ms: int


_decoder = msgspec.json.Decoder(DeletedName)


def is_reserved(context: Context, native_name: str) -> bool:
    """Whether a queue of this name was deleted less than a minute ago."""
    entry = context.metadata.get(PREFIX + native_name)
    return entry is not None and context.now_ms - _decoder.decode(entry.value).deleted_ms < REST_MS


def mark(context: Context, native_name: str) -> Steps[None]:
    """Remembers that the queue was deleted now."""
    old = [
        entry
        for entry in context.metadata.list(PREFIX)
        if context.now_ms - _decoder.decode(entry.value).deleted_ms >= REST_MS
    ]
    for entry in old[:SWEPT]:
        try:
            yield from remove(entry.key, entry.version)
        except VersionConflictError:
            continue  # it is a new one, or somebody else took it away
    yield from put(PREFIX + native_name, msgspec.json.encode(DeletedName(context.now_ms)))
