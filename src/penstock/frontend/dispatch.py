"""Step 7, dispatch: which function carries out which action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from penstock.frontend.steps import Steps

Carry = Callable[[Context], Steps[Any]]

FUNCTIONS: dict[str, Carry] = {
    "CreateQueue": create_queue,
    "GetQueueUrl": get_queue_url,
    "ListQueues": list_queues,
    "DeleteQueue": delete_queue,
    "PurgeQueue": purge_queue,
    "ListDeadLetterSourceQueues": list_dead_letter_source_queues,
    "GetQueueAttributes": get_queue_attributes,
    "SetQueueAttributes": set_queue_attributes,
    "TagQueue": tag_queue,
    "UntagQueue": untag_queue,
    "ListQueueTags": list_queue_tags,
    "AddPermission": add_permission,
    "RemovePermission": remove_permission,
    "SendMessage": send_message,
    "SendMessageBatch": send_message_batch,
    "ReceiveMessage": receive_message,
    "DeleteMessage": delete_message,
    "DeleteMessageBatch": delete_message_batch,
    "ChangeMessageVisibility": change_message_visibility,
    "ChangeMessageVisibilityBatch": change_message_visibility_batch,
    "StartMessageMoveTask": start_message_move_task,
    "ListMessageMoveTasks": list_message_move_tasks,
    "CancelMessageMoveTask": cancel_message_move_task,
}
