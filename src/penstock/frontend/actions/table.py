"""The actions as data: the function of each, what it needs before it begins, and whether it may wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.frontend.actions.cancel_message_move_task import cancel_message_move_task
from penstock.frontend.actions.change_message_visibility import (
    change_message_visibility,
    change_message_visibility_batch,
)
from penstock.frontend.actions.create_queue import create_queue
from penstock.frontend.actions.dead_letter_sources import list_dead_letter_source_queues
from penstock.frontend.actions.delete_message import delete_message, delete_message_batch
from penstock.frontend.actions.delete_queue import delete_queue
from penstock.frontend.actions.get_queue_url import get_queue_url
from penstock.frontend.actions.list_message_move_tasks import list_message_move_tasks
from penstock.frontend.actions.list_queues import list_queues
from penstock.frontend.actions.permissions import add_permission, remove_permission
from penstock.frontend.actions.purge_queue import purge_queue
from penstock.frontend.actions.queue_attributes import get_queue_attributes, set_queue_attributes
from penstock.frontend.actions.queue_tags import list_queue_tags, tag_queue, untag_queue
from penstock.frontend.actions.receive_message import receive_message
from penstock.frontend.actions.send_message import send_message, send_message_batch
from penstock.frontend.actions.start_message_move_task import start_message_move_task
from penstock.frontend.context import Context
from penstock.frontend.targets import TargetsOf, all_queues, asked_queue, its_queue, moved_queues, new_queue
from penstock.steps.step import Steps

Carry = Callable[[Context], Steps[Any]]


class ActionRow(NamedTuple):
    """One row."""

    carry_out: Carry
    targets: TargetsOf
    """The queues that it needs, and the rights there."""
    may_wait: bool = False
    """Whether it may wait for messages. Then it can be cancelled, and ends when its user may no longer do it."""


ACTIONS: dict[str, ActionRow] = {
    "CreateQueue": ActionRow(create_queue, new_queue),
    "GetQueueUrl": ActionRow(get_queue_url, asked_queue),
    "ListQueues": ActionRow(list_queues, all_queues),
    "DeleteQueue": ActionRow(delete_queue, its_queue),
    "PurgeQueue": ActionRow(purge_queue, its_queue),
    "ListDeadLetterSourceQueues": ActionRow(list_dead_letter_source_queues, its_queue),
    "GetQueueAttributes": ActionRow(get_queue_attributes, its_queue),
    "SetQueueAttributes": ActionRow(set_queue_attributes, its_queue),
    "TagQueue": ActionRow(tag_queue, its_queue),
    "UntagQueue": ActionRow(untag_queue, its_queue),
    "ListQueueTags": ActionRow(list_queue_tags, its_queue),
    "AddPermission": ActionRow(add_permission, its_queue),
    "RemovePermission": ActionRow(remove_permission, its_queue),
    "SendMessage": ActionRow(send_message, its_queue),
    "SendMessageBatch": ActionRow(send_message_batch, its_queue),
    "ReceiveMessage": ActionRow(receive_message, its_queue, may_wait=True),
    "DeleteMessage": ActionRow(delete_message, its_queue),
    "DeleteMessageBatch": ActionRow(delete_message_batch, its_queue),
    "ChangeMessageVisibility": ActionRow(change_message_visibility, its_queue),
    "ChangeMessageVisibilityBatch": ActionRow(change_message_visibility_batch, its_queue),
    "StartMessageMoveTask": ActionRow(start_message_move_task, moved_queues),
    "ListMessageMoveTasks": ActionRow(list_message_move_tasks, moved_queues),
    "CancelMessageMoveTask": ActionRow(cancel_message_move_task, moved_queues),
}
