"""Subscriptions and waiting receives of native clients: they continue as long as their user may receive, and no longer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.frontend.native.client import Client
from penstock.frontend.native.limits import NativeLimits
from penstock.frontend.native.permissions import Permissions, Visit
from penstock.frontend.native.record import subscription_of
from penstock.frontend.native.rules import RULES
from penstock.model.errors import PenstockError
from penstock.wire import messages

_SUBSCRIBE = RULES[messages.Subscribe]

REVIEW_SECONDS = 1.0

End = Callable[[int, Client, int, PenstockError], None]
"""Ends a subscription, or a receive that waits (connection, client, request id), and says why."""


class Subscriptions:
    """Those of all clients."""

    def __init__(
        self,
        permissions: Permissions,
        limits: NativeLimits,
        clients: Mapping[int, Client],
        now_ms: Callable[[], int],
        later: Callable[[float, Callable[[], None]], None],
        end: End,
        end_receive: End,
    ) -> None:
        self._permissions = permissions
        self._limits = limits
        self._clients = clients
        self._now_ms = now_ms
        self._later = later
        self._watched = False
        self._end = end
        self._end_receive = end_receive

    def flows(
        self, connection: int, client: Client, request_id: int, request: messages.Request, now_ms: int
    ) -> bool:
        """Handles frames that continue a subscription; False if it has just ended."""
        if not isinstance(request, messages.AddCredit):  # the only one that has no answer
            ended = request.subscription if isinstance(request, messages.Unsubscribe) else 0
            asked = client.asked.get(ended)
            lives = asked is not None and subscription_of(asked) and ended not in client.unrecorded.values()
            client.unrecorded[request_id] = ended if lives else 0
        else:
            asked = client.asked.get(request.subscription)
            if request.subscription in client.unrecorded:
                return False  # it was ended here, and its user was informed
            queue_id = subscription_of(asked) if asked is not None else 0
            if queue_id and client.visit is not None:
                try:
                    self._permissions.recheck(client.visit, _SUBSCRIBE, queue_id, now_ms)
                    self._limits.charge_credit(client.visit.session.user, queue_id, request.messages, now_ms)
                except PenstockError as error:
                    self._end(connection, client, request.subscription, error)
                    return False
        return True

    def review(self, connection: int, client: Client, visit: Visit) -> None:
        """Ends those that are allowed no longer: one with much credit would not ask for more for a long time."""
        subscribed = [
            (number, queue)
            for number, asked in client.asked.items()
            if (queue := subscription_of(asked)) and number not in client.unrecorded
        ]
        for request_id, queue_id in subscribed:
            try:
                self._permissions.recheck(visit, _SUBSCRIBE, queue_id, self._now_ms())
            except PenstockError as error:  # also where the queue's policy cannot be believed
                self._end(connection, client, request_id, error)
        if client.receives:
            self._review_receives(connection, client, visit)
        if visit.conditional:
            self.watch()

    def watch(self) -> None:
        """A right that depends on the time may end without a change of any policy: it is checked every second."""
        if not self._watched:
            self._watched = True
            self._later(REVIEW_SECONDS, self._look_again)

    def _look_again(self) -> None:
        """Continues as long as a receive waits with such a right."""
        self._watched = False
        for connection, client in list(self._clients.items()):
            visit = client.visit
            if visit is not None and visit.conditional and _awaits(client):
                self.review(connection, client, visit)

    def _review_receives(self, connection: int, client: Client, visit: Visit) -> None:
        """Thousands may wait, at few queues: each queue is asked about once."""
        forbidden: dict[int, PenstockError] = {}
        for queue_id in set[int]().union(*client.receives.values()):
            try:
                self._permissions.recheck(visit, _SUBSCRIBE, queue_id, self._now_ms())
            except PenstockError as error:
                forbidden[queue_id] = error
        if forbidden:
            for request_id, queue_ids in list(client.receives.items()):
                found = next((queue_id for queue_id in queue_ids if queue_id in forbidden), None)
                if found is not None:
                    self._end_receive(connection, client, request_id, forbidden[found])


def _awaits(client: Client) -> bool:
    return bool(client.receives) or any(map(subscription_of, client.asked.values()))
