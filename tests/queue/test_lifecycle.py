"""Rows follow from records alone: whatever happens to a queue, replays and snapshots have the same rows and numbers."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from penstock.columnar.lifecycle import LIFECYCLE
from penstock.columnar.reading import rows_of
from penstock.model.batch import encode
from penstock.model.errors import PenstockError
from penstock.model.records import LifecycleEnded, LifecycleReported, Purged, SettingsChanged, decode_record
from penstock.model.settings import QueueSettings
from penstock.model.settings_checks import changed_settings
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import Granted, PendingRecord
from penstock.queue.lifecycle_row import LifecycleRow, PartitionName, lifecycle_stream
from penstock.queue.log.retention import cut
from penstock.queue.snapshot import snapshot
from penstock.simulation.checkers.lifecycle import LifecycleModel
from penstock.simulation.lifecycle_ledger import LifecycleLedger
from tests.queue.rig import START_MS, Rig

SETTINGS = [
    QueueSettings(lifecycle=True, max_receives=2, dead_letter_queue="dead", default_ttl_ms=40_000),
    QueueSettings(lifecycle=True, ordering="fifo", retention_ms=30_000),
    QueueSettings(lifecycle=False, max_messages=12, overflow="drop-oldest"),
    QueueSettings(lifecycle=True, consumption="both", retention_ms=20_000),
    QueueSettings(lifecycle=True, consumption="log", retention_ms=5_000),
]


class Life:
    """A queue to which anything happens, and what it had to say before it was reported."""

    def __init__(self, settings: QueueSettings, seed: int) -> None:
        self.rig = Rig(settings)
        self.dice = Random(seed)
        self.now_ms = START_MS
        self.reported: list[LifecycleRow] = []
        self._granted: list[Granted] = []

    def step(self) -> None:
        """One thing happens."""
        self.now_ms += self.dice.randrange(3_000)
        acts = [self._send, self._send, self._pass_time, self._report, self._reload, self._alter]
        if self.rig.partition.settings.has_queue:
            acts += [self._receive, self._receive, self._settle, self._settle, self._move]
        if self.dice.random() < 0.05:
            self._write(Purged(self.rig.partition.table.next, self.now_ms))
        self.dice.choice(acts)()

    def _write(self, record: Purged | SettingsChanged | LifecycleReported | LifecycleEnded) -> None:
        self.rig.write([PendingRecord(record)])

    def _send(self) -> None:
        count = self.dice.randint(1, 4)
        batch = encode([b"body"] * count)
        if self.rig.partition.settings.has_queue:
            groups = [self.dice.choice((b"", b"x", b"y")) for _ in range(count)]
            delays = [self.dice.choice((0, 0, 4_000)) for _ in range(count)]
            batch = encode([b"body"] * count, groups=groups, delays_ms=delays)
        with suppress(PenstockError):  # a full queue may have nothing that it could drop
            self.rig.send(batch, self.now_ms)

    def _receive(self) -> None:
        granted = self.rig.receive(3, self.now_ms, visibility_timeout_ms=self.dice.choice((1_000, 20_000)))
        if granted is not None:
            self._granted.append(granted)

    def _settle(self) -> None:
        if not self._granted:
            return
        granted, partition = self.dice.choice(self._granted), self.rig.partition
        if self.dice.random() < 0.4:
            self.rig.carry_out(settling.delete(partition, granted.lease, granted.runs, self.now_ms, 1))
        elif self.dice.random() < 0.5:
            self.rig.carry_out(settling.release(partition, granted.lease, granted.runs, 500, self.now_ms))
        else:
            self.rig.carry_out(settling.extend(partition, granted.lease, granted.runs, 9_000, self.now_ms, 1))

    def _move(self) -> None:
        partition = self.rig.partition
        if self.dice.random() < 0.2 and partition.table.next > 1:
            everything = [(1, partition.table.next - 1)]
            self.rig.carry_out(moving.start_move(partition, everything, "other", self.now_ms))
        for runs in list(partition.moves.values()):
            act = moving.finish_move if self.dice.random() < 0.5 else moving.abandon_move
            self.rig.write(act(partition, runs.first(1), self.now_ms))

    def _pass_time(self) -> None:
        partition = self.rig.partition
        for decide in (upkeep.expire, upkeep.retain, upkeep.end_delays, upkeep.end_leases, cut):
            self.rig.write(decide(partition, self.now_ms))

    def _alter(self) -> None:
        if self.dice.random() < 0.3:
            current = self.rig.partition.settings
            changed = changed_settings(current, {"lifecycle": not current.lifecycle})
            self._write(SettingsChanged(changed, self.now_ms))

    def _report(self) -> None:
        lifecycle = self.rig.partition.lifecycle
        if lifecycle is not None and lifecycle.waiting:
            rows = lifecycle.rows(self.rig.partition.index, self.dice.randint(1, 20), 10_000)
            self.reported += rows
            self._write(LifecycleReported(lifecycle.first + len(rows) - 1, self.now_ms))

    def _reload(self) -> None:
        self.rig.reload()

    def end(self) -> list[LifecycleRow]:
        """The queue is deleted; all rows there ever were."""
        self._write(LifecycleEnded(self.now_ms))
        lifecycle = self.rig.partition.lifecycle
        assert lifecycle is None or lifecycle.next == len(self.reported) + len(lifecycle.waiting) + 1
        return [*self.reported, *(lifecycle.waiting if lifecycle is not None else ())]


@pytest.mark.parametrize("settings", SETTINGS, ids=["dead-letters", "fifo", "drop-oldest", "both", "log"])
@pytest.mark.parametrize("seed", range(8))
def test_rows_say_what_records_say(settings: QueueSettings, seed: int) -> None:
    life = Life(settings, seed)
    for _ in range(150):
        life.step()
    rows = life.end()
    model = LifecycleModel(settings)
    for entry in life.rig.log:
        if isinstance(entry, tuple):
            model.apply(decode_record(entry[0]))
    stream = lifecycle_stream(PartitionName("orders", 1, 0, 1), 1, rows)
    ledger = LifecycleLedger(rows_of(LIFECYCLE, stream))
    assert not ledger.problems
    assert ledger.messages.get(1, {}) == model.told
    assert snapshot.dump(life.rig.replayed()) == snapshot.dump(life.rig.partition)


def test_texts_bound_a_report_but_one_row_always_fits() -> None:
    rig = Rig(QueueSettings(lifecycle=True))
    rig.send(encode([b"x"] * 3, groups=[b"a" * 100, b"b" * 100, b"c" * 100]))
    lifecycle = rig.partition.lifecycle
    assert lifecycle is not None
    assert len(lifecycle.rows(rig.partition.index, 100, 10)) == 1
    assert len(lifecycle.rows(rig.partition.index, 100, 250)) == 2
    assert len(lifecycle.rows(rig.partition.index, 100, 1_000)) == 3
    assert lifecycle.rows(0, 100, 1_000) == []
