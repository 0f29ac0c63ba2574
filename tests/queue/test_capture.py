"""Captures while records go on being applied: what comes out is the state at the record where it began, whatever came after.

Histories are those of the other tests, with pages of a few rows and a step of a capture between any two commands.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings as search
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from penstock.model import limits
from penstock.model.batch import encode
from penstock.model.records import Sorted
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.snapshot import snapshot
from penstock.queue.snapshot.capture import Capture
from tests.queue import recount, test_against_reference, test_sorted_histories
from tests.queue.rig import START_MS, Rig
from tests.queue.scenes import SCENES, logged, sorted_by
from tests.queue.sorted_world import SortedWorld
from tests.queue.test_long_histories import SETTINGS, Walk
from tests.queue.world import World

steps = some.integers(1, 12)
pages = some.sampled_from([1, 2, 3, 1_024])


class Watched:
    """A capture of a rig's partition under way, and the log up to where it began."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._records = len(rig.log)
        self.capture = Capture(rig.partition)

    def finish(self) -> None:
        """What was captured is what the records up to its beginning make."""
        while not self.capture.is_done:
            self.capture.step(1)
        loaded = snapshot.load(b"".join(self.capture.buffers))
        expected = self._rig.replayed(self._rig.log[: self._records])
        recount.check(loaded)
        assert loaded.index == expected.index == self.capture.index
        assert snapshot.dump(loaded) == snapshot.dump(expected)


class Captures(RuleBasedStateMachine):
    """The rules that captures add to a history."""

    world: World | SortedWorld
    watched: Watched | None = None

    @initialize(rows=pages)
    def draw_pages(self, rows: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(limits, "PAGE_ROWS", rows)

    @rule()
    @precondition(lambda self: self.watched is None)
    def begin_capture(self) -> None:
        self.watched = Watched(self.world.rig)

    @rule(most=steps)
    @precondition(lambda self: self.watched is not None)
    def capture_some(self, most: int) -> None:
        assert self.watched is not None
        self.watched.capture.step(most)
        if self.watched.capture.is_done:
            self.end_capture()

    def end_capture(self) -> None:
        if self.watched is not None:
            watched, self.watched = self.watched, None
            watched.finish()

    @rule()
    def reload(self) -> None:
        self.end_capture()
        self.world.rig.reload()

    def teardown(self) -> None:
        try:
            self.end_capture()
            super().teardown()
        finally:
            if hasattr(self, "patch"):
                self.patch.undo()


class CapturedHistories(Captures, test_against_reference.Histories):
    """Of plain, FIFO and logged queues."""

    world: World


class CapturedSortedHistories(Captures, test_sorted_histories.Histories):
    """Of queues that are sorted by stamps."""

    world: SortedWorld


TestCapturedHistories = CapturedHistories.TestCase
TestCapturedHistories.settings = search(max_examples=60, stateful_step_count=50, deadline=None)
TestCapturedSortedHistories = CapturedSortedHistories.TestCase
TestCapturedSortedHistories.settings = search(max_examples=50, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_long_histories(settings: QueueSettings, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = Random(seed)
    monkeypatch.setattr(limits, "PAGE_ROWS", dice.choice([1, 5, 40]))
    walk = Walk(settings, seed)
    watched: Watched | None = None
    reload = walk.world.rig.reload
    ended = 0
    for _ in range(200):
        if watched is None:
            watched = Watched(walk.world.rig)
        walk.world.rig.reload = lambda: None  # type: ignore[method-assign]  # not while it is captured
        walk.step()
        watched.capture.step(dice.choice([1, 3, 20]))
        if watched.capture.is_done:
            watched.finish()
            watched, ended = None, ended + 1
    if watched is not None:
        watched.finish()
    walk.world.rig.reload = reload  # type: ignore[method-assign]  # as it was
    walk.world.check()
    assert ended


@pytest.mark.parametrize("rows", [1, 2, 1_024])
@pytest.mark.parametrize("scene", SCENES)
def test_everything_that_can_be_in_a_state_is_captured(
    scene: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first step everything changes: more is sent and received, all of it ends, and it is purged."""
    monkeypatch.setattr(limits, "PAGE_ROWS", rows)
    if rows == 1 and scene in ("best-effort", "fifo"):
        pytest.skip("thousands of pages; the same as with two rows")
    rig = SCENES[scene]()
    watched = Watched(rig)
    watched.capture.step(1)
    if rig.partition.sorting is not None:
        rig.write([PendingRecord(Sorted(2**60, START_MS + 6_000))])
    rig.receive(50, START_MS + 6_000)
    rig.relocate(set(rig.partition.table.files))
    rig.upkeep(START_MS + 20_000)
    watched.capture.step(1)
    rig.carry_out(settling.purge(rig.partition, START_MS + 20_000))
    watched.finish()


def test_a_capture_that_is_given_up_leaves_nothing_behind() -> None:
    for rig in (logged(), sorted_by("causal"), sorted_by("clock")):
        before = snapshot.dump(rig.partition)
        capture = Capture(rig.partition)
        with pytest.raises(ValueError, match="being captured already"):
            Capture(rig.partition)
        capture.step(2)
        capture.close()
        capture.close()
        assert not _watching(rig.partition)
        assert snapshot.dump(rig.partition) == before


def _watching(partition: Partition) -> list[object]:
    tables: list[object] = [
        *(partition.table, partition.leases, partition.groups, partition.delays, partition.expiries),
        *(partition.window.rows, partition.window.claims.rows, partition.attempts.rows),
        *(partition.log, partition.order),
    ]
    return [table for table in tables if getattr(table, "capture", None) is not None]


def test_a_capture_of_many_chunks_shows_none_of_what_comes_after() -> None:
    rig = Rig()
    for _ in range(6):
        rig.send(encode([b"x"] * 4_096), producer=1, number=len(rig.log))
    watched = Watched(rig)
    watched.capture.step(3)
    granted = rig.receive(9_000)
    assert granted is not None
    rig.delete(granted.lease, [(1, 8_000)])
    rig.send_plain(5_000)
    rig.relocate({1})
    watched.finish()
