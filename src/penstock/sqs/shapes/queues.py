"""Shapes of the actions on queues: their life, attributes, tags and permissions."""

from __future__ import annotations

from msgspec import field

from penstock.sqs.shapes.kinds import Integer, QueueRequest, Request, Result

# --- life ---------------------------------------------------------------------------------------------------


class CreateQueueRequest(Request, frozen=True, kw_only=True):
    """CreateQueue."""

    queue_name: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict, name="tags")


class CreateQueueResult(Result, frozen=True, kw_only=True):
    """CreateQueue's answer."""

    queue_url: str


class GetQueueUrlRequest(Request, frozen=True, kw_only=True):
    """GetQueueUrl."""

    queue_name: str = ""
    queue_owner_account: str | None = field(default=None, name="QueueOwnerAWSAccountId")


class GetQueueUrlResult(Result, frozen=True, kw_only=True):
    """GetQueueUrl's answer."""

    queue_url: str


class ListQueuesRequest(Request, frozen=True, kw_only=True):
    """ListQueues."""

    queue_name_prefix: str | None = None
    next_token: str | None = None
    max_results: Integer | None = None


class ListQueuesResult(Result, frozen=True, kw_only=True):
    """ListQueues' answer."""

    queue_urls: list[str] = field(default_factory=list)
    next_token: str | None = None


class DeleteQueueRequest(QueueRequest, frozen=True, kw_only=True):
    """DeleteQueue."""


class PurgeQueueRequest(QueueRequest, frozen=True, kw_only=True):
    """PurgeQueue."""


class ListDeadLetterSourceQueuesRequest(QueueRequest, frozen=True, kw_only=True):
    """ListDeadLetterSourceQueues."""

    next_token: str | None = None
    max_results: Integer | None = None


class ListDeadLetterSourceQueuesResult(Result, frozen=True, kw_only=True):
    """ListDeadLetterSourceQueues' answer; the list is required, so it is sent even when empty."""

    queue_urls: list[str] = field(name="queueUrls")
    next_token: str | None = None


# --- attributes ---------------------------------------------------------------------------------------------


class GetQueueAttributesRequest(QueueRequest, frozen=True, kw_only=True):
    """GetQueueAttributes."""

    attribute_names: list[str] = field(default_factory=list)


class GetQueueAttributesResult(Result, frozen=True, kw_only=True):
    """GetQueueAttributes' answer."""

    attributes: dict[str, str] = field(default_factory=dict)


class SetQueueAttributesRequest(QueueRequest, frozen=True, kw_only=True):
    """SetQueueAttributes."""

    attributes: dict[str, str] = field(default_factory=dict)


# --- tags ---------------------------------------------------------------------------------------------------


class TagQueueRequest(QueueRequest, frozen=True, kw_only=True):
    """TagQueue."""

    tags: dict[str, str] = field(default_factory=dict)


class UntagQueueRequest(QueueRequest, frozen=True, kw_only=True):
    """UntagQueue."""

    tag_keys: list[str] = field(default_factory=list)


class ListQueueTagsRequest(QueueRequest, frozen=True, kw_only=True):
    """ListQueueTags."""


class ListQueueTagsResult(Result, frozen=True, kw_only=True):
    """ListQueueTags' answer."""

    tags: dict[str, str] = field(default_factory=dict)


# --- permissions --------------------------------------------------------------------------------------------


class AddPermissionRequest(QueueRequest, frozen=True, kw_only=True):
    """AddPermission."""

    label: str = ""
    accounts: list[str] = field(default_factory=list, name="AWSAccountIds")
    actions: list[str] = field(default_factory=list)


class RemovePermissionRequest(QueueRequest, frozen=True, kw_only=True):
    """RemovePermission."""

    label: str = ""
