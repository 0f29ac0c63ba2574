"""Random histories: the engine and the reference agree after every step, whatever the history."""

from __future__ import annotations

from hypothesis import settings as search
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.model.settings import QueueSettings
from tests.queue.reference import Outgoing
from tests.queue.world import Verb, World

STARTS = [1, 4_090, 4_096]
"""First sequence numbers: the columns are cut into chunks of 4,096."""

times = some.sampled_from([0, 1, 9, 10, 25, 100, 1_000, 5_000])
runs = some.lists(some.tuples(some.integers(-3, 12), some.integers(1, 5)), min_size=1, max_size=3)
outgoing = some.builds(
    lambda size, attributes, priority, group, delay_ms, ttl_ms, identifier: (
        size,
        attributes,
        priority,
        group,
        delay_ms,
        ttl_ms,
        identifier,
    ),
    some.integers(0, 40),
    some.sampled_from([b"", b"", b"\x81\xa1a\xa1b"]),
    some.sampled_from([0, 0, 0, 1, 5, 9]),
    some.sampled_from([b"", b"", b"a", b"b", b"c"]),
    some.sampled_from([None, None, None, 0, 5, 100, 2_000]),
    some.sampled_from([None, None, None, 0, 15, 500, 3_000]),
    some.sampled_from([b"", b"", b"", b"one", b"two", b"three"]),
)
plain = some.builds(lambda size: (size, b"", 0, b"", None, None, b""), some.integers(0, 40))
Spec = tuple[int, bytes, int, bytes, int | None, int | None, bytes]
batches = some.one_of(some.lists(plain, min_size=1, max_size=8), some.lists(outgoing, min_size=1, max_size=8))
changes = some.fixed_dictionaries(
    {},
    optional={
        "max_messages": some.sampled_from([None, 5, 20]),
        "max_bytes": some.sampled_from([None, 100, 400]),
        "max_groups": some.sampled_from([None, 1, 2]),
        "overflow": some.sampled_from(["reject", "drop-oldest", "dead-letter"]),
        "retention_ms": some.sampled_from([1_000, 4_000, 10**9]),
        "delay_ms": some.sampled_from([0, 0, 50]),
        "default_ttl_ms": some.sampled_from([None, None, 700]),
        "deduplication_window_ms": some.sampled_from([1, 300, 5_000]),
        "max_receives": some.sampled_from([None, 1, 2]),
        "visibility_timeout_ms": some.sampled_from([0, 20, 3_000]),
        "dead_letter_queue": some.sampled_from(["dead", "dead", "other"]),
    },
)


class Histories(RuleBasedStateMachine):
    """Short histories that Hypothesis can cut down to what matters."""

    world: World

    @initialize(
        fifo=some.booleans(), start=some.sampled_from(STARTS), dead=some.booleans(), logged=some.booleans()
    )
    def begin(self, fifo: bool, start: int, dead: bool, logged: bool) -> None:
        """A new queue."""
        self.world = World(
            QueueSettings(
                ordering="fifo" if fifo else "best-effort",
                visibility_timeout_ms=500,
                dead_letter_queue="dead" if dead else None,
                consumption="both" if logged else "queue",
                retain_bytes=200 if logged else None,
            ),
            start,
        )

    def made(self, batch: list[Spec]) -> list[Outgoing]:
        return [Outgoing(self.world.body(size), *rest) for size, *rest in batch]  # type: ignore[arg-type]  # the columns of a drawn message, in order

    @rule(batch=batches, producer=some.integers(0, 2), number=some.integers(1, 6))
    def send(self, batch: list[Spec], producer: int, number: int) -> None:
        self.world.send(self.made(batch), producer, number)

    @rule(batch=batches)
    def send_refused(self, batch: list[Spec]) -> None:
        self.world.send_refused(self.made(batch))

    @rule(most=some.integers(1, 12), size=some.sampled_from([0, 30, 100, 10**6]), timeout=some.none() | times)
    def receive(self, most: int, size: int, timeout: int | None) -> None:
        self.world.receive(most, size, timeout)

    @rule(most=some.integers(1, 12))
    def receive_refused(self, most: int) -> None:
        self.world.receive_refused(most)

    @rule(
        verb=some.sampled_from(["delete", "release", "unreceive", "extend"]),
        which=some.integers(-3, 3),
        runs=some.none() | runs,
        time_ms=times,
        received=some.sampled_from([None, None, 0, 1, 2]),
    )
    def settle(
        self,
        verb: Verb,
        which: int,
        runs: list[tuple[int, int]] | None,
        time_ms: int,
        received: int | None,
    ) -> None:
        self.world.settle(verb, which, runs, time_ms, received)

    @rule(by_ms=times, refused=some.booleans())
    def advance(self, by_ms: int, refused: bool) -> None:
        self.world.advance(by_ms, refused)

    @rule()
    def purge(self) -> None:
        self.world.purge()

    @rule(changes=changes)
    def change(self, changes: dict[str, object]) -> None:
        if self.world.reference.settings.dead_letter_queue is None:
            changes = {**changes, "overflow": "reject", "max_receives": None, "dead_letter_queue": None}
        self.world.change(**changes)

    @rule(offset=some.integers(-10, 0), count=some.integers(1, 6))
    def redrive(self, offset: int, count: int) -> None:
        self.world.redrive((max(1, self.world.reference.next + offset), count))

    @rule(most=some.integers(1, 8), steps=some.integers(1, 3), again=some.booleans())
    def carry(self, most: int, steps: int, again: bool) -> None:
        self.world.carry(most, steps, again)

    @rule(numbers=some.sampled_from([1, 7, 4_090, 1 << 24, 1 << 36]))
    def skip(self, numbers: int) -> None:
        self.world.skip(numbers)

    @rule()
    def abandon(self) -> None:
        self.world.abandon()

    @rule(batch=some.lists(outgoing, min_size=1, max_size=4), again=some.booleans())
    def arrive(self, batch: list[Spec], again: bool) -> None:
        self.world.arrive(self.made(batch), again)

    @rule()
    def reload(self) -> None:
        self.world.rig.reload()

    @rule(which=some.integers(0, 5))
    def relocate(self, which: int) -> None:
        self.world.relocate(which)

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self.world.check()
        except AssertionError:
            return  # the history has failed already, and that is what should be reported
        self.world.finish()


TestHistories = Histories.TestCase
TestHistories.settings = search(max_examples=80, stateful_step_count=50, report_multiple_bugs=False)
