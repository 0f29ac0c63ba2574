"""One request and its answer, which may be given at once or much later."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from penstock.sqs.protocols.http import HttpRequest, HttpResponse

log = logging.getLogger(__name__)

Cancel = Callable[[], None]


class Answering(Protocol):
    """Who sends answers when it is their turn."""

    def answered(self, exchange: Exchange) -> None: ...


class Exchange:
    """A place in the order of answers of a connection.

    It first waits with its request, then is under way, and is neither when its answer is
    written or nobody is there any more to read it.
    """

    __slots__ = (
        "bodiless",
        "cancel",
        "keep_alive",
        "linger",
        "old_version",
        "request",
        "response",
        "size",
        "under_way",
    )

    def __init__(
        self, request: HttpRequest | None, keep_alive: bool, old_version: bool, bodiless: bool
    ) -> None:
        self.request = request
        """What the handler is yet to be given; a refusal never has one."""
        self.keep_alive = keep_alive
        self.old_version = old_version
        """Whether the client speaks HTTP/1.0."""
        self.bodiless = bodiless
        """Whether the answer is to HEAD."""
        self.linger = False
        """Whether the client may still be sending what nobody reads."""
        self.size = 0
        """What it counts against the budget of all connections."""
        self.under_way: Answering | None = None
        self.response: HttpResponse | None = None
        self.cancel: Cancel | None = None

    def reply(self, response: HttpResponse) -> None:
        """Takes the answer; only the first counts, and none once the client is gone."""
        under_way = self.under_way
        if under_way is None or self.response is not None:
            return
        self.response = response
        under_way.answered(self)

    def abandon(self) -> None:
        """The client is gone: whoever works on the answer may stop."""
        self.under_way = None
        cancel, self.cancel = self.cancel, None
        if cancel is not None and self.response is None:
            try:
                cancel()
            except Exception:
                log.exception("could not cancel a request: this is a defect of Penstock; please report it")
