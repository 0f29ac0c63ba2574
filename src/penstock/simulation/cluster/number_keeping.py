"""The part of a run about numbers that clients keep: its participants, and its final check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random

from penstock.model.batch import Batch
from penstock.model.records import EpochBegan, NumbersSkipped, Sent, decode_record
from penstock.simulation.cluster.number_keepers import QUEUE, NumberKeepers
from penstock.simulation.cluster.targeted_numbers import NumberHunter
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.violation import Violation
from penstock.simulation.workload.stage import Stage

_HUNTS_MS = (600, 1_500, 4_000)


class NumberKeeping:
    """Keepers, and the hunter of their primaries."""

    def __init__(
        self, stage: Stage, hunter: NumberHunter, random: Random, replicas: int, counts: Counter[str]
    ) -> None:
        # After an unclean election a `sync` queue has lost what it promised to keep, and others would say so.
        self._style = random.choice(("plain", "altered", "unclean"))
        self._counts = counts
        self._hunts_ms = random.choice(_HUNTS_MS)
        self.keepers = NumberKeepers(stage, random, replicas, counts, alters=self._style == "altered")
        self.hunter = hunter

    def start(self) -> None:
        """Starts all of them."""
        self.keepers.start()
        self.hunter.hunt(QUEUE, self._hunts_ms, unclean=self._style == "unclean")

    def check(self, log: Iterable[AppendedRecord], unclean: int, at_ms: int) -> Iterator[Violation]:
        """The violations, given the surviving log, and the last epoch that began uncleanly."""
        stored: dict[int, bytes] = {}
        following = readable_from = 1
        for entry in log:
            record = decode_record(entry.head)
            if isinstance(record, Sent):
                stored.update(enumerate(map(bytes, Batch(entry.payload).bodies()), record.first))
                following = record.first + record.count
            elif isinstance(record, NumbersSkipped):
                self._counts["numbers skipped"] += 1
            elif isinstance(record, EpochBegan) and record.epoch <= unclean:
                readable_from = following
        return self.keepers.kept.check(stored, readable_from, at_ms)
