"""One table of the 23 actions: the input and output of each, its required members, and where it may be sent."""

from __future__ import annotations

import msgspec

from penstock.sqs.shapes import batches, messages, moves, queues
from penstock.sqs.shapes.kinds import QueueRequest, Request, Result


class Action(msgspec.Struct, frozen=True):
    """One row."""

    name: str
    request: type[Request]
    result: type[Result] | None = None
    """None: the answer has no content."""
    required: tuple[tuple[str, str], ...] = ()
    """Field and the name the service calls it by, in the order they are missed."""
    refused_on_queue_path: bool = False
    single_form: str | None = None
    """The action whose permission covers this one."""

    @property
    def on_queue(self) -> bool:
        """Whether it works on one queue, named by `QueueUrl` or by the address."""
        return issubclass(self.request, QueueRequest)


_RECEIPT = ("receipt_handle", "ReceiptHandle")
_LABEL = ("label", "Label")
_NAME = ("queue_name", "QueueName")
_SOURCE = ("source_arn", "SourceArn")

_TABLE = (
    Action(
        "CreateQueue",
        queues.CreateQueueRequest,
        queues.CreateQueueResult,
        (_NAME,),
        refused_on_queue_path=True,
    ),
    Action("GetQueueUrl", queues.GetQueueUrlRequest, queues.GetQueueUrlResult, (_NAME,)),
    Action("ListQueues", queues.ListQueuesRequest, queues.ListQueuesResult, refused_on_queue_path=True),
    Action("DeleteQueue", queues.DeleteQueueRequest),
    Action("PurgeQueue", queues.PurgeQueueRequest),
    Action(
        "ListDeadLetterSourceQueues",
        queues.ListDeadLetterSourceQueuesRequest,
        queues.ListDeadLetterSourceQueuesResult,
    ),
    Action("GetQueueAttributes", queues.GetQueueAttributesRequest, queues.GetQueueAttributesResult),
    # The service names the first part of the map it misses, in JSON too.
    Action(
        "SetQueueAttributes",
        queues.SetQueueAttributesRequest,
        required=(("attributes", "Attribute.Name"),),
    ),
    Action("TagQueue", queues.TagQueueRequest, required=(("tags", "Tags"),)),
    Action("UntagQueue", queues.UntagQueueRequest),
    Action("ListQueueTags", queues.ListQueueTagsRequest, queues.ListQueueTagsResult),
    Action("AddPermission", queues.AddPermissionRequest, required=(_LABEL,)),
    Action("RemovePermission", queues.RemovePermissionRequest, required=(_LABEL,)),
    Action(
        "SendMessage",
        messages.SendMessageRequest,
        messages.SendMessageResult,
        (("message_body", "MessageBody"),),
    ),
    Action(
        "SendMessageBatch",
        batches.SendMessageBatchRequest,
        batches.SendMessageBatchResult,
        single_form="SendMessage",
    ),
    Action("ReceiveMessage", messages.ReceiveMessageRequest, messages.ReceiveMessageResult),
    Action("DeleteMessage", messages.DeleteMessageRequest, required=(_RECEIPT,)),
    Action(
        "DeleteMessageBatch",
        batches.DeleteMessageBatchRequest,
        batches.DeleteMessageBatchResult,
        single_form="DeleteMessage",
    ),
    Action(
        "ChangeMessageVisibility",
        messages.ChangeMessageVisibilityRequest,
        required=(_RECEIPT, ("visibility_timeout", "VisibilityTimeout")),
    ),
    Action(
        "ChangeMessageVisibilityBatch",
        batches.ChangeMessageVisibilityBatchRequest,
        batches.ChangeMessageVisibilityBatchResult,
        single_form="ChangeMessageVisibility",
    ),
    Action(
        "StartMessageMoveTask",
        moves.StartMessageMoveTaskRequest,
        moves.StartMessageMoveTaskResult,
        (_SOURCE,),
    ),
    Action(
        "ListMessageMoveTasks",
        moves.ListMessageMoveTasksRequest,
        moves.ListMessageMoveTasksResult,
        (_SOURCE,),
    ),
    Action(
        "CancelMessageMoveTask",
        moves.CancelMessageMoveTaskRequest,
        moves.CancelMessageMoveTaskResult,
        (("task_handle", "TaskHandle"),),
    ),
)

ACTIONS: dict[str, Action] = {action.name: action for action in _TABLE}
