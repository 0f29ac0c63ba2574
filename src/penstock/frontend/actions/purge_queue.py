"""PurgeQueue: deletes all messages of a queue, at most once a minute."""

from __future__ import annotations

from penstock.frontend.context import Context
from penstock.frontend.queues.changes import change_metadata, metadata_of
from penstock.model.limits import SECOND_MS
from penstock.sqs.refusals import purge_in_progress
from penstock.steps.asking import ask
from penstock.steps.step import Steps
from penstock.wire.messages import Count, Purge

REST_MS = 60 * SECOND_MS


def purge_queue(context: Context) -> Steps[None]:
    """Visible, invisible and delayed messages are gone, and so is what deduplication remembered."""
    queue = yield from context.queues.again(context.queue, context.now_ms)
    if queue.purged_ms is not None and context.now_ms - queue.purged_ms < REST_MS:
        raise purge_in_progress(queue.arn.name)
    # Noted afterwards: a caller whose purge was interrupted must be able to repeat it.
    yield from ask(Purge(queue.queue_id), Count)
    yield from change_metadata(context, lambda current: metadata_of(current, purged_ms=context.now_ms))
