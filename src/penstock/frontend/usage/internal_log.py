"""A log that Penstock itself writes: found or created for its first batch, and left alone while it is unavailable."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.internal_queues import internal_log_settings
from penstock.steps.asking import ask
from penstock.steps.step import Ask, Steps
from penstock.wire.messages import CreateQueue, DescribeQueue, QueueDescription, Send

logger = logging.getLogger(__name__)


class InternalLog:
    """The requests that store a batch in it, as steps."""

    def __init__(self, name: str, contents: str, replicas: Callable[[], int]) -> None:
        """`contents`: the waiting rows, in the words of a warning. `replicas`: the number for a new log."""
        self._name = name
        self._contents = contents
        self._replicas = replicas
        self._queue_id: int | None = None
        self._failing = False

    @property
    def is_known(self) -> bool:
        """Whether it was found, and was there when it was last asked."""
        return self._queue_id is not None

    def store(self, batch: Buffer, producer: int = 0, number: int = 0) -> Steps[bool]:
        """Whether the log has the batch on disk; a producer's batch that it has already is not stored again."""
        try:
            if self._queue_id is None:
                self._queue_id = yield from self._found_or_made()
            yield Ask(Send(self._queue_id, producer, number, internal=True), batch)
        except PenstockError as error:
            if error.code is ErrorCode.QUEUE_NOT_FOUND:  # it was deleted: there will be another
                self._queue_id = None
            if not self._failing:
                self._failing = True
                logger.warning(
                    "%(contents)s wait, because %(queue)s cannot store them: %(error)s",
                    {"contents": self._contents, "queue": self._name, "error": error.message},
                )
            return False
        if self._failing:
            self._failing = False
            logger.warning(
                "%(contents)s are written to %(queue)s again",
                {"contents": self._contents, "queue": self._name},
            )
        return True

    def _found_or_made(self) -> Steps[int]:
        try:
            return (yield from ask(DescribeQueue(self._name), QueueDescription)).queue_id
        except PenstockError as missing:
            if missing.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
        making = CreateQueue(self._name, internal_log_settings(self._replicas()))
        try:
            return (yield from ask(making, QueueDescription)).queue_id
        except PenstockError as refused:
            if refused.code is not ErrorCode.QUEUE_EXISTS:
                raise
        # Another process was quicker, and saw more of the nodes, or fewer.
        return (yield from ask(DescribeQueue(self._name), QueueDescription)).queue_id
