"""Shapes of the message move tasks, which bring dead letters back."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from penstock.sqs.shapes.kinds import Integer, Request, Result

TaskStatus = Literal["RUNNING", "COMPLETED", "CANCELLING", "CANCELLED", "FAILED"]


class StartMessageMoveTaskRequest(Request, frozen=True, kw_only=True):
    """StartMessageMoveTask."""

    source_arn: str = ""
    destination_arn: str | None = None
    max_number_of_messages_per_second: Integer | None = None


class StartMessageMoveTaskResult(Result, frozen=True, kw_only=True):
    """StartMessageMoveTask's answer."""

    task_handle: str


class ListMessageMoveTasksRequest(Request, frozen=True, kw_only=True):
    """ListMessageMoveTasks."""

    source_arn: str = ""
    max_results: Integer | None = None


class ListMessageMoveTasksResultEntry(Result, frozen=True, kw_only=True):
    """One task; the handle is shown while it runs, the reason when it failed."""

    task_handle: str | None = None
    status: TaskStatus
    source_arn: str
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None
    approximate_number_of_messages_moved: int
    approximate_number_of_messages_to_move: int | None = None
    failure_reason: str | None = None
    started_timestamp: int
    """Milliseconds since 1970."""


class ListMessageMoveTasksResult(Result, frozen=True, kw_only=True):
    """ListMessageMoveTasks' answer, newest first."""

    results: list[ListMessageMoveTasksResultEntry] = field(default_factory=list)


class CancelMessageMoveTaskRequest(Request, frozen=True, kw_only=True):
    """CancelMessageMoveTask."""

    task_handle: str = ""


class CancelMessageMoveTaskResult(Result, frozen=True, kw_only=True):
    """CancelMessageMoveTask's answer."""

    approximate_number_of_messages_moved: int
