"""Which messages an excuse counts for, in histories made by hand."""

from __future__ import annotations

from penstock.model.batch import encode_one
from penstock.model.records import Deleted, Dropped, Leased, Purged, QueueRecord, Sent, encode_record
from penstock.model.settings import QueueSettings
from penstock.simulation.checkers import damage, exact_endings
from penstock.simulation.history import BitFlip, History
from penstock.simulation.message_history import QueueLife, SentMessage, Span
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.whereabouts import PartitionLog, Whereabouts


class _Queue:
    """One queue of one partition: what clients were told of it, and its records."""

    def __init__(self) -> None:
        self.life = QueueLife(1, "orders", [QueueSettings()], 0)
        self.history = History(lives={1: self.life}, ended_ms=10_000)
        self._records: list[AppendedRecord] = []
        self.written_elsewhere: set[int] = set()

    def write(self, record: QueueRecord, payload: bytes = b"") -> None:
        number = len(self._records) + 1
        self._records.append(AppendedRecord(number * 100, 1, number, encode_record(record), payload))

    def acknowledge(self, sequence: int) -> None:
        message = SentMessage(sequence, self.life, b"x", b"", b"", 0, None, None, b"", 10, 10_000)
        message.fate, message.sequence, message.sent_ms, message.answered_ms = "stored", sequence, 10, 20
        self.history.messages[sequence] = message

    def send(self, sequence: int) -> None:
        self.write(Sent(sequence, 1, 10, 0, 0, 0, 0), encode_one(b"x"))
        self.acknowledge(sequence)

    def violations(self, *, is_there: bool = True) -> list[str]:
        log = PartitionLog(1, 1, 0, "orders", self.life.settings[0], self._records, is_there)
        self.history.whereabouts = Whereabouts([log], [self.life], {1: self.written_elsewhere})
        return [violation.sentence for violation in exact_endings.check(self.history)]


def test_a_purge_that_was_never_answered_excuses_what_it_took_and_nothing_else() -> None:
    queue = _Queue()
    queue.life.purges.append(Span(100))
    queue.send(1)
    queue.write(Purged(2, 150))
    assert queue.violations() == []
    queue.send(2)
    queue.write(Dropped([(2, 1)], 200))
    (sentence,) = queue.violations()
    assert "which drops nothing" in sentence


def test_a_purge_excuses_nothing_after_its_answer() -> None:
    queue = _Queue()
    queue.life.purges.append(Span(100, 120))
    queue.send(1)
    queue.write(Purged(2, 150))
    (sentence,) = queue.violations()
    assert "no purge was under way" in sentence


def test_a_deleted_queue_excuses_what_was_in_it_and_nothing_that_went_before() -> None:
    queue = _Queue()
    queue.life.deletion_asked_ms = 300
    queue.send(1)
    assert queue.violations(is_there=False) == []
    queue.send(2)
    queue.write(Leased(1, [(2, 1)], 200, 400))
    queue.write(Deleted(1, [(2, 1)], 210))
    (sentence,) = queue.violations(is_there=False)
    assert "nobody who received it asked for that" in sentence


def test_a_queue_that_is_gone_and_was_never_deleted_excuses_nothing() -> None:
    queue = _Queue()
    queue.send(1)
    (sentence,) = queue.violations(is_there=False)
    assert "never deleted" in sentence


def test_an_unclean_election_excuses_what_it_lost_and_nothing_else() -> None:
    queue = _Queue()
    queue.history.unclean.add(1)
    queue.acknowledge(7)
    queue.written_elsewhere.add(7)
    assert queue.violations() == []
    queue.acknowledge(8)
    (sentence,) = queue.violations()
    assert "no record" in sentence
    del queue.history.messages[8]
    queue.send(1)
    queue.write(Dropped([(1, 1)], 200))
    (sentence,) = queue.violations()
    assert "which drops nothing" in sentence


def test_a_failover_excuses_nothing_that_is_still_taken_for_acknowledged() -> None:
    queue = _Queue()
    queue.acknowledge(7)
    queue.written_elsewhere.add(7)
    (sentence,) = queue.violations()
    assert "lost it" in sentence


def test_damage_that_was_found_after_a_queue_was_deleted_excuses_that_its_messages_stay() -> None:
    queue = _Queue()
    queue.life.deletion_asked_ms = 100
    queue.send(1)
    (sentence,) = queue.violations()
    assert "is still in" in sentence
    queue.history.fenced = {1}
    assert queue.violations() == []
    (violation,) = damage.check(queue.history)
    assert "fenced although nothing of it was damaged" in violation.sentence
    queue.history.flips.append(BitFlip(50, "journal/0000000001.journal", 2))
    assert len(list(damage.check(queue.history))) == 1
    queue.history.flips.append(BitFlip(60, "journal/0000000001.journal", 1))
    assert list(damage.check(queue.history)) == []
    assert queue.violations() == []
    queue.write(Dropped([(1, 1)], 200))
    (sentence,) = queue.violations()
    assert "which drops nothing" in sentence
