"""Random histories of queues ordered by producers' stamps: the engine agrees with a list that is sorted anew."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings as search
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.model.settings import QueueSettings
from tests.queue.sorted_world import SortedWorld

group_names = some.sampled_from([b"", b"", b"a", b"b"])
offsets = some.sampled_from([-90_000, -30_000, -20_000, -20_000, -10_000, -1, 0, 0, 1, 5_000, 20_000, 60_000])
batches = some.lists(some.tuples(offsets, group_names), min_size=1, max_size=5)


class Histories(RuleBasedStateMachine):
    """Short histories that Hypothesis can cut down to what matters."""

    world: SortedWorld

    @initialize(causal=some.booleans(), window_ms=some.sampled_from([0, 10, 50]))
    def begin(self, causal: bool, window_ms: int) -> None:
        """A new queue."""
        if causal:
            settings = QueueSettings(ordering="causal", window_ms=window_ms)
        else:
            settings = QueueSettings(
                ordering="clock", stamps="producer", window_ms=window_ms, max_uncertainty_ms=20
            )
        self.world = SortedWorld(settings)

    @rule(
        process=some.integers(0, 3),
        batch=batches,
        ttl_ms=some.sampled_from([0, 0, 0, 15, 40]),
        number=some.integers(0, 4),
        torn=some.booleans(),
    )
    def send(
        self, process: int, batch: list[tuple[int, bytes]], ttl_ms: int, number: int, torn: bool
    ) -> None:
        offsets_us, groups = [row[0] for row in batch], [row[1] for row in batch]
        self.world.send(process, offsets_us, groups, ttl_ms, number, torn)

    @rule(by_ms=some.sampled_from([0, 1, 5, 10, 25, 60]))
    def advance(self, by_ms: int) -> None:
        self.world.advance(by_ms)

    @rule(uncertainty_us=some.sampled_from([0, 0, 3_000, 15_000, 25_000]))
    def grow_uncertain(self, uncertainty_us: int) -> None:
        self.world.uncertainty_us = uncertainty_us

    @rule(most=some.integers(1, 5))
    def receive(self, most: int) -> None:
        self.world.receive(most)

    @rule(which=some.integers(0, 20), delete=some.booleans(), most=some.integers(1, 3))
    def settle(self, which: int, delete: bool, most: int) -> None:
        self.world.settle(which, delete, most)

    @rule()
    def purge(self) -> None:
        self.world.purge()

    @rule(groups=some.lists(group_names, min_size=1, max_size=3))
    def move_in(self, groups: list[bytes]) -> None:
        self.world.move_in(groups)

    @rule()
    def carry_late(self) -> None:
        self.world.carry_late()

    @rule(window_ms=some.sampled_from([0, 10, 50]))
    def change_window(self, window_ms: int) -> None:
        self.world.change_window(window_ms)

    @rule()
    def reload(self) -> None:
        self.world.rig.reload()

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.finish()


Histories.TestCase.settings = search(max_examples=50, stateful_step_count=30, deadline=None)
TestShortHistories = Histories.TestCase


GROUPS = [b"", b"", b"a", b"b"]
OFFSETS_US = [-90_000, -30_000, -20_000, -20_000, -10_000, -1, 0, 0, 1, 5_000, 20_000]


@pytest.mark.parametrize("seed", range(24))
def test_long_histories(seed: int) -> None:
    dice = random.Random(seed)
    window_ms = dice.choice([0, 10, 50])
    if seed % 2:
        world = SortedWorld(QueueSettings(ordering="causal", window_ms=window_ms))
    else:
        world = SortedWorld(
            QueueSettings(ordering="clock", stamps="producer", window_ms=window_ms, max_uncertainty_ms=20)
        )
    for _ in range(250):
        what = dice.random()
        if what < 0.30:
            count = dice.randint(1, 5)
            offsets_us = [dice.choice(OFFSETS_US) for _ in range(count)]
            groups = [dice.choice(GROUPS) for _ in range(count)]
            ttl_ms, number = dice.choice([0, 0, 0, 15, 40]), dice.choice([0, dice.randint(1, 40)])
            world.send(dice.randint(0, 3), offsets_us, groups, ttl_ms, number, torn=dice.random() < 0.3)
        elif what < 0.50:
            world.advance(dice.choice([0, 1, 5, 10, 25]))
        elif what < 0.70:
            world.receive(dice.randint(1, 5))
        elif what < 0.88:
            world.settle(-dice.randint(1, 4), dice.random() < 0.6, dice.randint(1, 3))
        elif what < 0.90:
            world.uncertainty_us = dice.choice([0, 0, 3_000, 15_000, 25_000])
        elif what < 0.92:
            world.move_in([dice.choice(GROUPS) for _ in range(dice.randint(1, 3))])
        elif what < 0.95:
            world.carry_late()
        elif what < 0.96:
            world.change_window(dice.choice([0, 10, 50]))
        elif what < 0.99:
            world.rig.reload()
        else:
            world.purge()
        world.check()
    world.finish()
