"""The front end's part of a queue in the metadata store: everything that the engine does not store."""

from __future__ import annotations

import msgspec

from penstock.metadata.store.interface import StoreUnavailableError
from penstock.model.document import Document, DocumentReader
from penstock.sqs.attributes.queue_attributes import QueueAttributes
from penstock.steps.step import Look, Steps

PREFIX = "queues/"


class QueueMetadata(Document, frozen=True, kw_only=True):
    """One queue; `queue_id` is the incarnation it belongs to: it is ignored for any other."""

    queue_id: int
    attributes: QueueAttributes
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    modified_ms: int
    purged_ms: int | None = None
    """When it was last purged: a second time within a minute is refused."""


def refresh(key: str) -> Steps[None]:
    """Updates the cache for a key, as far as the store can be reached."""
    try:
        yield Look(key)
    except StoreUnavailableError:
        pass  # the cached value must do


_encoder = msgspec.json.Encoder()
_reader: DocumentReader[QueueMetadata] = DocumentReader(QueueMetadata)


def key_of(native_name: str) -> str:
    """The key of a queue's metadata."""
    return PREFIX + native_name


def encode(metadata: QueueMetadata) -> bytes:
    """The bytes to store."""
    return _encoder.encode(metadata)


def decode(stored: bytes) -> QueueMetadata:
    """Decodes stored metadata; raises `msgspec.ValidationError` on anything else."""
    return _reader.decode(stored)
