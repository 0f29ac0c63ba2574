"""One request under way and its answer, which may be given at once or much later."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.sqs.http import HttpResponse

if TYPE_CHECKING:
    from penstock.runtime.http.connection import HttpConnection

log = logging.getLogger(__name__)


class Exchange:
    """A place in the order of answers of a connection."""

    __slots__ = (
        "_connection",
        "bodiless",
        "cancel",
        "keep_alive",
        "linger",
        "old_version",
        "response",
        "size",
    )

    def __init__(
        self,
        connection: HttpConnection,
        *,
        size: int,
        keep_alive: bool,
        old_version: bool,
        bodiless: bool,
        linger: bool = False,
    ) -> None:
        self._connection: HttpConnection | None = connection
        self.size = size
        self.keep_alive = keep_alive
        self.old_version = old_version
        self.bodiless = bodiless
        self.linger = linger
        """Whether the client may still be sending what nobody reads."""
        self.response: HttpResponse | None = None
        self.cancel: Callable[[], None] | None = None

    def reply(self, response: HttpResponse) -> None:
        """Takes the answer; only the first counts, and none once the client is gone."""
        connection = self._connection
        if connection is None or self.response is not None:
            return
        self.response = response
        connection.answered(self)

    def abandon(self) -> None:
        """The client is gone: whoever works on the answer may stop."""
        self._connection = None
        cancel, self.cancel = self.cancel, None
        if cancel is not None and self.response is None:
            try:
                cancel()
            except Exception:
                log.exception("a request could not be cancelled")

    def close(self) -> None:
        """The answer is written."""
        self._connection = None
        self.cancel = None
