"""The guard of the native protocol: all requests of clients to the engine, and the answers, pass it.

It is between the sockets and the handler of requests (the driver of a node, or the gateway of a cluster), and has the
interface of one for the other. It authenticates users, passes on what they may do, refuses the rest, and records every
request. It passes frames on unchanged, except that it adds the user to requests for a ticket, and the owner to requests
for a list of queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from penstock.frontend.native.authentication import Authentication
from penstock.frontend.native.client import Client, EndedReceive
from penstock.frontend.native.ended_receives import RECEIVES, without_ended
from penstock.frontend.native.greeter import Greeter, with_proof
from penstock.frontend.native.handing_on import handed_on
from penstock.frontend.native.limits import NativeLimits
from penstock.frontend.native.permissions import AccessDeniedError, Permissions, Visit, queue_ids_of
from penstock.frontend.native.record import Asked, NativeRecord, subscription_of
from penstock.frontend.native.rules import LOOKED_FOR, NO_RULE, RULES, UNREADABLE, About, Rule
from penstock.frontend.native.sides import Inside, KnowsAll, Learner, Look, Outside
from penstock.frontend.native.subscriptions import Subscriptions
from penstock.frontend.queues.metadata import PREFIX as QUEUES
from penstock.frontend.queues.metadata import key_of
from penstock.frontend.queues.onward_queues import onward_queues
from penstock.frontend.queues.unfinished_queues import note_of
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.store.interface import Change
from penstock.metadata.users.register import REGISTER_KEY
from penstock.metadata.users.users import KEYS, USERS
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.usage.event import Row
from penstock.wire import messages
from penstock.wire.frames import Frame, encode_frame, frames_in
from penstock.wire.messages import request_of

_NOTHING = memoryview(b"")
HELD_FRAMES = 100
"""The maximum of frames about a subscription that has not begun."""


class NativeGuard:
    """See `Inside`: it has this interface for the sockets, and passes requests on to another one."""

    def __init__(
        self,
        authentication: Authentication,
        permissions: Permissions,
        limits: NativeLimits,
        record: NativeRecord,
        metadata: MetadataCache,
        outside: Outside,
        look: Look,
        now_ms: Callable[[], int],
    ) -> None:
        self._greeter = Greeter(authentication, record, outside, now_ms)
        self._permissions = permissions
        self._limits = limits
        self._record = record
        self._outside = outside
        self._look = look
        self._now_ms = now_ms
        self._clients: dict[int, Client] = {}
        self._subscriptions = Subscriptions(
            permissions,
            limits,
            self._clients,
            now_ms,
            outside.later,
            self._end_subscription,
            self._end_receive,
        )
        self.inside: Inside
        """The handler of requests; set before the first connection."""
        self.learner: Learner = KnowsAll()
        """Looks up queues that are not known yet."""
        metadata.listen(USERS, self._users_changed)
        metadata.listen(KEYS, self._users_changed)
        metadata.listen(REGISTER_KEY, self._users_changed)
        metadata.listen(QUEUES, self._queue_changed)

    @property
    def congested(self) -> bool:
        """Whether no client may be read from at the moment."""
        return self.inside.congested

    def connected(self, connection: int) -> None:
        """A client has connected."""
        self._clients[connection] = Client(self._outside.peer_of(connection))
        self._greeter.connected(connection)
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
        for asked in client.asked.values():
            self._record.abandoned(asked, client.who)

    # -- requests --------------------------------------------------------------------------------------------

    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
        """Whole frames arrived."""
        client = self._clients.get(connection)
        if client is None:
            return
        if client.admitted is not None and client.visit is None:
            self.inside.handle(connection, frames)
            return
        now_ms, timer_us, admit = self._now_ms(), self._record.timer_us(), self._admit
        passed = [admit(connection, client, frame, now_ms, timer_us) for frame in frames]
        admitted = [frame for frame in passed if frame is not None]
        if admitted:
            self.inside.handle(connection, admitted)

    def _admit(
        self,
        connection: int,
        client: Client,
        frame: Frame,
        now_ms: int,
        timer_us: int,
        *,
        looked: bool = False,
    ) -> Frame | None:
        """The steps of one frame, in order; returns the frame to pass on.

        `looked`: the metadata that it depends on was just read.
        """
        visit = client.visit
        if visit is None:
            return self._authenticate(connection, client, frame)
        request: messages.Request | None = None
        rule, queue = NO_RULE, ""
        try:
            request = request_of(frame)  # nothing is handed on that was not judged
            rule = RULES[type(request)]
            client.check_is_free(frame.request_id, request)
            if not rule.recorded_as:
                return self._converse(connection, client, frame, request, now_ms)
            queue = self._permissions.check(visit, rule, request, now_ms)
            if not looked:
                self._limits.check(visit.session.user, rule, request, frame, now_ms)
        except PenstockError as error:
            refusal: PenstockError | None = error
            if request is not None and not looked:
                refusal = self._resolve(
                    connection, client, visit, rule, request, frame, error, now_ms, timer_us
                )
            if refusal is not None:
                about = refusal.queue if isinstance(refusal, AccessDeniedError) else queue
                asked = self._record.asked(rule.recorded_as or UNREADABLE, about, frame, now_ms, timer_us)
                self._refuse(connection, client, frame.request_id, asked, refusal, now_ms)
            del (
                refusal
            )  # it knows this frame, and with it the message: both would stay until cycles are collected
            return None
        self._note(client, visit, rule, request, queue, frame, now_ms, timer_us)
        if rule.about is About.NAME and not looked and (onward := onward_queues(request)):
            # Changes of these queues by another front end may not have been received here yet.
            again = partial(self._admit_again, connection, client, frame, now_ms, timer_us)
            self._look([key for name in onward for key in (note_of(name), key_of(name))], again)
            return None
        return handed_on(self._permissions, visit, rule, request, frame, client.asked[frame.request_id])

    def _authenticate(self, connection: int, client: Client, frame: Frame) -> Frame | None:
        """A frame of a client that was not admitted as a user."""
        if client.admitted is not None:
            return frame
        if connection in self._clients:  # else it was refused for an earlier frame in the same bytes
            self._greeter.greet(connection, client, frame, self.inside)
        return None

    def _converse(
        self, connection: int, client: Client, frame: Frame, request: messages.Request, now_ms: int
    ) -> Frame | None:
        """What keeps a conversation going, and is no action."""
        if client.held and (held := client.held.get(_subscription_of(request))) is not None:
            self._hold(connection, held, frame)
            return None
        flows = self._subscriptions.flows(connection, client, frame.request_id, request, now_ms)
        return frame if flows else None

    def _resolve(
        self,
        connection: int,
        client: Client,
        visit: Visit,
        rule: Rule,
        request: messages.Request,
        frame: Frame,
        error: PenstockError,
        now_ms: int,
        timer_us: int,
    ) -> PenstockError | None:
        """Looks up the queue of a request that was refused only because the queue is unknown; raises the refusal otherwise."""
        try:
            if not self._is_unheard(visit, rule, request, frame, error, now_ms):
                return error
        except PenstockError as limited:
            return limited
        client.asked[frame.request_id] = self._record.asked(rule.recorded_as, "", frame, now_ms, timer_us)
        client.held[frame.request_id] = []
        again = partial(self._admit_again, connection, client, frame, now_ms, timer_us)
        self.learner.learn(queue_ids_of(rule, request), again)
        return None

    def _note(
        self,
        client: Client,
        visit: Visit,
        rule: Rule,
        request: messages.Request,
        queue: str,
        frame: Frame,
        now_ms: int,
        timer_us: int,
    ) -> None:
        """It is under way: its row is written with its answer."""
        subscription = request.queue_id if isinstance(request, messages.Subscribe) else 0
        client.asked[frame.request_id] = self._record.asked(
            rule.recorded_as, queue, frame, now_ms, timer_us, subscription
        )
        if type(request) in RECEIVES:
            client.receives[frame.request_id] = queue_ids_of(rule, request)
        if visit.conditional:
            self._subscriptions.watch()

    def _admit_again(
        self,
        connection: int,
        client: Client,
        frame: Frame,
        now_ms: int,
        timer_us: int,
        error: PenstockError | None,
    ) -> None:
        """The metadata that a request depends on was read, or could not be."""
        if self._clients.get(connection) is not client:
            return
        asked = client.asked.pop(frame.request_id, None)
        if asked is None:
            return
        held = client.held.pop(frame.request_id, None)
        if error is not None:
            self._refuse(connection, client, frame.request_id, asked, error, self._now_ms())
        else:
            admitted = self._admit(connection, client, frame, now_ms, timer_us, looked=True)
            if admitted is not None:
                self.inside.handle(connection, (admitted,))
        if held:
            self.handle(connection, held)

    def _is_unheard(
        self,
        visit: Visit,
        rule: Rule,
        request: messages.Request,
        frame: Frame,
        error: PenstockError,
        now_ms: int,
    ) -> bool:
        """Whether a request is refused only because its queue is unknown here; another front end may have created it.

        Raises if the user asks too often: no user may cause an unlimited number of reads of the store.
        """
        if error.code is not ErrorCode.QUEUE_NOT_FOUND or type(request) not in LOOKED_FOR:
            return False
        if not self.learner.unheard(queue_ids_of(rule, request)):
            return False
        self._limits.check(visit.session.user, rule, request, frame, now_ms)
        return True

    def _hold(self, connection: int, held: list[Frame], frame: Frame) -> None:
        """Keeps frames about a subscription that is being looked up, until it has begun."""
        if len(held) >= HELD_FRAMES:
            too_many = PenstockError(ErrorCode.BAD_REQUEST, "wait for the subscription to begin")
            self._outside.refuse(connection, too_many, frame.request_id)
            return
        held.append(Frame(frame.request_id, memoryview(bytes(frame.head)), _NOTHING))

    def _end_subscription(
        self, connection: int, client: Client, request_id: int, error: PenstockError
    ) -> None:
        ending = messages.encode_message(messages.Unsubscribe(request_id))
        self._refuse(connection, client, request_id, client.asked[request_id], error, self._now_ms())
        # Its `Done` has the same id, which is in use until then; earlier deliveries are recorded.
        client.unrecorded[request_id] = request_id
        self.inside.handle(connection, (Frame(request_id, memoryview(ending), _NOTHING),))

    def _end_receive(self, connection: int, client: Client, request_id: int, error: PenstockError) -> None:
        """Ends a waiting receive; its client gets the reason in place of the empty answer."""
        del client.receives[request_id]
        client.ended[request_id] = EndedReceive(error)
        client.unrecorded[request_id] = 0  # the id is in use until the `Done` of this `Unsubscribe`, too
        ending = messages.encode_message(messages.Unsubscribe(request_id))
        self.inside.handle(connection, (Frame(request_id, memoryview(ending), _NOTHING),))

    def _refuse(
        self,
        connection: int,
        client: Client,
        request_id: int,
        asked: Asked,
        error: PenstockError,
        now_ms: int,
    ) -> None:
        failed = messages.Failed(error.code, error.message)
        head = messages.encode_message(failed)
        self._record.answered(asked, client.who, failed, len(head), now_ms)
        self._outside.write(connection, encode_frame(request_id, head))

    # -- answers ---------------------------------------------------------------------------------------------

    def write(self, connection: int, buffers: list[Buffer]) -> None:
        """Passes answers to a client, after their rows are recorded."""
        client = self._clients.get(connection)
        if client is not None:
            if client.ended:
                buffers = without_ended(client, buffers)
            if client.asked or client.unrecorded:
                self._answered(client, buffers)
            if client.proof:
                buffers = with_proof(client, buffers)
        self._outside.write(connection, buffers)

    def _answered(self, client: Client, buffers: list[Buffer]) -> None:
        """Records what is answered, all of it at once: a row by itself costs several times as much."""
        asked_by_id, who, row_of = client.asked, client.who, self._record.row
        now_ms, timer_us = self._now_ms(), self._record.timer_us()
        rows: list[Row] = []
        for request_id, head, bytes_out in frames_in(buffers):
            asked = asked_by_id.get(request_id)
            if asked is None:
                ended = client.unrecorded.pop(request_id, 0)
                if ended:
                    asked_by_id.pop(ended, None)
                continue
            answer = messages.decode_answer(head)
            if not subscription_of(asked) or isinstance(answer, messages.Failed):
                del asked_by_id[request_id]
                if client.receives:
                    client.receives.pop(request_id, None)
            elif isinstance(answer, messages.Done):  # receives that the guard ended have ended
                del asked_by_id[request_id]
                client.unrecorded.pop(request_id, None)
                continue
            row = row_of(asked, who, answer, bytes_out, now_ms, timer_us)
            if row is not None:
                rows.append(row)
        if rows:
            self._record.write(rows)

    # -- changes ---------------------------------------------------------------------------------------------

    def _users_changed(self, change: Change) -> None:
        """Disconnects clients that are no longer users; the others may have other rights now."""
        for connection, client in list(self._clients.items()):
            if client.admitted is None:
                continue
            try:
                client.admitted = admitted = self._greeter.authentication.review(client.admitted)
            except PenstockError as error:
                self._outside.refuse(connection, error, 0)
                continue
            if (
                admitted.session is not None
                and client.visit is not None
                and client.visit.session is not admitted.session
            ):
                visit = Visit(admitted.session, client.peer, client.name)
                client.visits(visit)
                self._subscriptions.review(connection, client, visit)

    def _queue_changed(self, change: Change) -> None:
        for connection, client in list(self._clients.items()):
            if client.visit is not None:
                client.visit.rulings.clear()
                self._subscriptions.review(connection, client, client.visit)


def _subscription_of(request: messages.Request) -> int:
    """The request that another one is about; 0: none."""
    return request.subscription if isinstance(request, messages.AddCredit | messages.Unsubscribe) else 0
