"""What a lost record excuses, in histories made by hand: the answers that it gave, and nothing else."""

from __future__ import annotations

from penstock.model.batch import encode_one
from penstock.model.records import (
    Closed,
    Deleted,
    Expired,
    Leased,
    MoveFinished,
    MoveStarted,
    Purged,
    QueueRecord,
    Sent,
    encode_record,
)
from penstock.model.settings import QueueSettings
from penstock.ordering.timestamp_id import BEFORE_ALL
from penstock.routing.numbers import outward
from penstock.simulation.checkers import CHECKERS
from penstock.simulation.cluster import lost_answers
from penstock.simulation.cluster.loose_queues import check
from penstock.simulation.cluster.lost_records import LostRecords, lost_records
from penstock.simulation.history import History
from penstock.simulation.log_history import LoggedMessage, LogRead
from penstock.simulation.message_history import (
    DeliveredMessage,
    QueueLife,
    SendAnswer,
    SentBatch,
    SentMessage,
    Settlement,
    Span,
)
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.violation import Violation
from penstock.simulation.whereabouts import PartitionLog, Whereabouts


class _Queue:
    """An `async` queue of one partition: its log that won, another that lost, and what clients were told."""

    def __init__(self) -> None:
        self.life = QueueLife(1, "orders", [QueueSettings(replication="async")], 0)
        self.history = History(lives={1: self.life}, ended_ms=10_000)
        self.won: list[AppendedRecord] = []
        self.fell: list[AppendedRecord] = []

    def write(self, record: QueueRecord, payload: bytes = b"", *, lost: bool = False) -> None:
        log = self.fell if lost else self.won
        number = len(self.won) + len(self.fell) + 1
        log.append(AppendedRecord(number * 100, 1, number, encode_record(record), payload))

    def send(self, sequence: int, *, lost: bool = False, number: int = 0) -> SentMessage:
        """One message is stored and acknowledged."""
        self.write(Sent(sequence, 1, 10, 0, 0, 0, 0), encode_one(b"x"), lost=lost)
        message = SentMessage(number or sequence, self.life, b"x", b"", b"", 0, None, None, b"", 10, 10_000)
        message.fate, message.sequence, message.sent_ms, message.answered_ms = "stored", sequence, 10, 20
        self.history.messages[message.number] = message
        batch = SentBatch(self.life, 7, message.number, [message], b"")
        batch.answers.append(SendAnswer([(sequence, 1)], [], 10))
        batch.heard.append((20, 20_000, 0))
        self.history.batches.append(batch)
        return message

    def deliver(
        self, message: SentMessage, lease: int, at_ms: int, count: int = 1, *, lost: bool = False
    ) -> DeliveredMessage:
        self.write(Leased(lease, [(message.sequence, 1)], at_ms, at_ms + 100), lost=lost)
        delivery = DeliveredMessage(
            *(self.life, message, None, message.sequence, lease, b"token %d" % lease, 0, at_ms, at_ms + 1),
            *(at_ms, at_ms + 100, count, at_ms, 10, None, BEFORE_ALL),
        )
        message.deliveries.append(delivery)
        self.history.deliveries.append(delivery)
        return delivery

    def delete(self, delivery: DeliveredMessage, at_ms: int, *, lost: bool = False) -> None:
        """Somebody deletes a message and is told that it is done."""
        self.write(Deleted(delivery.lease, [(delivery.sequence, 1)], at_ms), lost=lost)
        delivery.settlements.append(Settlement("delete", at_ms, 0, at_ms + 1, "done"))

    def log(self) -> PartitionLog:
        return PartitionLog(1, 1, 0, "orders", self.life.settings[0], self.won, is_there=True)

    def lost(self) -> LostRecords:
        return lost_records([self.log()], [*self.won, *self.fell], {1})

    def violations(self, checker: str) -> list[str]:
        """What a checker says once the answers of lost records are forgotten."""
        records = [record for log in (self.won, self.fell) for record in log]
        numbers = {record.number for record in records}
        self.history.whereabouts = Whereabouts([self.log()], [self.life], {1: numbers})
        lost_answers.forget(self.history, self.lost())
        return [violation.sentence for violation in CHECKERS[checker](self.history)]


def _said(found: list[Violation]) -> list[str]:
    return [violation.sentence for violation in found]


def test_a_lost_send_excuses_its_message_and_no_other() -> None:
    queue = _Queue()
    queue.send(1, lost=True)
    assert queue.violations("I1") == []
    queue.send(2)
    found = queue.violations("I1")
    assert found
    assert all("message 2 " in sentence for sentence in found)


def test_a_lost_delete_excuses_that_its_message_comes_back() -> None:
    queue = _Queue()
    message = queue.send(1)
    first = queue.deliver(message, 1, 100)
    queue.delete(first, 110, lost=True)
    queue.deliver(message, 2, 300, 2)
    assert queue.violations("I2") == []


def test_a_delete_that_is_in_the_log_that_won_is_held_to() -> None:
    queue = _Queue()
    message, other = queue.send(1), queue.send(2)
    queue.delete(queue.deliver(other, 1, 100), 110, lost=True)
    queue.delete(queue.deliver(message, 2, 100), 110)
    queue.deliver(message, 3, 300, 2)
    found = queue.violations("I2")
    assert found
    assert all("1 of queue 'orders'" in sentence or "message 1 " in sentence for sentence in found)


def test_a_lost_lease_excuses_the_next_one_and_a_kept_one_does_not() -> None:
    queue = _Queue()
    message = queue.send(1)
    queue.deliver(message, 1, 100, lost=True)
    queue.deliver(message, 2, 120)
    assert queue.violations("I4") == []
    assert queue.violations("I5") == []
    queue.deliver(message, 3, 140)
    (sentence,) = queue.violations("I4")
    assert "leased again (lease 3)" in sentence
    assert any("receive count" in sentence for sentence in queue.violations("I5"))


def test_a_message_may_be_deleted_with_the_receipt_of_a_lost_lease() -> None:
    queue = _Queue()
    message = queue.send(1)
    queue.delete(queue.deliver(message, 1, 100, lost=True), 300)
    assert queue.violations("I1") == []


def test_the_receipt_of_a_lost_lease_may_not_delete_another_message() -> None:
    queue = _Queue()
    message, other = queue.send(1), queue.send(2)
    delivery = queue.deliver(message, 1, 100, lost=True)
    delivery.settlements.append(Settlement("delete", 300, 0, 301, "done"))
    queue.write(Deleted(1, [(other.sequence, 1)], 300))
    found = queue.violations("I1")
    assert any("message 2 " in sentence and "nobody who received it" in sentence for sentence in found)


def test_a_batch_that_was_lost_may_be_stored_again_once() -> None:
    queue = _Queue()
    message = queue.send(1, lost=True)
    (batch,) = queue.history.batches
    batch.answers.append(SendAnswer([(9, 1)], [], 50))
    batch.heard.append((60, 60_000, 0))
    queue.write(Sent(9, 1, 50, 0, 0, 0, 0), encode_one(b"x"))
    assert queue.violations("I3") == []
    assert (message.fate, message.sequence, message.answered_ms) == ("stored", 9, 60)
    batch.answers.append(SendAnswer([(10, 1)], [], 70))
    batch.heard.append((80, 80_000, 0))
    (sentence,) = queue.violations("I3")
    assert "was answered with" in sentence


def test_a_lost_purge_excuses_what_it_took_and_a_kept_one_does_not() -> None:
    queue = _Queue()
    message = queue.send(1)
    queue.life.purges.append(Span(100, 120, 1))
    queue.write(Purged(2, 110), lost=True)
    queue.deliver(message, 1, 300)
    assert queue.violations("I2") == []
    queue.life.purges.append(Span(400, 420, 1))
    queue.write(Purged(2, 410))
    queue.deliver(message, 2, 600, 2)
    assert any("after the queue was purged" in sentence for sentence in queue.violations("I2"))


def test_a_purge_that_a_next_primary_carried_out_again_is_held_to() -> None:
    queue = _Queue()
    message = queue.send(1)
    queue.life.purges.append(Span(100, 120, 1))
    queue.write(Purged(2, 105), lost=True)
    queue.write(Purged(2, 115))
    queue.deliver(message, 1, 300)
    assert any("after the queue was purged" in sentence for sentence in queue.violations("I2"))


def test_a_purge_that_one_partition_lost_is_held_to_in_the_others() -> None:
    queue = _Queue()
    kept, undone = queue.send(outward(0, 1)), queue.send(outward(1, 1))
    queue.life.purges.append(Span(100, 120, 2))
    for lease, message in enumerate((kept, undone), 1):
        queue.deliver(message, lease, 300)
    lost = LostRecords(purges={(1, 1): [110]}, purged={(1, 0): [110]}, queues={1})
    lost_answers.forget(queue.history, lost)
    (violation,) = CHECKERS["I2"](queue.history)
    assert violation.sentence.startswith(f"{kept.sequence} of queue 'orders'")


def test_a_purge_after_the_one_that_was_lost_has_its_own_time() -> None:
    """That one was lost is no reason for another one at any later time."""
    queue = _Queue()
    queue.send(1)
    queue.life.purges.append(Span(100, 120, 1))
    queue.write(Purged(2, 110), lost=True)
    queue.write(Purged(2, 400))
    assert any("no purge was under way" in sentence for sentence in queue.violations("I1"))


def test_a_lost_watermark_excuses_those_that_only_the_lost_log_had() -> None:
    queue = _Queue()
    queue.life.settings[0] = QueueSettings(replication="async", ordering="clock", stamps="producer")
    queue.life.watermarks_us |= {100, 150, 250}
    queue.write(Closed(100, 10))
    queue.write(Closed(200, 20), lost=True)
    queue.write(Closed(120, 30))
    assert queue.lost().watermarks == {1: [range(101, 201)]}
    lost_answers.forget(queue.history, queue.lost())
    assert queue.life.watermarks_us == {100, 250}


def test_a_message_that_was_said_to_be_gone_may_come_back_when_its_end_was_lost() -> None:
    queue = _Queue()
    message = queue.send(1)
    first = queue.deliver(message, 1, 100)
    queue.write(Expired([(1, 1)], "ttl", 300), lost=True)
    first.settlements.append(Settlement("delete", 310, 0, 311, "gone"))
    queue.deliver(message, 2, 400, 2)
    assert queue.violations("I2") == []


def test_a_message_that_a_lost_purge_took_may_come_back_after_it_was_said_to_be_gone() -> None:
    """A purge takes what is before its end, and nothing behind it."""
    for end, is_excused in ((2, True), (1, False)):
        queue = _Queue()
        message = queue.send(1)
        first = queue.deliver(message, 1, 100)
        queue.write(Purged(end, 150), lost=True)
        first.settlements.append(Settlement("delete", 160, 0, 161, "gone"))
        queue.deliver(message, 2, 500, 2)
        assert bool(queue.violations("I2")) is not is_excused


def test_a_read_of_what_was_lost_is_forgotten_from_there_on() -> None:
    queue = _Queue()
    queue.life.settings[0] = QueueSettings(replication="async", consumption="both")
    kept, gone = queue.send(1), queue.send(2, lost=True)
    rows = [LoggedMessage(message.sequence, message, None, 10) for message in (kept, gone)]
    queue.history.log.reads.append(LogRead(queue.life, 1, 10, 0, rows, 3, 3, 100, 101, None))
    queue.history.records[1] = queue.won
    assert queue.violations("log") == []
    (read,) = queue.history.log.reads
    assert [row.offset for row in read.messages] == [1]


def test_numbers_of_what_was_lost_may_not_come_back() -> None:
    queue = _Queue()
    queue.send(1, lost=True)
    message = queue.send(2)
    queue.deliver(message, 1, 100, lost=True)
    assert _said(list(check(queue.history, [queue.log()], queue.lost(), {1}))) == []
    again = queue.send(1, number=3)
    queue.deliver(again, 1, 200)
    said = _said(list(check(queue.history, [queue.log()], queue.lost(), {1})))
    assert any("is message 1 and message 3" in sentence for sentence in said)
    assert any("given out by two primaries" in sentence for sentence in said)


def test_a_message_that_an_unclean_election_brought_back_may_have_been_called_gone() -> None:
    queue = _Queue()
    for number in (1, 2):
        delivery = queue.deliver(queue.send(number), number, 100)
        delivery.settlements.append(Settlement("delete", 150, 0, 151, "gone"))
    queue.write(
        Leased(9, [(9, 1)], 120, 220), lost=True
    )  # by the primary that had lost both, and nothing ended them
    for message in queue.history.messages.values():
        queue.deliver(message, 10 + message.number, 300, 2)
    sent = next(record for record in queue.won if record.payload)
    back = {1: [range(sent.number, sent.number + 1)]}
    lost = lost_records([queue.log()], [*queue.won, *queue.fell], {1}, back)
    lost_answers.forget(queue.history, lost)
    found = [violation.sentence for violation in CHECKERS["I2"](queue.history)]
    assert found == ["2 of queue 'orders' (id 1) was delivered after the node had said it was gone"]


def test_a_deletion_that_an_unclean_election_brought_back_may_have_been_answered_as_stale() -> None:
    """The first attempt was stored and its answer lost; the log in between did not have the lease."""
    for again, comes_back, is_excused in ((True, True, True), (False, True, False), (True, False, False)):
        queue = _Queue()
        delivery = queue.deliver(queue.send(1), 1, 100)
        queue.write(Deleted(1, [(1, 1)], 150))
        deleted = queue.won[-1]
        delivery.settlements.append(Settlement("delete", 150, 0, 400, "stale", again=again))
        queue.write(Leased(9, [(9, 1)], 220, 320), lost=True)  # by the primary in between
        back = {1: [range(deleted.number, deleted.number + 1)]} if comes_back else {}
        lost = lost_records([queue.log()], [*queue.won, *queue.fell], {1}, back)
        records = {record.number for record in [*queue.won, *queue.fell]}
        queue.history.whereabouts = Whereabouts([queue.log()], [queue.life], {1: records})
        lost_answers.forget(queue.history, lost)
        found = [violation.sentence for violation in CHECKERS["I1"](queue.history)]
        assert (not found) is is_excused, (again, comes_back)


def _moved_and_deleted(queue: _Queue, message: SentMessage) -> None:
    """The message is deleted in the queue of dead letters, and delivered there once more; nobody ever received it in its own queue."""
    dead = QueueLife(2, "dead", [QueueSettings()], 0)
    queue.history.lives[2] = dead
    for sequence, at_ms in ((7, 200), (9, 400)):
        delivery = DeliveredMessage(
            *(dead, message, None, sequence, sequence, b"token %d" % sequence, 0, at_ms, at_ms + 1),
            *(at_ms, at_ms + 100, 1, at_ms, 10, None, BEFORE_ALL),
        )
        message.deliveries.append(delivery)
        queue.history.deliveries.append(delivery)
    message.deliveries[0].settlements.append(Settlement("delete", 210, 0, 211, "done"))


def test_a_move_that_an_unclean_election_lost_excuses_a_second_one_of_a_message_that_nobody_received() -> (
    None
):
    queue = _Queue()
    queue.history.unclean.add(1)
    message, other = queue.send(1), queue.send(2)
    queue.write(MoveStarted([(1, 1)], "dead", "expired", 100), lost=True)
    queue.write(MoveFinished([(1, 1)], 110), lost=True)
    _moved_and_deleted(queue, message)
    lost_answers.forget(queue.history, queue.lost())
    elsewhere = [found.sentence for found in CHECKERS["I2"](queue.history) if "afterwards" in found.sentence]
    assert elsewhere == []
    _moved_and_deleted(queue, other)
    elsewhere = [found.sentence for found in CHECKERS["I2"](queue.history) if "afterwards" in found.sentence]
    assert elsewhere == ["message 2 was deleted and delivered afterwards as 9 of queue 'dead'"]


def test_a_number_that_a_primary_could_not_cut_off_is_two_messages_and_no_third() -> None:
    queue = _Queue()
    queue.send(1, lost=True)
    queue.send(1, number=2)
    records = [*queue.won, *queue.fell]
    lost = lost_records([queue.log()], records, {1}, uncut={1: [range(1, 2)]})
    assert _said(list(check(queue.history, [queue.log()], lost, {1}))) == []
    assert len(_said(list(check(queue.history, [queue.log()], queue.lost(), {1})))) == 1
    queue.send(1, number=3)
    (sentence,) = _said(list(check(queue.history, [queue.log()], lost, {1})))
    assert sentence == "1 of queue 1 is message 1 and message 2 and message 3"
