"""AddPermission and RemovePermission: statements of the queue's policy, one at a time."""

from __future__ import annotations

from typing import cast

import msgspec

from penstock.frontend.context import Context
from penstock.frontend.queues.changes import change_metadata, metadata_of
from penstock.frontend.queues.metadata import QueueMetadata
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.sqs.policies.permissions import with_permission, without_permission
from penstock.sqs.shapes.queues import AddPermissionRequest, RemovePermissionRequest
from penstock.steps.step import Steps


def add_permission(context: Context) -> Steps[None]:
    """Allows other accounts some actions on the queue, under a label."""
    request = cast(AddPermissionRequest, context.call.parameters)

    def added(queue: ResolvedQueue) -> QueueMetadata:
        policy = with_permission(
            queue.attributes.policy, queue.arn, request.label, request.accounts, request.actions
        )
        return _with_policy(context, queue, policy)

    yield from change_metadata(context, added)


def remove_permission(context: Context) -> Steps[None]:
    """Takes back what was allowed under a label."""
    request = cast(RemovePermissionRequest, context.call.parameters)

    def removed(queue: ResolvedQueue) -> QueueMetadata:
        return _with_policy(
            context, queue, without_permission(queue.attributes.policy, queue.arn, request.label)
        )

    yield from change_metadata(context, removed)


def _with_policy(context: Context, queue: ResolvedQueue, policy: str | None) -> QueueMetadata:
    attributes = msgspec.structs.replace(queue.attributes, policy=policy)
    return metadata_of(queue, attributes=attributes, modified_ms=context.now_ms)
