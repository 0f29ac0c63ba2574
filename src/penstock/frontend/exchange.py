"""One request on its way through the pipeline, from its arrival to the answer and the usage it leaves behind."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from penstock.frontend.authorize import authorize, is_allowed_alone, move_permissions
from penstock.frontend.context import Context
from penstock.frontend.conversation import Conversation
from penstock.frontend.dispatch import FUNCTIONS
from penstock.frontend.queue_metadata import PREFIX as QUEUES
from penstock.frontend.queue_metadata import key_of
from penstock.frontend.record_usage import CANCELLED, CANCELLED_STATUS, NOBODY, SUCCEEDED, messages_in
from penstock.frontend.resolve import Place, native_name_of, place_of
from penstock.frontend.resolved_queue import ResolvedQueue
from penstock.frontend.services import Services
from penstock.frontend.session import Session
from penstock.frontend.steps import Steps
from penstock.frontend.validate import asked_action, validate
from penstock.metadata.store.interface import Change, StoreUnavailableError, VersionConflictError
from penstock.model.errors import ErrorCode, PenstockError
from penstock.sqs.answers import answer, refusal
from penstock.sqs.call import Call
from penstock.sqs.errors import SqsError
from penstock.sqs.http import HttpRequest, HttpResponse, Peer
from penstock.sqs.model_errors import sqs_error_of
from penstock.sqs.names import QueueArn
from penstock.sqs.policy import Policy
from penstock.sqs.protocol import Protocol, protocol_of
from penstock.sqs.refusals import internal_failure, queue_does_not_exist, service_unavailable
from penstock.usage.event import Row

log = logging.getLogger(__name__)

TRACE_HEADER = "x-amzn-trace-id"
RECEIVE = "ReceiveMessage"

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_HOST_CHARACTERS = 260


class Exchange:
    """Everything one request needs to remember until it is answered."""

    __slots__ = (
        "_call",
        "_conversation",
        "_front",
        "_now_ms",
        "_peer",
        "_place",
        "_protocol",
        "_queue",
        "_reply",
        "_request",
        "_request_id",
        "_session",
        "_started_us",
        "_wall_ms",
        "_works_on",
    )

    def __init__(
        self, front: Services, request: HttpRequest, peer: Peer, reply: Callable[[HttpResponse], None]
    ) -> None:
        self._front = front
        self._request = request
        self._peer = peer
        self._reply = reply
        self._started_us = front.timer_us()
        self._now_ms = front.now_ms()
        self._request_id = front.request_ids.next()
        self._protocol = Protocol.NONE
        self._call: Call | None = None
        self._session: Session | None = None
        self._place: Place | None = None
        self._queue: ResolvedQueue | None = None
        """What the action works on, until it is tried once more."""
        self._works_on: ResolvedQueue | None = None
        self._wall_ms = 0
        self._conversation: Conversation | None = None

    def run(self) -> Callable[[], None] | None:
        """Goes as far as is possible at once; returns how to cancel a receive that is still under way.

        Nothing else can be cancelled: it takes no time to speak of, and who half-closes its connection after a
        request still wants the answer.
        """
        front, request = self._front, self._request
        try:
            self._protocol = protocol_of(request)
            self._wall_ms = front.wall_ms()
            session = self._session = front.authenticator.authenticate(
                request, self._peer.address, self._wall_ms, self._now_ms
            )
            try:
                call = self._call = validate(request, self._protocol)
            except SqsError:
                front.throttle.admit(session.user, None, 1, self._now_ms)
                raise
            place = self._place = place_of(front.home, call, session)
            if place is not None:
                steps = self._on_queue(call, session, place)
            else:
                steps = self._on_none(call, session)
        except Exception as error:
            self._ended(None, error)
            return None
        self._carry_out(steps)
        return self._cancel if call.action.name == RECEIVE else None

    def _carry_out(self, steps: Steps[Any]) -> None:
        conversation = self._conversation = Conversation(self._front, steps, self._ended, self._why_not)
        conversation.start()

    def _cancel(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            conversation.cancel()
            self._front.answers.note(self._row(None, CANCELLED, CANCELLED_STATUS, 0))

    def _why_not(self, change: Change) -> Exception | None:
        """Why a receive that waits must be refused, now that users or a queue's metadata have changed; None: it may go on."""
        call, session, queue, front = self._call, self._session, self._works_on, self._front
        if call is None or session is None or queue is None:
            return None
        if change.key.startswith(QUEUES) and (
            change.value is None or change.key != key_of(queue.native_name)
        ):
            return None  # another queue's, or the queue is deleted, which the engine tells
        try:
            self._session = session = front.authenticator.review(self._request, session, self._wall_ms)
            policy = front.queues.policy_of(queue.native_name, queue.queue_id)
            authorize(call, self._request, session, queue.arn, policy, self._peer, front.now_ms())
        except Exception as error:
            return error
        return None

    # -- the steps -------------------------------------------------------------------------------------------

    def _on_none(self, call: Call, session: Session) -> Steps[Any]:
        """An action on no queue that it names as one."""
        permissions = move_permissions(call)
        if permissions:
            return self._on_move(call, session, permissions)
        authorize(call, self._request, session, None, None, self._peer, self._now_ms)
        self._front.throttle.admit(session.user, None, 1, self._now_ms)
        return FUNCTIONS[call.action.name](self._context(call, session, None))

    def _on_move(self, call: Call, session: Session, permissions: list[tuple[str, QueueArn]]) -> Steps[Any]:
        """An action on a message move task: the policies of its queues have their say too."""
        for action, arn in permissions:
            policy = yield from self._policy_of(arn)
            authorize(call, self._request, session, arn, policy, self._peer, self._now_ms, action)
        self._front.throttle.admit(session.user, None, 1, self._now_ms)
        return (yield from FUNCTIONS[call.action.name](self._context(call, session, None)))

    def _policy_of(self, arn: QueueArn) -> Steps[Policy | None]:
        try:
            # As it is now: what is remembered may be another queue's, which had the name before.
            queue = yield from self._front.queues.fresh(native_name_of(self._front.home, arn), self._now_ms)
        except PenstockError as error:
            if error.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
            return None  # who may ask is told by the action
        return queue.policy

    def _on_queue(self, call: Call, session: Session, place: Place) -> Steps[Any]:
        """An action on a queue; most are known, and then its steps are all there is."""
        queue = self._front.queues.remembered(place.native_name, self._now_ms)
        if queue is None:
            return self._on_resolved(call, session, place)
        return self._on_known(call, session, place, queue)

    def _on_resolved(self, call: Call, session: Session, place: Place) -> Steps[Any]:
        queue = yield from self._resolve(call, session, place)
        return (yield from self._on_known(call, session, place, queue))

    def _on_known(self, call: Call, session: Session, place: Place, queue: ResolvedQueue) -> Steps[Any]:
        front, now_ms = self._front, self._now_ms
        authorize(call, self._request, session, queue.arn, queue.policy, self._peer, now_ms)
        if not front.throttle.is_idle:
            front.throttle.admit(session.user, place.native_name, call.entries, now_ms)
        self._queue = self._works_on = queue
        return FUNCTIONS[call.action.name](self._context(call, session, queue))

    def _once_more(self, gone: ResolvedQueue) -> Steps[Any]:
        """The same action, where the queue was made anew behind our back."""
        call, session, place = self._call, self._session, self._place
        assert call is not None
        assert session is not None
        assert place is not None
        self._front.queues.forget(place.native_name)
        queue = yield from self._resolve(call, session, place)
        if queue.queue_id == gone.queue_id:
            raise queue_does_not_exist()
        authorize(call, self._request, session, queue.arn, queue.policy, self._peer, self._now_ms)
        self._works_on = queue
        return (yield from FUNCTIONS[call.action.name](self._context(call, session, queue)))

    def _resolve(self, call: Call, session: Session, place: Place) -> Steps[ResolvedQueue]:
        try:
            return (yield from self._front.queues.resolve(place.native_name, self._now_ms))
        except PenstockError as error:
            if error.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
        # Who may not ask gets the same answer whether there is such a queue or not.
        authorize(call, self._request, session, place.arn, None, self._peer, self._now_ms)
        self._front.throttle.admit(session.user, None, call.entries, self._now_ms)
        raise queue_does_not_exist()

    def _context(self, call: Call, session: Session, queue: ResolvedQueue | None) -> Context:
        front = self._front
        return Context(
            call=call,
            session=session,
            resolved=queue,
            now_ms=self._now_ms,
            endpoint=self._endpoint,
            trace_header=self._request.headers.get(TRACE_HEADER),
            compatibility=front.compatibility,
            home=front.home,
            queues=front.queues,
            metadata=front.metadata,
            may=self._may,
            token=front.token,
        )

    def _may(self, action: str, arn: QueueArn) -> bool:
        """Of a queue that is missing, so that it has no policy."""
        session = self._session
        return session is not None and is_allowed_alone(
            session, action, arn, self._peer, self._now_ms, self._request.headers.get("user-agent")
        )

    def _endpoint(self) -> str:
        if self._front.public_url:
            return self._front.public_url
        host = self._request.headers.get("host", "")
        if len(host) > _HOST_CHARACTERS:
            host = ""
        return _endpoint_of(host, self._front.address, self._peer.secure)

    # -- the end ---------------------------------------------------------------------------------------------

    def _ended(self, result: Any, raised: Exception | None) -> None:
        self._conversation = None
        error: SqsError | None = None
        if raised is not None:
            queue, self._queue = self._queue, None
            if queue is not None and _is_gone(raised):
                self._carry_out(self._once_more(queue))
                return
            error = self._refusal_of(raised)
        response: HttpResponse | None = None
        if error is None:
            assert self._call is not None
            try:
                response = answer(self._protocol, self._call.action, result, self._request_id)
            except Exception as defect:
                error = self._refusal_of(defect)
        if error is not None:
            response = refusal(self._protocol, error, self._request_id)
        assert response is not None
        outcome = SUCCEEDED if error is None else error.query_code
        row = self._row(result, outcome, response.status, len(response.body))
        answers = self._front.answers
        leave = answers.leave if self._session is not None else answers.leave_stranger
        leave(row, self._reply, response)

    def _row(self, result: Any, outcome: str, status: int, answer_bytes: int) -> Row:
        """What is recorded of it; bytes are what went over the wire without headers."""
        call, session, place, body = self._call, self._session, self._place, self._request.body
        return (
            self._now_ms,
            session.account if session is not None else "",
            session.user if session is not None else NOBODY,
            self._peer.address,
            call.action.name if call is not None else asked_action(self._request, self._protocol),
            place.arn_text if place is not None else "",
            messages_in(call, result) if outcome == SUCCEEDED and call is not None else 0,
            len(body),
            answer_bytes,
            outcome,
            status,
            self._front.timer_us() - self._started_us,
            self._request_id,
        )

    def _refusal_of(self, raised: Exception) -> SqsError:
        match raised:
            case SqsError():
                return raised
            case PenstockError():
                if raised.code is ErrorCode.QUEUE_NOT_FOUND and self._place is not None:
                    self._front.queues.forget(self._place.native_name)
                return sqs_error_of(raised)
            case VersionConflictError():
                return service_unavailable("Others change the same queue. Please try again.")
            case StoreUnavailableError():
                log.warning("the metadata store is not available: %s", raised)
                return service_unavailable()
            case _:
                log.error(
                    "request %s failed: this is a defect of Penstock; please report it with what follows",
                    self._request_id,
                    exc_info=raised,
                )
                return internal_failure()


def _is_gone(raised: Exception) -> bool:
    return isinstance(raised, PenstockError) and raised.code is ErrorCode.QUEUE_NOT_FOUND


@lru_cache(maxsize=1024)
def _endpoint_of(host: str, address: str, secure: bool) -> str:
    """What queue URLs begin with: the host that the client named, if that can be one."""
    return f"{'https' if secure else 'http'}://{host if _HOST.fullmatch(host) else address}"
