"""Queues that SQS is creating, whose RedriveAllowPolicy is not written yet.

The engine has a new queue before the metadata says which queues may send their dead letters to it. So a CreateQueue with a
RedriveAllowPolicy first writes a note, and removes it when the metadata is there. Until then no queue may name the new one
as its target. A note that remains after a crash counts for a minute.

The note must be read before the metadata: in the other order both could change in between.
"""

from __future__ import annotations

import msgspec

from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.store.interface import Entry, VersionConflictError
from penstock.model.limits import SECOND_MS
from penstock.steps.asking import put, remove
from penstock.steps.step import Steps

PREFIX = "making/"
COUNTS_MS = 60 * SECOND_MS


class Note(msgspec.Struct, frozen=True):
    """When the creation began."""

    begun_ms: int


_decoder = msgspec.json.Decoder(Note)


def note_of(native_name: str) -> str:
    """The key of a queue's note."""
    return PREFIX + native_name


def is_unfinished(metadata: MetadataCache, native_name: str, now_ms: int) -> bool:
    """Whether a queue of that name without metadata may be one that is being made."""
    entry = metadata.get(note_of(native_name))
    begun_ms = _begun_ms(entry) if entry is not None else None
    return begun_ms is not None and abs(now_ms - begun_ms) < COUNTS_MS


def begin(native_name: str, now_ms: int) -> Steps[None]:
    """Leaves the note."""
    yield from put(note_of(native_name), msgspec.json.encode(Note(now_ms)))


def finish(metadata: MetadataCache, native_name: str, now_ms: int) -> Steps[None]:
    """Takes away the note that was left at that time; another one is another request's."""
    entry = metadata.get(note_of(native_name))
    if entry is not None and _begun_ms(entry) == now_ms:
        try:
            yield from remove(entry.key, entry.version)
        except VersionConflictError:
            return


def _begun_ms(entry: Entry) -> int | None:
    """None: it is no note."""
    try:
        return _decoder.decode(entry.value).begun_ms
    except msgspec.MsgspecError:
        return None
