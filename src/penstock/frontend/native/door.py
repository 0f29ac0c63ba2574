"""The door of the native protocol: what clients send passes it on its way to the engine, and the answers on their way back.

It stands between the sockets and whoever handles requests (the driver of a node, or a gateway to a cluster) and is to
either what the other is. It lets in who proves to be a user, passes on what the user may do, answers the rest itself, and
records every request. What it hands on it hands on as it came; only who asks for a ticket, and whose queues are to
be listed, it writes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from penstock.frontend.native.limits import NativeLimits
from penstock.frontend.native.permissions import AccessDeniedError, Permissions, Visit
from penstock.frontend.native.reception import Challenged, Guest, Reception
from penstock.frontend.native.record import Asked, NativeRecord, leaves_rows, queue_of, subscription_of
from penstock.frontend.native.rules import CONNECTED, RULES, UNREADABLE, About, Rule
from penstock.frontend.queue_metadata import PREFIX as QUEUES
from penstock.metadata.cache import MetadataCache
from penstock.metadata.store.interface import Change
from penstock.metadata.users import KEYS, USERS
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import FRAME_BYTES, KIBIBYTE
from penstock.sqs.http import Peer
from penstock.wire import messages
from penstock.wire.credentials import Prove, read_greeting
from penstock.wire.frames import Frame, encode_frame, frames_in
from penstock.wire.read_ticket import Holder, encode_holder

_NOTHING = memoryview(b"")
_SUBSCRIBE = RULES[messages.Subscribe]
_UNREADABLE = Rule(About.NOTHING, "", UNREADABLE)
GREETING_BYTES = 16 * KIBIBYTE
"""No frame is longer before it is known who sends it, so that a stranger can make nobody hold more."""


class Inside(Protocol):
    """Who handles what is let in."""

    @property
    def congested(self) -> bool: ...
    def connected(self, connection: int) -> None: ...
    def behind(self, connection: int) -> None: ...
    def caught_up(self, connection: int) -> None: ...
    def disconnected(self, connection: int) -> None: ...
    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None: ...


class Outside(Protocol):
    """The sockets."""

    def write(self, connection: int, buffers: list[Buffer]) -> None:
        """Sends to a client, if it is still there."""
        ...

    def peer_of(self, connection: int) -> Peer:
        """Where a client connects from."""
        ...

    def allow(self, connection: int, frame_bytes: int) -> None:
        """Frames of a client may be so long from now on."""
        ...

    def refuse(self, connection: int, error: PenstockError, request_id: int) -> None:
        """Says what is wrong, and ends the connection."""
        ...

    def expect(self, connection: int) -> Callable[[], None]:
        """Ends the connection unless what is returned is called soon."""
        ...


class _Client:
    """One connection."""

    __slots__ = ("asked", "challenged", "ending", "guest", "name", "peer", "proof", "proven", "visit")

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.name = ""
        self.guest: Guest | None = None
        self.visit: Visit | None = None
        """None: a front end, of which nothing is asked and nothing recorded."""
        self.challenged: Challenged | None = None
        self.proven: Callable[[], None] | None = None
        self.proof = b""
        """What the welcome is to show."""
        self.asked: dict[int, Asked] = {}
        """By request id."""
        self.ending: dict[int, int] = {}
        """By the request id of an `Unsubscribe`: the subscription that has its last deliveries before the answer."""


class NativeDoor:
    """See `Inside`: it is one to the sockets, and hands on to another."""

    def __init__(
        self,
        reception: Reception,
        permissions: Permissions,
        limits: NativeLimits,
        record: NativeRecord,
        metadata: MetadataCache,
        outside: Outside,
        now_ms: Callable[[], int],
    ) -> None:
        self._reception = reception
        self._permissions = permissions
        self._limits = limits
        self._record = record
        self._outside = outside
        self._now_ms = now_ms
        self._clients: dict[int, _Client] = {}
        self.inside: Inside
        """Whoever is behind it; set before the first connection."""
        metadata.listen(USERS, self._users_changed)
        metadata.listen(KEYS, self._users_changed)
        metadata.listen(QUEUES, self._queue_changed)

    @property
    def congested(self) -> bool:
        """Whether nobody is to be read from for the moment."""
        return self.inside.congested

    def connected(self, connection: int) -> None:
        """A client has connected."""
        self._clients[connection] = _Client(self._outside.peer_of(connection))
        if not self._reception.is_open:
            self._outside.allow(connection, GREETING_BYTES)
        self.inside.connected(connection)

    def behind(self, connection: int) -> None:
        """A client does not read what it is sent."""
        self.inside.behind(connection)

    def caught_up(self, connection: int) -> None:
        """A client has read what it was sent."""
        self.inside.caught_up(connection)

    def disconnected(self, connection: int) -> None:
        """A client is gone."""
        client = self._clients.pop(connection)
        if client.proven is not None:
            client.proven()
        self.inside.disconnected(connection)
        session = client.visit.session if client.visit is not None else None
        for asked in client.asked.values():
            self._record.abandoned(asked, session, client.peer.address)

    # -- requests --------------------------------------------------------------------------------------------

    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
        """Whole frames arrived."""
        client = self._clients.get(connection)
        if client is None:
            return
        if client.guest is not None and client.visit is None:
            self.inside.handle(connection, frames)
            return
        now_ms, admit = self._now_ms(), self._admit
        passed = [admit(connection, client, frame, now_ms) for frame in frames]
        admitted = [frame for frame in passed if frame is not None]
        if admitted:
            self.inside.handle(connection, admitted)

    def _admit(self, connection: int, client: _Client, frame: Frame, now_ms: int) -> Frame | None:
        """What is handed on of a frame."""
        visit = client.visit
        if visit is None:
            if client.guest is not None:
                return frame
            self._greet(connection, client, frame, now_ms)
            return None
        request: messages.Request | None
        try:
            request = messages.decode_request(frame.head)
        except msgspec.DecodeError:  # whoever is inside says what is wrong with it
            request = None
        rule = RULES[type(request)] if request is not None else _UNREADABLE
        if frame.request_id in client.asked and not isinstance(request, messages.AddCredit):
            # Two answers under one id could not be told apart: one of the two would go on without a row.
            in_use = PenstockError(ErrorCode.BAD_REQUEST, f"request id {frame.request_id} is in use")
            asked = self._asked(frame, rule.recorded_as or UNREADABLE, "", now_ms)
            self._refuse(connection, client, frame.request_id, asked, in_use, now_ms)
            return None
        if request is None:
            client.asked[frame.request_id] = self._asked(frame, UNREADABLE, "", now_ms)
            return frame
        if not rule.recorded_as:
            return frame if self._flows(connection, client, frame.request_id, request, now_ms) else None
        queue = ""
        try:
            queue = self._permissions.check(visit, rule, request, now_ms)
            self._limits.check(visit.session.user, rule, request, frame, now_ms)
        except PenstockError as error:
            about = error.queue if isinstance(error, AccessDeniedError) else queue
            asked = self._asked(frame, rule.recorded_as, about, now_ms)
            self._refuse(connection, client, frame.request_id, asked, error, now_ms)
            return None
        request_id, head, body = frame
        client.asked[request_id] = self._record.asked(
            rule.recorded_as,
            queue,
            len(head) + len(body),
            now_ms,
            request.queue_id if isinstance(request, messages.Subscribe) else 0,
        )
        if isinstance(request, messages.LocateLog):
            return _rewritten(frame, _with_holder(visit, request, client.asked[request_id]))
        if rule.about is About.ALL:
            return _rewritten(frame, self._permissions.narrowed(visit, request))
        return frame

    def _flows(
        self, connection: int, client: _Client, request_id: int, request: messages.Request, now_ms: int
    ) -> bool:
        """What keeps a conversation going; a subscription goes on as long as its user may receive."""
        if isinstance(request, messages.Unsubscribe):
            asked = client.asked.get(request.subscription)
            if asked is not None and subscription_of(asked):
                client.ending[request_id] = request.subscription
        elif isinstance(request, messages.AddCredit):
            asked = client.asked.get(request.subscription)
            queue_id = subscription_of(asked) if asked is not None else 0
            if queue_id and client.visit is not None:
                try:
                    self._permissions.recheck(client.visit, _SUBSCRIBE, queue_id, now_ms)
                    self._limits.charge_credit(client.visit.session.user, queue_id, request.messages, now_ms)
                except PenstockError as error:
                    self._end_subscription(connection, client, request.subscription, error, now_ms)
                    return False
        return True

    def _end_subscription(
        self, connection: int, client: _Client, request_id: int, error: PenstockError, now_ms: int
    ) -> None:
        ending = messages.encode_message(messages.Unsubscribe(request_id))
        self._refuse(connection, client, request_id, client.asked.pop(request_id), error, now_ms)
        # Its `Done` carries the same id, which nobody waits for any more.
        self.inside.handle(connection, (Frame(request_id, memoryview(ending), _NOTHING),))

    def _refuse(
        self,
        connection: int,
        client: _Client,
        request_id: int,
        asked: Asked,
        error: PenstockError,
        now_ms: int,
    ) -> None:
        failed = messages.Failed(error.code, error.message)
        head = messages.encode_message(failed)
        session = client.visit.session if client.visit is not None else None
        self._record.answered(asked, session, client.peer.address, failed, len(head), now_ms)
        self._outside.write(connection, encode_frame(request_id, head))

    def _asked(self, frame: Frame, action: str, queue: str, now_ms: int) -> Asked:
        return self._record.asked(action, queue, len(frame.head) + len(frame.body), now_ms)

    # -- greetings -------------------------------------------------------------------------------------------

    def _greet(self, connection: int, client: _Client, frame: Frame, now_ms: int) -> None:
        if connection not in self._clients:
            return  # refused for what came before in the same bytes
        said = read_greeting(frame.head)
        if said is None or (isinstance(said, Prove) and client.challenged is None):
            client.proven = client.proven or self._outside.expect(connection)
            self.inside.handle(connection, (frame,))  # which says that one greets first
            return
        asked = self._asked(frame, CONNECTED, "", now_ms)
        try:
            if isinstance(said, Prove):
                assert client.challenged is not None
                guest = self._reception.prove(client.challenged, said.proof, client.peer.address, now_ms)
                hello = client.challenged.hello
            else:
                outcome = self._reception.greet(said)
                if isinstance(outcome, Challenged):
                    client.challenged = outcome
                    client.proven = client.proven or self._outside.expect(connection)
                    head = messages.encode_message(messages.Challenge(outcome.nonce))
                    self._outside.write(connection, encode_frame(frame.request_id, head))
                    return
                guest, hello = outcome, said
        except PenstockError as error:
            failed = messages.Failed(error.code, error.message)
            self._record.answered(asked, None, client.peer.address, failed, 0, now_ms)
            self._outside.refuse(connection, error, frame.request_id)
            return
        self._let_in(connection, client, guest, hello)
        if client.visit is not None:
            client.asked[frame.request_id] = asked
        plain = messages.encode_message(messages.Hello(hello.versions, hello.client))
        self.inside.handle(connection, (Frame(frame.request_id, memoryview(plain), _NOTHING),))

    def _let_in(self, connection: int, client: _Client, guest: Guest, hello: messages.Hello) -> None:
        client.guest, client.challenged, client.name = guest, None, hello.client
        client.proof = guest.proof
        self._outside.allow(connection, FRAME_BYTES)
        if client.proven is not None:
            client.proven()
            client.proven = None
        if guest.session is not None:
            client.visit = Visit(guest.session, client.peer, hello.client)

    # -- answers ---------------------------------------------------------------------------------------------

    def write(self, connection: int, buffers: list[Buffer]) -> None:
        """What whoever is inside has for a client: it leaves when it is on record."""
        client = self._clients.get(connection)
        if client is not None:
            if client.asked:
                self._answered(client, buffers)
            if client.proof:
                buffers = self._with_proof(client, buffers)
        self._outside.write(connection, buffers)

    def _answered(self, client: _Client, buffers: list[Buffer]) -> None:
        asked_by_id = client.asked
        session, now_ms = client.visit.session if client.visit is not None else None, self._now_ms()
        for request_id, head, bytes_out in frames_in(buffers):
            asked = asked_by_id.get(request_id)
            if asked is None:
                if request_id in client.ending:
                    asked_by_id.pop(client.ending.pop(request_id), None)
                continue
            answer = messages.decode_answer(head)
            if not subscription_of(asked) or isinstance(answer, messages.Failed):
                del asked_by_id[request_id]
            self._record.answered(asked, session, client.peer.address, answer, bytes_out, now_ms)

    def _with_proof(self, client: _Client, buffers: list[Buffer]) -> list[Buffer]:
        """The welcome, with what the client asked for in turn; it is the first that is answered."""
        proof, client.proof = client.proof, b""
        request_id, head, _ = next(frames_in(buffers))
        answer = messages.decode_answer(head)
        if not isinstance(answer, messages.Welcome):
            return buffers
        welcome = msgspec.structs.replace(answer, proof=proof)
        return [*encode_frame(request_id, messages.encode_message(welcome)), *buffers[1:]]

    # -- changes ---------------------------------------------------------------------------------------------

    def _users_changed(self, change: Change) -> None:
        """Who is no longer a user leaves; the others may do other things than before, perhaps."""
        for connection, client in list(self._clients.items()):
            if client.guest is None:
                continue
            try:
                client.guest = guest = self._reception.review(client.guest)
            except PenstockError as error:
                self._outside.refuse(connection, error, 0)
                continue
            if (
                guest.session is not None
                and client.visit is not None
                and client.visit.session is not guest.session
            ):
                client.visit = Visit(guest.session, client.peer, client.name)
                self._review_subscriptions(connection, client, client.visit)

    def _queue_changed(self, change: Change) -> None:
        for connection, client in list(self._clients.items()):
            if client.visit is not None:
                client.visit.rulings.clear()
                self._review_subscriptions(connection, client, client.visit)

    def _review_subscriptions(self, connection: int, client: _Client, visit: Visit) -> None:
        """Ends those that are allowed no longer: one with much credit would not ask for more for a long time."""
        subscribed = [
            (number, queue) for number, asked in client.asked.items() if (queue := subscription_of(asked))
        ]
        for request_id, queue_id in subscribed:
            try:
                self._permissions.recheck(visit, _SUBSCRIBE, queue_id, self._now_ms())
            except AccessDeniedError as error:
                self._end_subscription(connection, client, request_id, error, self._now_ms())


def _rewritten(frame: Frame, request: messages.Request) -> Frame:
    return Frame(frame.request_id, memoryview(messages.encode_message(request)), frame.body)


def _with_holder(visit: Visit, request: messages.LocateLog, asked: Asked) -> messages.LocateLog:
    """Says who asks, so that the node can record what is read with the ticket; it knows no users."""
    holder = (
        encode_holder(Holder(visit.session.account, visit.session.user, queue_of(asked)))
        if leaves_rows(asked)
        else b""
    )
    return msgspec.structs.replace(request, holder=holder)
