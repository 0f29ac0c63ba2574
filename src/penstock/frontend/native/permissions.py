"""The rights of a user of the native protocol: each request as actions of SQS on queues, decided by the same policies.

Decisions are remembered by user, action and queue until users, policies or queues' metadata change, so that a request
costs a lookup in a dictionary.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec

from penstock.frontend.authorize import may
from penstock.frontend.native.rules import WITH_A_MOVE, About, Rule
from penstock.frontend.queues.directory import QueueDirectory
from penstock.frontend.queues.native_names import DefaultAccount, arn_of
from penstock.frontend.queues.onward_queues import onward_queues, takes_from
from penstock.frontend.session import Session
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import QUEUE_NAME_CHARACTERS
from penstock.model.queue_owner import NOBODY, owner_of
from penstock.sqs.names import QueueArn
from penstock.sqs.protocols.http import Peer
from penstock.wire import messages

REMEMBERED = 10_000
_TOKEN_ID_BYTES = 8
_SEVERAL = ""
"""Stands for the queue of a request about several queues."""


class QueueNames(Protocol):
    """The engine's names of its queues, without a request to the engine."""

    def name_of(self, queue_id: int) -> str | None:
        """The name of a queue; None: there is none with this id."""
        ...

    def id_of(self, name: str) -> int | None:
        """The incarnation that has a name now."""
        ...

    def may_be_new(self, queue_id: int) -> bool:
        """Whether there may be a queue with this id that is not known here yet."""
        ...


class Ruling(NamedTuple):
    """A decision, and the queue's ARN for the usage record."""

    allowed: bool
    queue: str


class AccessDeniedError(PenstockError):
    """No policy allows a request; `queue` is the ARN of its queue."""

    def __init__(self, message: str, queue: str) -> None:
        super().__init__(ErrorCode.ACCESS_DENIED, message)
        self.queue = queue


_UNKNOWN = Ruling(True, "")
"""A queue that is not there: nothing can be done to it."""


_LISTS = Rule(About.ALL, "ListQueues", "", owner_only=True)
_LOOKS_UP = Rule(About.QUEUE_ID, "GetQueueAttributes", "")


class Visit:
    """The remembered decisions of one connection."""

    __slots__ = ("agent", "conditional", "peer", "rulings", "session")

    def __init__(self, session: Session, peer: Peer, agent: str) -> None:
        self.session = session
        self.peer = peer
        self.agent = agent
        self.rulings: dict[tuple[str, int], Ruling] = {}
        self.conditional = False
        """Whether something was decided that may be decided otherwise later, without a change of a policy."""


class Permissions:
    """Decides; owns no connection."""

    def __init__(self, home: DefaultAccount, queues: QueueDirectory, names: QueueNames) -> None:
        self._home = home
        self._queues = queues
        self._names = names

    def check(self, visit: Visit, rule: Rule, request: messages.Request, now_ms: int) -> str:
        """The ARN of the queue that a request is about, empty for none or several; raises `access-denied`, and
        `queue-not-found` for an id that no queue has."""
        # A rule says which fields its requests have (a test checks all of them); types cannot express this.
        match rule.about:
            case About.QUEUE_ID:
                ruling = self._demand_on_id(visit, rule, request.queue_id, now_ms)  # type: ignore[union-attr]
                if ruling is _UNKNOWN:
                    _check_may_guess(visit, request.queue_id)  # type: ignore[union-attr]
                if isinstance(request, messages.Send):
                    if request.internal and not visit.session.unrestricted:
                        raise AccessDeniedError("only Penstock itself may send this", ruling.queue)
                elif isinstance(request, messages.Redrive):
                    self._check_move(visit, rule, request, now_ms)
                return ruling.queue
            case About.RECEIPTS:
                return self._on_several(visit, rule, queue_ids_of(rule, request), now_ms)
            case About.NAME:
                return self._on_name(visit, rule, request, now_ms)
            case About.QUEUES:
                ids = queue_ids_of(rule, request)
                for queue_id in ids:
                    if self._names.name_of(queue_id) is None:
                        _check_may_guess(visit, queue_id)
                return self._on_several(visit, rule, ids, now_ms)
            case About.ALL:
                account = self._home.account
                if isinstance(request, messages.ListQueues):
                    account = owner_of(f"{request.prefix}x") or visit.session.account
                everything = QueueArn(self._home.region, account, "*")
                self._demand(visit, rule, self._decide(visit, rule, everything, None, now_ms))
                return ""
            case About.NOTHING:
                return ""

    def narrowed(self, visit: Visit, request: messages.Request) -> messages.Request:
        """The request to pass on for a request about all queues: a user sees the queues of its own account, as in SQS."""
        if (
            isinstance(request, messages.ListQueues | messages.DescribeNode)
            and not visit.session.unrestricted
        ):
            account = visit.session.account
            owners = [account, NOBODY] if account == self._home.account else [account]
            return msgspec.structs.replace(request, owners=owners)
        return request

    def recheck(self, visit: Visit, rule: Rule, queue_id: int, now_ms: int) -> None:
        """Raises where what was allowed once is no longer."""
        self._demand_on_id(visit, rule, queue_id, now_ms)

    # -- queues ----------------------------------------------------------------------------------------------

    def _on_id(self, visit: Visit, rule: Rule, queue_id: int, now_ms: int) -> Ruling:
        known = visit.rulings.get((rule.permission, queue_id))
        if known is not None:
            return known
        name = self._names.name_of(queue_id)
        if name is None:
            return _UNKNOWN
        return self._decide(visit, rule, self._arn(name), queue_id, now_ms, name)

    def _on_several(self, visit: Visit, rule: Rule, ids: set[int], now_ms: int) -> str:
        queue = _SEVERAL
        for queue_id in ids:
            queue = self._demand_on_id(visit, rule, queue_id, now_ms).queue
        return queue if len(ids) == 1 else _SEVERAL

    def _on_name(self, visit: Visit, rule: Rule, request: messages.Request, now_ms: int) -> str:
        name: str = request.name  # type: ignore[union-attr]  # as `check` says: its rule is about a name
        _check_length(visit, name)
        arn = self._arn(name)
        queue_id = self._names.id_of(name)
        self._demand(visit, rule, self._decide(visit, rule, arn, queue_id, now_ms, name))
        for target in onward_queues(request):
            self._check_onward(visit, arn, target, now_ms)
        return str(arn)

    def _check_onward(self, visit: Visit, arn: QueueArn, target: str, now_ms: int) -> None:
        """The targets of a queue's messages must be in its account; a missing target is created with the queue."""
        _check_length(visit, target)
        beside, target_id = self._arn(target), self._names.id_of(target)
        if not visit.session.unrestricted:
            if beside.account != arn.account:
                raise AccessDeniedError("a dead-letter queue belongs to the account of its queue", str(arn))
            if target_id is None:
                creates = Rule(About.NAME, "CreateQueue", "", owner_only=True)
                self._demand(visit, creates, self._decide(visit, creates, beside, None, now_ms))
        metadata = self._queues.metadata_by_name(target)
        if metadata is not None and metadata.queue_id != target_id:
            # Of another incarnation: of none that counts, unless it was made and is not known here yet.
            is_new = target_id is None and self._names.may_be_new(metadata.queue_id)
            metadata = metadata if is_new else None
        if metadata is not None and not takes_from(metadata.attributes, arn):
            raise AccessDeniedError(
                f"messages of {arn} would go to {beside}, whose RedriveAllowPolicy does not allow this queue as a source",
                str(arn),
            )
        if metadata is None and self._queues.is_unfinished(target, now_ms):
            raise AccessDeniedError(
                f"messages of {arn} would go to {beside}, which is being created: its RedriveAllowPolicy is not known yet; try again",
                str(arn),
            )

    def _check_move(self, visit: Visit, rule: Rule, request: messages.Redrive, now_ms: int) -> None:
        """A user who moves messages receives, deletes and sends."""
        for permission in WITH_A_MOVE:
            beside = rule._replace(permission=permission, owner_only=False)
            self._demand_on_id(visit, beside, request.queue_id, now_ms)
        if request.target is not None:
            _check_length(visit, request.target)
            sends = rule._replace(permission="SendMessage", owner_only=False)
            arn, target = self._arn(request.target), self._names.id_of(request.target)
            self._demand(visit, sends, self._decide(visit, sends, arn, target, now_ms, request.target))

    # -- decisions -------------------------------------------------------------------------------------------

    def _decide(
        self,
        visit: Visit,
        rule: Rule,
        arn: QueueArn,
        queue_id: int | None,
        now_ms: int,
        name: str = "",
    ) -> Ruling:
        session, lasting = visit.session, True
        caller = session.caller
        if session.unrestricted or (caller.root and caller.account == arn.account):
            allowed = True
        else:
            policy = None
            if queue_id is not None:
                policy = self._queues.policy_of(name, queue_id)
            lasting = not session.conditional and (policy is None or not policy.conditional)
            allowed = may(
                session,
                rule.permission,
                arn,
                policy,
                visit.peer,
                now_ms,
                visit.agent,
                owner_only=rule.owner_only,
            )
        ruling = Ruling(allowed, str(arn))
        if not lasting:
            visit.conditional = True
        elif queue_id is not None:
            if len(visit.rulings) >= REMEMBERED:
                visit.rulings.clear()
            visit.rulings[rule.permission, queue_id] = ruling
        return ruling

    def _demand_on_id(self, visit: Visit, rule: Rule, queue_id: int, now_ms: int) -> Ruling:
        ruling = self._on_id(visit, rule, queue_id, now_ms)
        if not ruling.allowed:
            self._demand(visit, rule, ruling, named=self._may_know(visit, queue_id, now_ms))
        return ruling

    def _may_know(self, visit: Visit, queue_id: int, now_ms: int) -> bool:
        """Whether a user may know what the queue of an id is called: by listing queues, or by looking this one up."""
        everything = QueueArn(self._home.region, visit.session.account, "*")
        return (
            self._decide(visit, _LISTS, everything, None, now_ms).allowed
            or self._on_id(visit, _LOOKS_UP, queue_id, now_ms).allowed
        )

    def _demand(self, visit: Visit, rule: Rule, ruling: Ruling, *, named: bool = True) -> None:
        """`named`: the user has named the queue itself, or may know its name."""
        if ruling.allowed:
            return
        # A client that tries many ids learns no names.
        is_neighbour = f":{visit.session.caller.account}:" in ruling.queue
        place = "this queue" if is_neighbour else "this queue of another account"
        if is_neighbour and named:
            place = ruling.queue
        raise AccessDeniedError(
            f"user {visit.session.user!r} may not do this: no policy allows sqs:{rule.permission} on {place}",
            ruling.queue,
        )

    def _arn(self, name: str) -> QueueArn:
        """Names that SQS cannot say belong to the account that they begin with, others to the server's own."""
        arn = arn_of(self._home, name)
        if arn is None and owner_of(name):
            account, region, rest = name.split(".", 2)
            if (account, region) != self._home:
                return QueueArn(region, account, rest)
        return arn or QueueArn(self._home.region, self._home.account, name)


def queue_ids_of(rule: Rule, request: messages.Request) -> set[int]:
    """Which queues a request names by id, itself or in its receipts."""
    # Types are ignored as in `Permissions.check`: a rule says which fields its requests have.
    match rule.about:
        case About.QUEUE_ID:
            return {request.queue_id}  # type: ignore[union-attr]  # as said above
        case About.RECEIPTS:
            return {
                int.from_bytes(receipt.token[:_TOKEN_ID_BYTES], "little")
                for receipt in request.receipts  # type: ignore[union-attr]  # as said above
            }
        case About.QUEUES:
            return {queue.queue_id for queue in request.queues}  # type: ignore[union-attr]  # as said above
        case _:
            return set()


def _check_length(visit: Visit, name: str) -> None:
    """Decisions are remembered by name: clients must not be able to fill the memory with names of queues that do not exist."""
    if len(name) > QUEUE_NAME_CHARACTERS and not visit.session.unrestricted:
        raise AccessDeniedError(f"no queue has a name of {len(name)} characters", "")


def _check_may_guess(visit: Visit, queue_id: int) -> None:
    """There is no such queue yet; when the engine looks there may be one, for which no right was checked."""
    if not visit.session.unrestricted:
        raise PenstockError(
            ErrorCode.QUEUE_NOT_FOUND, f"there is no queue with id {queue_id}; look it up again"
        )
