"""One request from its arrival to its answer and its usage row. `_steps` is the list of its steps."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from penstock.frontend.actions.table import ACTIONS, ActionRow
from penstock.frontend.authorize import authorize, is_allowed_alone
from penstock.frontend.batching.outgoing_batch import deduplication_scope
from penstock.frontend.context import Context
from penstock.frontend.queues.metadata import PREFIX as QUEUES
from penstock.frontend.queues.metadata import key_of
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.frontend.services import Services
from penstock.frontend.session import Session
from penstock.frontend.targets import Target, Targets, Use
from penstock.frontend.usage.record_usage import (
    CANCELLED,
    CANCELLED_STATUS,
    NOBODY,
    SUCCEEDED,
    asked_action,
    messages_in,
)
from penstock.metadata.store.interface import Change, StoreUnavailableError, VersionConflictError
from penstock.model.errors import ErrorCode, PenstockError
from penstock.sqs.attributes.queue_attributes import DeduplicationScope
from penstock.sqs.call import Call, read_call
from penstock.sqs.errors import SqsError
from penstock.sqs.model_errors import sqs_error_of
from penstock.sqs.names import QueueArn
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from penstock.sqs.protocols.protocol import Protocol, answer, protocol_of, refusal
from penstock.sqs.refusals import internal_failure, queue_does_not_exist, service_unavailable
from penstock.steps.runner import StepRunner
from penstock.steps.step import Steps
from penstock.usage.event import Row, UsageEvent, usage_row

logger = logging.getLogger(__name__)

TRACE_HEADER = "x-amzn-trace-id"

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_HOST_CHARACTERS = 260

Found = tuple[ResolvedQueue | None, ...]


class Pipeline:
    """The state of one request until it is answered."""

    __slots__ = (
        "_action",
        "_call",
        "_found",
        "_front",
        "_now_ms",
        "_peer",
        "_protocol",
        "_reply",
        "_request",
        "_request_id",
        "_runner",
        "_session",
        "_started_us",
        "_targets",
        "_wall_ms",
        "_worked_on",
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
        self._wall_ms = 0
        self._request_id = front.request_ids.next()
        self._protocol = Protocol.NONE
        self._session: Session | None = None
        self._call: Call | None = None
        self._action: ActionRow | None = None
        self._targets: Targets = ()
        self._worked_on: Target | None = None
        """The first of the targets, where the action works on it."""
        self._found: Found = ()
        """The queues of the targets, as far as they exist."""
        self._runner: StepRunner[None, int] | None = None

    def run(self) -> Callable[[], None] | None:
        """Runs as far as possible at once; returns how to cancel a request that waits.

        Nothing else can be cancelled: other requests take hardly any time, and a client that half-closes its connection
        after a request still wants the answer.
        """
        runner = self._runner = StepRunner(self._steps(), self._front.world, self._ended)
        runner.start()
        action = self._action
        return self._cancel if action is not None and action.may_wait else None

    # -- the steps -------------------------------------------------------------------------------------------

    def _steps(self) -> Steps[None]:
        """The steps of a request, in their order."""
        result: Any
        try:
            session = self._authenticate()
            call = self._validate(session)
            gone: ResolvedQueue | None = None
            while True:
                found = self._remembered() or (yield from self._resolve(gone))
                self._authorize(session, call, found, self._now_ms)
                self._throttle(session, call, found, gone)
                scope = deduplication_scope(found[0])
                try:
                    result = yield from self._dispatch(session, call, found, scope)
                    break
                except PenstockError as error:
                    gone = self._made_again(error, gone)
        except Exception as error:
            result = error
        self._record_usage(result)
        # An error knows the frames that it came through, of which this is one: the request would stay until cycles are collected.
        del result

    def _authenticate(self) -> Session:
        """Identifies the caller. It comes before `validate`, which costs more than refusing an unknown caller."""
        front, request = self._front, self._request
        self._protocol = protocol_of(request)
        self._wall_ms = front.wall_ms()
        session = self._session = front.authenticator.authenticate(
            request, self._peer.address, self._wall_ms, self._now_ms
        )
        return session

    def _validate(self, session: Session) -> Call:
        """Which action it asks for, with which parameters, and so which queues it needs."""
        front = self._front
        try:
            call = self._call = read_call(self._request, self._protocol)
        except SqsError:
            front.throttle.admit(session.user, None, 1, self._now_ms)
            raise
        action = self._action = ACTIONS[call.action.name]
        targets = self._targets = action.targets(front.home, call, session)
        if targets[0].use is Use.WORKS_ON:
            self._worked_on = targets[0]
        return call

    def _remembered(self) -> tuple[ResolvedQueue] | None:
        """The only queue of most requests, where it is known from requests before."""
        target = self._worked_on
        if target is None:
            return None
        queue = self._front.queues.remembered(target.native_name, self._now_ms)
        if queue is None:
            return None
        found = self._found = (queue,)
        return found

    def _resolve(self, gone: ResolvedQueue | None) -> Steps[Found]:
        """The queues that the action needs; `gone`: the one that had the name before, and is no longer there."""
        found: Found = ()
        for target in self._targets:
            queue = None if target.use is Use.NAMES else (yield from self._look_up(target))
            found = (*found, queue)
        self._found = found
        if gone is not None and found[0] is not None and found[0].queue_id == gone.queue_id:
            raise queue_does_not_exist()
        return found

    def _look_up(self, target: Target) -> Steps[ResolvedQueue | None]:
        directory = self._front.queues
        # The queue is read again for actions that describe it: the cached one may be outdated.
        look_up = directory.resolve if target.use is Use.WORKS_ON else directory.fresh
        try:
            return (yield from look_up(target.native_name, self._now_ms))
        except PenstockError as error:
            if error.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
            return None

    def _authorize(self, session: Session, call: Call, found: Found, now_ms: int) -> None:
        """Raises unless the caller may do it. A caller that may not ask gets the same answer whether the queue exists or not."""
        if not session.unrestricted:
            for target, queue in zip(self._targets, found, strict=True):
                arn, policy = (target.arn, None) if queue is None else (queue.arn, queue.policy)
                rights = target.rights or (call.action.name,)
                authorize(session, call.action.name, rights, arn, policy, self._peer, now_ms, self._agent())

    def _throttle(self, session: Session, call: Call, found: Found, gone: ResolvedQueue | None) -> None:
        """Raises if a limit is used up. A request that is repeated has been charged already."""
        throttle, target = self._front.throttle, self._worked_on
        if gone is None and not throttle.is_idle:
            queue = target.native_name if target is not None and found[0] is not None else None
            throttle.admit(session.user, queue, call.entries if target is not None else 1, self._now_ms)

    def _dispatch(self, session: Session, call: Call, found: Found, scope: DeduplicationScope) -> Steps[Any]:
        """The function of the action is next."""
        front, action, queue = self._front, ACTIONS[call.action.name], None
        if self._worked_on is not None:
            queue = found[0]
            if queue is None:
                raise queue_does_not_exist()
        if action.may_wait:
            front.waiting.add(self)
        return action.carry_out(
            Context(
                call=call,
                session=session,
                resolved=queue,
                deduplication_scope=scope,
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
        )

    def _made_again(self, error: PenstockError, gone: ResolvedQueue | None) -> ResolvedQueue:
        """The queue that is gone, where another may have been made in its place unknown to us; else raises."""
        target = self._worked_on
        queue = self._found[0] if target is not None else None
        if error.code is not ErrorCode.QUEUE_NOT_FOUND or target is None or queue is None or gone is not None:
            raise error
        self._front.queues.forget(target.native_name)
        return queue

    def _record_usage(self, result: Any) -> None:
        """The answer, and the row that has to be on record before it leaves."""
        call = self._call
        error = self._refusal_of(result) if isinstance(result, Exception) else None
        response: HttpResponse | None = None
        if error is None and call is not None:
            try:
                response = answer(self._protocol, call.action, result, self._request_id)
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

    # -- what steps ask ------------------------------------------------------------------------------------

    def _agent(self) -> str | None:
        return self._request.headers.get("user-agent")

    def _may(self, action: str, arn: QueueArn) -> bool:
        """Of a queue that is missing, so that it has no policy."""
        session = self._session
        return session is not None and is_allowed_alone(
            session, action, arn, self._peer, self._now_ms, self._agent()
        )

    def _endpoint(self) -> str:
        if self._front.public_url:
            return self._front.public_url
        host = self._request.headers.get("host", "")
        if len(host) > _HOST_CHARACTERS:
            host = ""
        return _endpoint_of(host, self._front.address, self._peer.secure)

    def _row(self, result: Any, outcome: str, status: int, answer_bytes: int) -> Row:
        """The usage row; its bytes are those on the wire without headers."""
        call, session, body = self._call, self._session, self._request.body
        target = self._worked_on
        return usage_row(
            UsageEvent(
                time_ms=self._now_ms,
                account=session.account if session is not None else "",
                user=session.user if session is not None else NOBODY,
                address=self._peer.address,
                action=call.action.name if call is not None else asked_action(self._request, self._protocol),
                queue=target.arn_text if target is not None else "",
                messages=messages_in(call, result) if outcome == SUCCEEDED and call is not None else 0,
                bytes_in=len(body),
                bytes_out=answer_bytes,
                outcome=outcome,
                status=status,
                latency_us=self._front.timer_us() - self._started_us,
                request_id=self._request_id,
            )
        )

    def _refusal_of(self, raised: Exception) -> SqsError:
        match raised:
            case SqsError():
                return raised
            case PenstockError():
                target = self._worked_on
                if raised.code is ErrorCode.QUEUE_NOT_FOUND and target is not None:
                    self._front.queues.forget(target.native_name)
                return sqs_error_of(raised)
            case VersionConflictError():
                return service_unavailable("Other requests are changing the same queue. Please try again.")
            case StoreUnavailableError():
                logger.warning("the metadata store is not available: %(error)s", {"error": raised})
                return service_unavailable()
            case _:
                logger.error(
                    "request %(request)s failed: this is a defect of Penstock; please report it with what follows",
                    {"request": self._request_id},
                    exc_info=raised,
                )
                return internal_failure()

    # -- a request that waits, and its end -------------------------------------------------------------------

    def stop_waiting(self) -> None:
        """See `PendingReceive`."""
        if self._runner is not None:
            self._runner.stop_waiting()

    def review(self, change: Change) -> None:
        """See `Waiter`. A result that comes for a refused request is returned."""
        error = self._why_not(change)
        if error is not None and self._given_up():
            self._record_usage(error)

    def _why_not(self, change: Change) -> Exception | None:
        """Why a waiting request must be refused, after users or a queue's metadata have changed; None: it may continue."""
        call, session, front = self._call, self._session, self._front
        queue = self._found[0] if self._found else None
        if call is None or session is None or queue is None:
            return None
        if change.key.startswith(QUEUES) and (
            change.value is None or change.key != key_of(queue.native_name)
        ):
            return None  # another queue's, or the queue is deleted, which the engine reports
        try:
            session = self._session = front.authenticator.review(self._request, session, self._wall_ms)
            policy = front.queues.policy_of(queue.native_name, queue.queue_id)
            now = msgspec.structs.replace(queue, policy=policy)
            self._authorize(session, call, (now,), front.now_ms())
        except Exception as error:
            return error
        return None

    def _cancel(self) -> None:
        if self._given_up():
            self._front.answers.note(self._row(None, CANCELLED, CANCELLED_STATUS, 0))

    def _given_up(self) -> bool:
        """Whether there was a step to abandon. Its result is returned when it comes."""
        runner = self._runner
        if runner is None:
            return False
        self._ended(None)
        runner.abandon()
        return True

    def _ended(self, result: Exception | None) -> None:
        self._runner = None
        if self._action is not None and self._action.may_wait:
            self._front.waiting.discard(self)
        if result is not None:
            raise result


@lru_cache(maxsize=1024)
def _endpoint_of(host: str, address: str, secure: bool) -> str:
    """The beginning of queue URLs: the host that the client named, if it is valid."""
    return f"{'https' if secure else 'http'}://{host if _HOST.fullmatch(host) else address}"
