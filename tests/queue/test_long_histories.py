"""Long random histories, from seeds: backlogs over several chunks, hundreds of leases, many groups."""

from __future__ import annotations

from random import Random

import pytest

from penstock.model.settings import QueueSettings
from tests.queue.reference import Outgoing
from tests.queue.world import Verb, World

STEPS = 200
VERBS: tuple[Verb, ...] = ("delete", "release", "unreceive", "extend")
SETTINGS = {
    "plain": QueueSettings(visibility_timeout_ms=2_000),
    "dead letters": QueueSettings(visibility_timeout_ms=500, max_receives=2, dead_letter_queue="dead"),
    "full": QueueSettings(max_messages=300, overflow="drop-oldest"),
    "fifo": QueueSettings(ordering="fifo", visibility_timeout_ms=2_000),
    "fifo with dead letters": QueueSettings(
        ordering="fifo", visibility_timeout_ms=500, max_receives=2, dead_letter_queue="dead"
    ),
    "fifo with times to live": QueueSettings(ordering="fifo", default_ttl_ms=3_000, delay_ms=20),
}


class Walk:
    """One history."""

    def __init__(self, settings: QueueSettings, seed: int) -> None:
        self.dice = Random(seed)
        self.world = World(settings, start=self.dice.choice([1, 3_000, 4_095]))
        self.groups = [b"group-%d" % i for i in range(self.dice.choice([2, 30]))]
        self.sent: dict[tuple[int, int], list[Outgoing]] = {}

    def batch(self, most: int) -> list[Outgoing]:
        """Messages with a few columns in common, as a producer sends them."""
        dice = self.dice
        fifo = self.world.reference.settings.fifo
        grouped, delayed, mortal, named, ranked = (
            dice.random() < share for share in (0.5, 0.2, 0.2, 0.2, 0.3)
        )
        return [
            Outgoing(
                self.world.body(dice.randrange(40)),
                b"\x80" if dice.random() < 0.1 else b"",
                priority=dice.randrange(10) if ranked and not fifo else 0,
                group=dice.choice(self.groups) if grouped else b"",
                delay_ms=dice.choice([None, 0, 30, 900]) if delayed else None,
                ttl_ms=dice.choice([None, 0, 50, 2_000]) if mortal else None,
                identifier=b"%d" % dice.randrange(200) if named else b"",
            )
            for _ in range(dice.randint(1, most))
        ]

    def send(self, batch: list[Outgoing], producer: int, number: int) -> None:
        """Under a number that was used before the same batch comes again."""
        known = self.sent.setdefault((producer, number), batch) if producer else batch
        self.world.send(known, producer, number)

    def step(self) -> None:
        """One random command."""
        world, dice = self.world, self.dice
        match dice.choices(range(12), weights=(25, 25, 30, 12, 3, 4, 4, 1, 1, 3, 1, 0.3))[0]:
            case 0:
                self.send(self.batch(100), dice.randrange(4), dice.randrange(1, 400))
            case 1:
                world.receive(
                    dice.choice([1, 10, 100]), dice.choice([500, 10**6]), dice.choice([None, 0, 50])
                )
            case 2:
                verb = dice.choices(VERBS, weights=(5, 2, 1, 2))[0]
                part = [(dice.randrange(-2, 40), dice.randint(1, 9)) for _ in range(3)]
                recent = -dice.randint(1, 12)
                world.settle(verb, recent, dice.choice([None, part]), dice.choice([0, 0, 70, 1_500]))
            case 3:
                world.advance(dice.choice([1, 10, 100, 700]), refused=dice.random() < 0.3)
            case 4:
                world.receive_refused(dice.choice([1, 10, 100]))
            case 5:
                world.redrive((max(1, world.reference.next - dice.randrange(200)), dice.randint(1, 20)))
            case 6:
                world.carry(dice.choice([1, 5, 1_000]), dice.randint(1, 3), again=dice.random() < 0.3)
            case 7:
                world.abandon()
            case 8:
                world.rig.reload()
            case 9:
                world.relocate(dice.randrange(50))
            case 10:
                world.skip(dice.choice([1, 100, 5_000, 1 << 24, 1 << 36]))
            case _:
                world.purge()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_engine_and_the_reference_agree(settings: QueueSettings, seed: int) -> None:
    walk = Walk(settings, seed)
    for step in range(STEPS):
        walk.step()
        if step % 10 == 0:
            walk.world.check()
    walk.world.check()
    walk.world.finish()


def test_a_backlog_over_many_chunks_agrees() -> None:
    walk = Walk(QueueSettings(ordering="fifo"), 7)
    for number in range(1, 4):
        walk.send(walk.batch(10_000), 1, number)
    for _ in range(12):
        walk.step()
    walk.world.check()
    walk.world.rig.reload()
    walk.world.purge()
    walk.world.check()
    walk.world.finish()
