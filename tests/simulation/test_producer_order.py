"""What the checker of the order of producers sees, in histories made by hand."""

from __future__ import annotations

from penstock.model.partition_numbers import number_of
from penstock.model.settings import QueueSettings
from penstock.simulation.checkers import producer_order
from penstock.simulation.history import History
from penstock.simulation.message_history import Fate, QueueLife, SentBatch, SentMessage


class _Sends:
    """Batches of one message each, in the order sent."""

    def __init__(self) -> None:
        self.life = QueueLife(1, "orders", [QueueSettings()], 0)
        self.history = History(lives={1: self.life})

    def add(
        self,
        number: int,
        sequence: int,
        fate: Fate = "stored",
        *,
        ordered: bool = True,
        producer: int = 7,
        identifier: bytes = b"",
    ) -> None:
        message = SentMessage(number, self.life, b"x", b"", b"", 0, None, None, identifier, 10, 10_000)
        message.fate, message.sequence = fate, sequence
        batch = SentBatch(self.life, producer, number, [message], b"", is_ordered=ordered)
        self.history.batches.append(batch)

    def violations(self) -> int:
        return len(list(producer_order.check(self.history)))


def test_a_batch_that_is_stored_before_an_earlier_one_is_seen() -> None:
    sends = _Sends()
    for number, sequence in ((1, 1), (2, 3), (3, 2), (4, 4)):
        sends.add(number, sequence)
    assert sends.violations() == 1


def test_each_producer_and_each_partition_has_its_own_order() -> None:
    sends = _Sends()
    sends.add(1, number_of(1, 5))
    sends.add(2, number_of(0, 5))
    sends.add(3, number_of(1, 6))
    sends.add(1, 2, producer=8)
    assert not sends.violations()
    sends.add(4, number_of(0, 4))
    assert sends.violations() == 1


def test_only_what_was_promised_and_is_stored_counts() -> None:
    sends = _Sends()
    sends.add(1, 9, "unknown")
    sends.add(2, 8, "duplicate")
    sends.add(3, 7, ordered=False)
    sends.add(4, 6)
    assert not sends.violations()


def test_batches_with_deduplication_ids_count_too() -> None:
    """One of nothing but duplicates is remembered, and not stored when it is sent again."""
    sends = _Sends()
    sends.add(1, 9, identifier=b"id")
    sends.add(2, 8)
    assert sends.violations()
