"""A client of the native protocol as the guard knows it: its identity, and its requests."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.native.authentication import AdmittedClient, Challenged
from penstock.frontend.native.permissions import Visit
from penstock.frontend.native.record import Asked, Who, who_is
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.sqs.protocols.http import Peer
from penstock.wire import messages
from penstock.wire.frames import Frame

_WAITS = messages.Receive | messages.ReceiveAny | messages.ReadLog | messages.Subscribe


class EndedReceive:
    """A receive that the guard has ended: two answers are still to come under its id, in any order."""

    __slots__ = ("error", "is_answered", "is_done")

    def __init__(self, error: PenstockError) -> None:
        self.error = error
        """The error for its client."""
        self.is_answered = False
        """Whether its own answer has come."""
        self.is_done = False
        """Whether the `Done` of the `Unsubscribe` has come that ended it."""


class Client:
    """One connection."""

    __slots__ = (
        "admitted",
        "asked",
        "challenged",
        "ended",
        "greetings",
        "held",
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
        self.admitted: AdmittedClient | None = None
        self.visit: Visit | None = None
        """None: a front end, of which nothing is asked and nothing recorded."""
        self.who: Who = who_is(None, peer.address)
        """Its identity in usage rows."""
        self.greetings = 0
        """The number of frames before its authentication."""
        self.challenged: Challenged | None = None
        self.proven: Callable[[], None] | None = None
        self.proof = b""
        """The proof for the welcome message."""
        self.asked: dict[int, Asked] = {}
        """By request id."""
        self.receives: dict[int, set[int]] = {}
        """By the ids of receives and reads of logs under way, which may wait for an hour: the queues that they are about."""
        self.ended: dict[int, EndedReceive] = {}
        """By the ids of those that were ended because they are allowed no longer."""
        self.held: dict[int, list[Frame]] = {}
        """By the ids of requests whose queues are being looked up: later requests about them."""
        self.unrecorded: dict[int, int] = {}
        """By the ids of requests under way that leave no row: the subscription that ends with the answer, or 0. An id is in
        use until its answer, recorded or not: a second request under it could pass for the first."""

    def visits(self, visit: Visit) -> None:
        """The client's user and rights are known."""
        self.visit = visit
        self.who = who_is(visit.session, self.peer.address)

    def check_is_free(self, request_id: int, request: messages.Request) -> None:
        """Refuses an id in use: two answers under one id could not be distinguished, and one of the requests would get no
        usage row. Also bounds requests that may wait for an hour: nodes of a cluster cannot distinguish the clients of a front
        end.
        """
        if (request_id in self.asked or request_id in self.unrecorded) and not isinstance(
            request, messages.AddCredit
        ):
            raise PenstockError(ErrorCode.BAD_REQUEST, f"request id {request_id} is in use")
        if isinstance(request, _WAITS) and len(self.asked) >= limits.WAITING_PER_CONNECTION:
            raise PenstockError(
                ErrorCode.TOO_MANY_WAITING,
                f"{len(self.asked)} requests of this connection are under way already, which is the limit",
            )
