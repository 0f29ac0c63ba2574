"""A queue for an action: the engine's identity and the attributes that it has in SQS."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.model.settings import QueueSettings
from penstock.sqs.attributes.queue_attributes import QueueAttributes
from penstock.sqs.messages.outgoing import QueueTraits
from penstock.sqs.names import QueueArn
from penstock.sqs.policies.policy import Policy


class ResolvedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known about a queue without another request."""

    queue_id: int
    native_name: str
    arn: QueueArn
    settings: QueueSettings
    """The engine's, as of when it was last asked."""
    attributes: QueueAttributes
    tags: dict[str, str]
    traits: QueueTraits
    policy: Policy | None
    created_ms: int
    modified_ms: int
    purged_ms: int | None
    metadata_version: int
    """Of its entry in the metadata store; `ABSENT` for a queue that SQS has not touched yet."""
    resolved_ms: int
    metadata_later: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """Fields of newer versions in that entry: they are kept in every change."""
