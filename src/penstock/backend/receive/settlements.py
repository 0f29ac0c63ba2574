"""Deletes, releases and extensions: what becomes of each receipt of a request, a bounded part of a long one in a turn.

Ten thousand receipts of as many leases take 70 ms. So a request with more than a turn should do waits between its parts. Requests of
other connections pass it; one of the same connection has it finished first, so that a client's requests are carried out in their order.

Between two parts a partition may get another primary, without what was done here, and then this node again. So the answer needs what
each part has done to be committed in the epoch of that part.
"""

from __future__ import annotations

from penstock.backend.node.parts import NodeParts
from penstock.backend.receive.traffic import check_counts
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import count_of
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import Decision, Outcome
from penstock.queue.partition import Partition
from penstock.replication.interface import Need
from penstock.wire.messages import Delete, Extend, Failed, Receipt, ReceiptOutcome, Release, Settled

RECEIPTS_AT_ONCE = 2_000
"""Of a request with more, so many are looked at in a turn."""

Request = Delete | Release | Extend


class Settlement:
    """One request, and how far it has come."""

    def __init__(self, request_id: int, request: Request, opened: list[tuple[Receipt, int, int]]) -> None:
        self.request_id = request_id
        self.request = request
        self.opened = opened
        """Each receipt, with its partition and its lease."""
        self.outcomes: list[ReceiptOutcome] = []
        self.needs: dict[tuple[int, int], Need] = {}
        """By partition and epoch: what the parts that are done need to be committed."""


class Settlements:
    """The requests that are not done, by connection."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._under_way: dict[int, Settlement] = {}

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def begin(self, connection: int, request_id: int, request: Request, now_ms: int) -> None:
        """Carries a request out, or begins to; raises where it is wrong, and nothing of it is done then."""
        opened = _opened(self._parts, request)
        settlement = Settlement(request_id, request, opened)
        if len(opened) > RECEIPTS_AT_ONCE:
            self._under_way[connection] = settlement
        else:
            _go_on(self._parts, settlement, now_ms, len(opened))
            _answer(self._parts, connection, settlement)

    def go_on(self, now_ms: int) -> None:
        """Ends a turn: a part of the request that has waited longest."""
        for connection in list(self._under_way)[:1]:
            settlement = self._under_way.pop(connection)
            if self._try(connection, settlement, now_ms, RECEIPTS_AT_ONCE):
                self._under_way[connection] = settlement

    def finish(self, connection: int, now_ms: int) -> None:
        """Does all that is left of a connection's request, before anything else of that connection."""
        settlement = self._under_way.pop(connection, None)
        if settlement is not None:
            self._try(connection, settlement, now_ms, len(settlement.opened))

    def _try(self, connection: int, settlement: Settlement, now_ms: int, most: int) -> bool:
        """Whether something is left; otherwise it was answered."""
        try:
            _go_on(self._parts, settlement, now_ms, most)
        except PenstockError as error:
            failed = Failed(error.code, error.message)
            self._parts.answer(connection, settlement.request_id, failed)
            return False
        if len(settlement.outcomes) < len(settlement.opened):
            _note_needs(self._parts, settlement, most)
            return True
        _answer(self._parts, connection, settlement)
        return False


def _opened(parts: NodeParts, request: Request) -> list[tuple[Receipt, int, int]]:
    if len(request.receipts) > limits.RECEIPTS_PER_REQUEST:
        raise PenstockError(
            ErrorCode.BAD_REQUEST, f"more than {limits.RECEIPTS_PER_REQUEST} receipts in a request"
        )
    if isinstance(request, Release) and not 0 <= request.delay_ms <= limits.RETENTION_MS_MAX:
        raise PenstockError(ErrorCode.BAD_REQUEST, f"delay_ms must be 0 to {limits.RETENTION_MS_MAX}")
    if isinstance(request, Release) and len(request.error) > limits.RELEASE_ERROR_CHARACTERS:
        raise PenstockError(
            ErrorCode.BAD_REQUEST, f"an error has at most {limits.RELEASE_ERROR_CHARACTERS} characters"
        )
    if isinstance(request, Extend):
        check_counts(1, request.visibility_timeout_ms)
    opened = [(receipt, *parts.seal.open(receipt.token)) for receipt in request.receipts]
    for _, partition_id, _ in opened:
        if parts.catalogue.is_closed(partition_id):
            parts.catalogue.usable(partition_id)
    return opened


def _go_on(parts: NodeParts, settlement: Settlement, now_ms: int, most: int) -> None:
    """Does to each receipt's messages what is asked, as far as the receipt still holds them."""
    request, outcomes = settlement.request, settlement.outcomes
    for receipt, partition_id, lease in settlement.opened[len(outcomes) : len(outcomes) + most]:
        if parts.catalogue.is_closed(partition_id):
            parts.catalogue.usable(partition_id)
        parts.idle.used(partition_id, now_ms)
        partition = parts.catalogue.partitions.get(partition_id)
        if partition is None or partition_id in parts.catalogue.deleting:
            outcomes.append(ReceiptOutcome(0, count_of(settling.checked(receipt.runs)), []))
            continue
        outcome = parts.carry_out(partition, _decide(parts, partition, request, lease, receipt, now_ms))
        outcomes.append(ReceiptOutcome(outcome.done, outcome.gone, outcome.stale))


def _note_needs(parts: NodeParts, settlement: Settlement, most: int) -> None:
    """Notes what the last part needs to be committed. Its partitions are all served here, or gone."""
    done = len(settlement.outcomes)
    about = [partition_id for _, partition_id, _ in settlement.opened[max(0, done - most) : done]]
    for need in parts.model.needs(about, served_only=True):
        settlement.needs[need[:2]] = need


def _answer(parts: NodeParts, connection: int, settlement: Settlement) -> None:
    about = [partition_id for _, partition_id, _ in settlement.opened]
    parts.answer(
        connection,
        settlement.request_id,
        Settled(settlement.outcomes),
        about=about,
        earlier=[*settlement.needs.values()],
    )


def _decide(
    parts: NodeParts,
    partition: Partition,
    request: Delete | Release | Extend,
    lease: int,
    receipt: Receipt,
    now_ms: int,
) -> Decision[Outcome]:
    match request:
        case Delete():
            return settling.delete(partition, lease, receipt.runs, now_ms, receipt.received)
        case Release():
            may_move = parts.may_move(partition)
            return settling.release(
                partition,
                lease,
                receipt.runs,
                request.delay_ms,
                now_ms,
                receipt.received,
                may_move=may_move,
                unreceived=request.unreceived,
                error=request.error,
            )
        case Extend():
            return settling.extend(
                partition, lease, receipt.runs, request.visibility_timeout_ms, now_ms, receipt.received
            )
