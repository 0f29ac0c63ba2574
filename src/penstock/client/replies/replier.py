"""Sends replies to the reply queues of requesters: many of them, each for a short time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from penstock.client.connection.route import Route
from penstock.client.produce.outgoing import OutgoingMessage, encode_outgoing
from penstock.client.produce.sending import send_payload
from penstock.model.errors import ErrorCode, PenstockError

ROUTES_KEPT = 1_000


class Replier:
    """The recently used reply queues of a client."""

    def __init__(self, new_route: Callable[[str], Route]) -> None:
        self._new_route = new_route
        """Makes a route with a separate identity: a forgotten route that is made again counts its batches from 1 again, and
        the server must not take them for earlier ones.
        """
        self._routes: OrderedDict[str, Route] = OrderedDict()

    async def send(self, queue: str, message: OutgoingMessage) -> bool:
        """Returns when the reply is on disk; False if the queue is gone, so that no requester waits any more."""
        try:
            await send_payload(self._route(queue), encode_outgoing([message]))
        except PenstockError as error:
            if error.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
            self._routes.pop(queue, None)
            return False
        return True

    def _route(self, queue: str) -> Route:
        route = self._routes.get(queue)
        if route is None:
            route = self._routes[queue] = self._new_route(queue)
            if len(self._routes) > ROUTES_KEPT:
                self._routes.popitem(last=False)
        else:
            self._routes.move_to_end(queue)
        return route
