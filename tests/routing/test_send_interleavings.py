"""Sends with deduplication ids to an ordered queue of several partitions, in random interleavings.

The front ends and the partitions are real. Requests and answers overtake each other and get lost, clients ask again through any front
end, also long after, partitions are purged one by one and load their snapshots. What is checked:

- An id is stored once within its window, over all partitions.
- Every message that is acknowledged is stored under the number that was told.
- A batch that comes again gets the same answer, and nothing of it is stored behind what its producer sent after it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from penstock.model.batch import DEDUPLICATION, Batch, encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import LARGEST_NUMBER, ORDINAL_SHIFT
from penstock.model.records import Sent
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import settle as settling
from penstock.queue.state import id_claims
from penstock.routing.router import routed
from penstock.steps.step import Ask, Outcome, Reply
from penstock.wire.messages import ClaimedIds, ClaimIds, FindIds, FoundIds, Send, SendResult
from tests.queue.rig import START_MS, Rig
from tests.routing.test_send_turns import PARTITIONS, FrontEnd
from tests.routing.test_sends_again import A, B, C

STEPS = 2_500
LOST = 0.04
LATE_MS = 40_000
"""A request or a client may be held up for so long, which is less than `HELD_MS`."""


class Outgoing:
    """A batch of a client."""

    def __init__(self, producer: int, number: int, dice: Random) -> None:
        self.producer, self.number = producer, number
        count = dice.randint(1, 4)
        self.groups = [dice.choice([A, B, C]) for _ in range(count)]
        self.ids = [b"id-%d" % dice.randrange(6) if dice.random() < 0.85 else b"" for _ in range(count)]
        self.bodies = [b"%d.%d.%d" % (producer, number, place) for place in range(count)]
        self.is_under_way = False
        self.told: tuple[list[int], list[int]] | None = None


class Walk:
    """Random steps."""

    def __init__(self, seed: int, window_ms: int, *, purges: bool) -> None:
        self.dice = Random(seed)
        self._window_ms, self._purges = window_ms, purges
        settings = QueueSettings(ordering="fifo", deduplication_window_ms=window_ms)
        self._partitions = [Rig(settings, partition_id=2 + ordinal) for ordinal in range(PARTITIONS)]
        self._front_ends = [FrontEnd(), FrontEnd()]
        self._now_ms = START_MS
        self._network: list[Callable[[], None]] = []
        self._late: list[tuple[int, Callable[[], None]]] = []
        self._bodies: list[dict[int, tuple[bytes, bytes]]] = [{} for _ in range(PARTITIONS)]
        """By partition and number: (id, body)."""
        self._stored: dict[bytes, tuple[int, int]] = {}
        """By id: (partition, when), unless that was purged since."""
        self._last: dict[tuple[int, int], int] = {}
        """By partition and producer: the last number of which something was stored."""
        self._clients: dict[int, Outgoing | None] = dict.fromkeys(range(1, 5))
        self._numbers = 0
        self.answered = 0

    def step(self) -> None:
        dice, now_ms = self.dice, self._now_ms
        match dice.choices(range(5), weights=(250, 650, 85, 5 if self._purges else 0, 10))[0]:
            case 0:
                self._ask_as(dice.choice(list(self._clients)))
            case 1 if self._network:
                self._network.pop(dice.randrange(len(self._network)))()
            case 2:
                self._now_ms += dice.choice([1, 50, 500, 3_000])
            case 3:
                ordinal = dice.randrange(PARTITIONS)
                rig = self._partitions[ordinal]
                rig.carry_out(settling.purge(rig.partition, now_ms))
                self._stored = {one: where for one, where in self._stored.items() if where[0] != ordinal}
            case 4:
                dice.choice(self._partitions).reload()
            case _:
                pass
        due = [event for at_ms, event in self._late if at_ms <= self._now_ms]
        self._late = [(at_ms, event) for at_ms, event in self._late if at_ms > self._now_ms]
        for event in due:
            event()
        for front_end in self._front_ends:
            while front_end.asked:
                self._transmit(*front_end.asked.pop(0))

    # -- clients ---------------------------------------------------------------------------------------------

    def _ask_as(self, producer: int) -> None:
        batch = self._clients[producer]
        if batch is None:
            self._numbers += 1
            batch = self._clients[producer] = Outgoing(producer, self._numbers, self.dice)
        if not batch.is_under_way:
            self._send(batch)

    def _send(self, batch: Outgoing) -> None:
        batch.is_under_way = True
        front_end = self.dice.choice(self._front_ends)
        body = encode_parts(batch.bodies, groups=batch.groups, deduplication_ids=batch.ids)
        request = Send(1, batch.producer, batch.number)
        routed(
            front_end.context, request, body, front_end, lambda outcome: self._told(batch, outcome)
        ).start()

    def _told(self, batch: Outgoing, outcome: Outcome) -> None:
        batch.is_under_way = False
        if isinstance(outcome, PenstockError):
            assert outcome.sent_again, outcome
            return
        assert isinstance(outcome.answer, SendResult)
        numbers = [n for first, count in outcome.answer.runs for n in range(first, first + count)]
        duplicates = outcome.answer.duplicates
        for place, (number, identifier, body) in enumerate(
            zip(numbers, batch.ids, batch.bodies, strict=True)
        ):
            stored = self._bodies[number >> ORDINAL_SHIFT][number & LARGEST_NUMBER]
            assert (stored[0] == identifier != b"") if place in duplicates else (stored[1] == body)
        assert batch.told in (None, (numbers, duplicates)), "sent again it was answered otherwise"
        batch.told = numbers, duplicates
        self.answered += 1
        if self.dice.random() < 0.3:  # the answer is lost, and the client goes on meanwhile
            again_ms = self._now_ms + self.dice.randrange(1, LATE_MS)
            self._late.append((again_ms, lambda: self._send(batch)))
        if self._clients[batch.producer] is batch:
            self._clients[batch.producer] = None

    # -- the network and the partitions ----------------------------------------------------------------------

    def _transmit(self, ask: Ask, done: Callable[[Outcome], None]) -> None:
        dice = self.dice
        lost = PenstockError(ErrorCode.UNREACHABLE, "lost")

        def arrives() -> None:
            outcome = self._answer(ask)
            self._network.append(lambda: done(lost if dice.random() < LOST else outcome))

        def is_held_up() -> None:
            done(lost)
            self._late.append((self._now_ms + dice.randrange(1, LATE_MS), lambda: self._ignored(ask)))

        self._network.append(is_held_up if dice.random() < LOST else arrives)

    def _ignored(self, ask: Ask) -> None:
        self._answer(ask)

    def _answer(self, ask: Ask) -> Outcome:
        ordinal, request, now_ms = ask.partition - 2, ask.request, self._now_ms
        rig = self._partitions[ordinal]
        try:
            match request:
                case ClaimIds(_, ids, owners, instead_of):
                    claims = rig.carry_out(id_claims.claim(rig.partition, ids, owners, instead_of, now_ms))
                    return Reply(ClaimedIds(claims.owners, claims.versions))
                case FindIds(_, ids, versions, lift):
                    found = id_claims.find(rig.partition, ids, versions, now_ms, lift=lift)
                    return Reply(FoundIds(rig.carry_out(found)))
                case Send(_, producer, number, left_out=left_out):
                    if len(ask.body):
                        batch = Batch(ask.body)
                        decision = sending.admit(
                            rig.partition, batch, producer, number, now_ms, left_out=left_out
                        )
                    else:
                        decision = sending.remember(rig.partition, producer, number, now_ms, left_out)
                    admitted = rig.carry_out(decision)
                    for record, stored in decision.records:
                        if isinstance(record, Sent) and stored is not None:
                            self._has_stored(ordinal, record, stored)
                    return Reply(SendResult(admitted.runs, admitted.duplicates, admitted.sent_ms))
                case _:
                    raise AssertionError(request)
        except PenstockError as error:
            return error

    def _has_stored(self, ordinal: int, record: Sent, batch: Batch) -> None:
        names = batch.names(DEDUPLICATION)
        assert names is not None
        for number, (identifier, body) in enumerate(zip(names, batch.bodies(), strict=True), record.first):
            self._bodies[ordinal][number] = identifier, body
            if identifier:
                _, before_ms = self._stored.get(identifier, (0, 0))
                assert self._now_ms >= before_ms + self._window_ms, f"{identifier!r} is stored twice"
                self._stored[identifier] = ordinal, self._now_ms
        assert self._last.get((ordinal, record.producer), 0) < record.number, "stored behind a later batch"
        self._last[ordinal, record.producer] = record.number


@pytest.mark.parametrize("purges", [False, True])
@pytest.mark.parametrize("window_ms", [2_000, 10_000, 300_000])
@pytest.mark.parametrize("seed", range(5))
def test_random_interleavings(seed: int, window_ms: int, purges: bool) -> None:
    walk = Walk(seed, window_ms, purges=purges)
    for _ in range(STEPS):
        walk.step()
    assert walk.answered > 20
