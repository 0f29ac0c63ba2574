"""Batches that come again to an ordered queue of several partitions, when whose ids are has changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.model.batch import Batch, encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import settle as settling
from penstock.queue.state import id_claims
from penstock.routing.batch_parts import BatchPart, DuplicateOf, ordinal_of, together
from penstock.routing.router import routed
from penstock.steps.step import Ask, Outcome, Reply
from penstock.wire.messages import ClaimedIds, ClaimIds, FindIds, FoundIds, Send, SendResult
from tests.queue.rig import START_MS, Rig
from tests.routing.test_send_turns import BATCH_IN_A, BATCH_IN_B, PARTITIONS, FrontEnd

WINDOW_MS = 10_000
A, B = BATCH_IN_A, BATCH_IN_B
C = next(name for name in (b"%d" % number for number in range(99)) if ordinal_of(name, PARTITIONS) == 2)
Message = tuple[bytes, bytes]
"""(group, deduplication id)."""


class Cluster:
    """A front end over the partitions of a queue."""

    def __init__(self) -> None:
        settings = QueueSettings(ordering="fifo", deduplication_window_ms=WINDOW_MS)
        self.partitions = [Rig(settings, partition_id=2 + ordinal) for ordinal in range(PARTITIONS)]
        self.front_end = FrontEnd()
        self.now_ms = START_MS
        self.is_earlier_version = False
        """Whether nodes do not know what was left out."""
        self.meanwhile: Callable[[], object] | None = None
        """What happens once while a send whose ids are claimed is on its way."""

    def send(self, number: int, messages: list[Message]) -> Outcome:
        """A batch of producer 7, asked and answered."""
        groups, ids = [group for group, _ in messages], [one for _, one in messages]
        body = encode_parts([b"body of " + one for one in ids], groups=groups, deduplication_ids=ids)
        told: list[Outcome] = []
        routed(self.front_end.context, Send(1, 7, number), body, self.front_end, told.append).start()
        while self.front_end.asked:
            ask, done = self.front_end.asked.pop(0)
            if self.meanwhile is not None and isinstance(ask.request, Send):
                meanwhile, self.meanwhile = self.meanwhile, None
                meanwhile()
            done(self._answer(ask))
        (outcome,) = told
        return outcome

    def stored(self, number: int, messages: list[Message]) -> tuple[list[int], list[int]]:
        """The numbers that a batch is answered with, and which of its messages are duplicates."""
        outcome = self.send(number, messages)
        assert isinstance(outcome, Reply), outcome
        assert isinstance(outcome.answer, SendResult)
        runs = outcome.answer.runs
        return [n for first, count in runs for n in range(first, first + count)], outcome.answer.duplicates

    def _answer(self, ask: Ask) -> Outcome:
        rig, request = self.partitions[ask.partition - 2], ask.request
        try:
            match request:
                case ClaimIds():
                    claimed = rig.carry_out(
                        id_claims.claim(
                            rig.partition, request.ids, request.owners, request.instead_of, self.now_ms
                        )
                    )
                    return Reply(ClaimedIds(claimed.owners, claimed.versions))
                case FindIds():
                    found = id_claims.find(
                        rig.partition, request.ids, request.versions, self.now_ms, lift=request.lift
                    )
                    return Reply(FoundIds(rig.carry_out(found)))
                case Send(left_out=[_, *_]) if not len(ask.body) and not self.is_earlier_version:
                    remembered = sending.remember(
                        rig.partition, request.producer, request.number, self.now_ms, request.left_out
                    )
                    admitted = rig.carry_out(remembered)
                    return Reply(SendResult(admitted.runs, admitted.duplicates, admitted.sent_ms))
                case Send():
                    admitted = rig.carry_out(
                        sending.admit(
                            rig.partition,
                            Batch(ask.body),
                            request.producer,
                            request.number,
                            self.now_ms,
                            left_out=request.left_out if not self.is_earlier_version else (),
                        )
                    )
                    return Reply(SendResult(admitted.runs, admitted.duplicates, admitted.sent_ms))
                case _:
                    raise AssertionError(request)
        except PenstockError as error:
            return error

    @property
    def counts(self) -> list[int]:
        """How many messages each partition has."""
        return [rig.partition.table.messages for rig in self.partitions]


def test_an_id_that_was_found_elsewhere_at_first_and_not_when_the_batch_comes_again() -> None:
    cluster = Cluster()
    cluster.stored(1, [(B, b"x")])
    cluster.now_ms += WINDOW_MS - 1
    batch = [(A, b"x"), (A, b"y")]
    first = cluster.stored(2, batch)
    assert first == ([1 << 48 | 1, 1], [0])
    cluster.now_ms += 2  # nobody remembers that B has `x`
    assert cluster.stored(2, batch) == first
    assert cluster.counts == [1, 1, 0]


@pytest.mark.parametrize("batch", [[(A, b"x")], [(A, b"x"), (C, b"z")]])
def test_a_share_of_which_everything_was_elsewhere_is_not_stored_when_it_comes_again(
    batch: list[Message],
) -> None:
    cluster = Cluster()
    cluster.stored(1, [(B, b"x")])
    first = cluster.stored(2, batch)
    assert first[1] == [0]
    cluster.stored(3, [(A, b"y")])
    counts = cluster.counts
    cluster.now_ms += WINDOW_MS  # nobody remembers `x`, and it would come behind `y`
    assert cluster.stored(2, batch) == first
    assert cluster.counts == counts


def test_a_twin_whose_share_is_empty_has_its_number_each_time() -> None:
    cluster = Cluster()
    batch = [(A, b"x"), (B, b"x")]
    first = cluster.stored(1, batch)
    assert first == ([1, 1], [1])
    cluster.now_ms += WINDOW_MS
    assert cluster.stored(1, batch) == first
    cluster.stored(2, [(C, b"x")])
    assert cluster.stored(1, batch) == first
    assert cluster.counts == [1, 0, 1]


def test_a_share_without_a_message_is_no_more_than_a_note() -> None:
    cluster = Cluster()
    cluster.stored(1, [(B, b"x")])
    cluster.is_earlier_version = True  # refuses it
    assert cluster.stored(2, [(A, b"x")]) == ([1 << 48 | 1], [0])
    assert cluster.counts == [0, 1, 0]


def test_an_id_that_was_stored_at_first_and_is_found_elsewhere_when_the_batch_comes_again() -> None:
    cluster = Cluster()
    batch = [(A, b"x"), (A, b"y")]
    first = cluster.stored(1, batch)
    assert first == ([1, 2], [])
    cluster.now_ms += WINDOW_MS
    cluster.stored(2, [(B, b"x")])
    assert cluster.stored(1, batch) == first
    assert cluster.counts == [2, 1, 0]


def test_a_batch_that_an_earlier_version_stored_is_known_after_the_upgrade() -> None:
    cluster = Cluster()
    cluster.stored(1, [(B, b"x")])
    batch = [(A, b"x"), (A, b"y")]
    cluster.is_earlier_version = True
    first = cluster.stored(2, batch)
    cluster.is_earlier_version = False
    assert cluster.stored(2, batch) == first == ([1 << 48 | 1, 1], [0])
    assert cluster.counts == [1, 1, 0]


def test_a_purge_does_not_let_one_id_into_two_partitions() -> None:
    cluster = Cluster()

    def meanwhile() -> None:
        for rig in cluster.partitions:
            rig.carry_out(settling.purge(rig.partition, cluster.now_ms))
        assert cluster.stored(2, [(B, b"x")]) == ([1 << 48 | 1], [])

    cluster.meanwhile = meanwhile
    outcome = cluster.send(1, [(A, b"x")])
    assert isinstance(outcome, PenstockError)
    assert outcome.code is ErrorCode.OVERLOADED
    assert cluster.counts == [0, 1, 0]
    assert cluster.stored(1, [(A, b"x")]) == ([1 << 48 | 1], [0])


def test_other_messages_under_the_same_number_are_refused() -> None:
    cluster = Cluster()
    first = cluster.stored(1, [(A, b"x"), (B, b"y")])
    for other in (
        [(A, b"x"), (A, b"z"), (B, b"y")],
        [(A, b"z"), (B, b"y")],
    ):
        outcome = cluster.send(1, other)
        assert isinstance(outcome, PenstockError)
        assert outcome.code is ErrorCode.BAD_REQUEST
        assert "under number 1" in outcome.message
    assert cluster.counts == [1, 1, 0]
    assert cluster.stored(1, [(A, b"x"), (B, b"y")]) == first
    # An earlier version may have left `y` out without a word. All that is acknowledged is stored.
    assert cluster.stored(1, [(A, b"x"), (A, b"y")]) == (first[0], [1])
    assert cluster.counts == [1, 1, 0]


def test_a_twin_in_another_partition_has_its_number_each_time() -> None:
    cluster = Cluster()
    batch = [(A, b"x"), (B, b"x"), (B, b"y")]
    first = cluster.stored(1, batch)
    assert first == ([1, 1, 1 << 48 | 1], [1])
    assert cluster.stored(1, batch) == first
    assert cluster.counts == [1, 1, 0]


@pytest.mark.parametrize("numbers", [1, 4])
def test_an_answer_for_another_number_of_messages_acknowledges_nothing(numbers: int) -> None:
    with pytest.raises(PenstockError) as caught:
        together(3, [BatchPart(1, None, [0])], [SendResult([(5, numbers)], [], 1)], {0: 9})
    assert caught.value.code is ErrorCode.BAD_REQUEST


def test_a_node_of_an_earlier_version_does_not_count_what_it_did_not_get() -> None:
    known: dict[int, int | DuplicateOf] = {0: 9}
    answer = together(3, [BatchPart(1, None, [0])], [SendResult([(5, 2)], [], 1)], known)
    assert answer == SendResult([(9, 1), (1 << 48 | 5, 2)], [0], 1)


def test_a_share_that_was_refused_for_the_send_before_it_is_not_sent_again_alone() -> None:
    front_end = FrontEnd()
    told: list[Outcome] = []
    body = encode_parts([b"a", b"b"], groups=[A, B], deduplication_ids=[b"x", b"y"])
    request = Send(1, 7, 2, after=1)
    routed(front_end.context, request, body, front_end, told.append).start()
    asked: list[Send] = []
    while front_end.asked:
        ask, done = front_end.asked.pop(0)
        match ask.request:
            case ClaimIds(_, ids, owners):
                done(Reply(ClaimedIds(owners, [1] * len(ids))))
            case FindIds(_, ids):
                done(Reply(FoundIds([0] * len(ids))))
            case Send():
                asked.append(ask.request)
                is_barred = ask.partition == 2
                code = ErrorCode.OVERLOADED if is_barred else ErrorCode.OUT_OF_ORDER
                done(
                    PenstockError(code, "refused") if len(asked) <= 2 else Reply(SendResult([(1, 1)], [], 1))
                )
            case _:
                raise AssertionError(ask)
    assert len(asked) == 2, "the batch before it is not stored in the second partition"
    (outcome,) = told
    assert isinstance(outcome, PenstockError)
    assert outcome.sent_again
