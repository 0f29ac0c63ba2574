"""A client of the native protocol, as the door knows it: who it is, and what it has asked for."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.native.permissions import Visit
from penstock.frontend.native.reception import Challenged, Guest
from penstock.frontend.native.record import Asked, Who, who_is
from penstock.model.errors import PenstockError
from penstock.sqs.http import Peer


class Client:
    """One connection."""

    __slots__ = (
        "asked",
        "challenged",
        "ended",
        "guest",
        "name",
        "peer",
        "proof",
        "proven",
        "receives",
        "unrecorded",
        "visit",
        "who",
    )

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.name = ""
        self.guest: Guest | None = None
        self.visit: Visit | None = None
        """None: a front end, of which nothing is asked and nothing recorded."""
        self.who: Who = who_is(None, peer.address)
        """What the record calls it."""
        self.challenged: Challenged | None = None
        self.proven: Callable[[], None] | None = None
        self.proof = b""
        """What the welcome is to show."""
        self.asked: dict[int, Asked] = {}
        """By request id."""
        self.receives: dict[int, set[int]] = {}
        """By the ids of receives and reads of logs under way, which may wait for an hour: the queues that they are about."""
        self.ended: dict[int, PenstockError] = {}
        """By the ids of those that were ended because they are allowed no longer: what their client is told."""
        self.unrecorded: dict[int, int] = {}
        """By the ids of requests under way that leave no row: the subscription that ends with the answer, or 0. An id is in
        use until its answer, recorded or not: a second request under it could pass for the first."""

    def visits(self, visit: Visit) -> None:
        """It is known whose it is, and what that user may do."""
        self.visit = visit
        self.who = who_is(visit.session, self.peer.address)
