"""Partitions that use everything at once, each the same whenever it is made: for what must hold for every part of a state."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.model.batch import encode
from penstock.model.origin import Lateness, Origin
from penstock.model.records import (
    EpochBegan,
    GroupChanged,
    IdsBarred,
    IdsClaimed,
    MoveStarted,
    OffsetCommitted,
    SettingsChanged,
    Sorted,
)
from penstock.model.settings import QueueSettings
from penstock.ordering.clock_interval import ClockInterval
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import receive as receiving
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.decisions.stamping import ProducerStamps
from penstock.queue.state import states
from tests.queue.rig import START_MS, Rig


def busy(ordering: str = "best-effort") -> Rig:
    """Priorities aside, all that a queue without stamps can have."""
    rig = Rig(
        QueueSettings(
            ordering="fifo" if ordering == "fifo" else "best-effort",
            visibility_timeout_ms=500,
            max_receives=300,
            dead_letter_queue="dead",
            default_ttl_ms=9_000,
        )
    )
    groups = [b"a", b"", b"b", b"c"] * 5
    for number in range(1, 5):
        rig.send(
            encode(
                [b"body"] * 20,
                groups=groups,
                delays_ms=[0, 0, 700, 0] * 5,
                ttls_ms=[5_000] * 20,
                deduplication_ids=[b"%d" % (i % 7) for i in range(20)] if number == 1 else None,
                attributes=[b"\x80"] * 20,
            ),
            START_MS + number,
            producer=5,
            number=number,
        )
    rig.send_plain(5_000, START_MS + 150)
    for _ in range(260):
        granted = rig.receive(200, START_MS + 200)
        assert granted is not None
        rig.release(granted.lease, sorted(granted.runs), START_MS + 200)
    granted = rig.receive(30, START_MS + 250)
    assert granted is not None
    held = sorted(granted.runs)
    rig.delete(granted.lease, held[:1], START_MS + 260)
    rig.extend(granted.lease, held[1:2], 77, START_MS + 260)
    rig.release(granted.lease, held[2:3], START_MS + 270, delay_ms=40)
    rig.carry_out(moving.start_move(rig.partition, [(3_000, 5)], "other", START_MS + 280))
    rig.write([PendingRecord(SettingsChanged(rig.partition.settings, START_MS + 290))])
    return rig


def logged() -> Rig:
    """A queue with a log, groups of readers, messages that moved in, attempts, claims and a followed lifecycle."""
    rig = Rig(QueueSettings(consumption="both", lifecycle=True, retention_ms=60_000))
    rig.write([PendingRecord(EpochBegan(3, START_MS)), PendingRecord(EpochBegan(4, START_MS))])
    rig.write([PendingRecord(SettingsChanged(rig.partition.settings, START_MS))])
    for turn in range(30):
        ids = [b"id-%d-%d" % (turn, place) for place in range(7)]
        rig.send(encode([b"x" * turn] * 7, deduplication_ids=ids), START_MS + 150 * turn, 7 + turn % 3, turn)
    for name, offset in (("readers", 9), ("others", 100)):
        rig.write([PendingRecord(OffsetCommitted(name, offset, START_MS))])
    rig.write([PendingRecord(GroupChanged("readers", 40, ["one", "two"], START_MS, [5_000, 6_000], 0, 1))])
    for attempt in (b"first", b"second"):
        decision = receiving.grant(rig.partition, 5, 1 << 20, None, START_MS + 5_000, attempt, "somebody")
        assert decision is not None
        rig.carry_out(decision)
    rig.write([PendingRecord(IdsClaimed([b"p", b"q"], [0, 1], 44, START_MS + 10**6, START_MS + 5_000))])
    rig.write([PendingRecord(IdsBarred([b"r"], [45], START_MS + 10**6, START_MS + 5_000))])
    origin = Origin(9, "elsewhere", "redrive", [(4, 2), (9, 1)], START_MS, [1, 2, 3], START_MS)
    rig.write(moving.arrive(rig.partition, encode([b"a", b"b", b"c"]), origin, START_MS + 5_100))
    rig.relocate({1, 2})
    return rig


def stamped_best_effort() -> Rig:
    """A best-effort queue whose messages have stamps, some of them late."""
    rig = Rig(QueueSettings())
    for turn in range(12):
        said = ProducerStamps(1, turn, (START_MS - 40 * (turn % 4)) * 1_000 + turn)
        rig.carry_out(sending.admit(rig.partition, encode([b"x"] * 3), 0, 0, START_MS + turn, said=said))
        if turn % 3 == 1:
            rig.receive(2, START_MS + turn)
    return rig


def sorted_by(ordering: str) -> Rig:
    """A queue sorted by its producers' stamps: some left the window, some wait in it, some were late."""
    settings = QueueSettings(
        ordering="causal" if ordering == "causal" else "clock",
        stamps="producer",
        window_ms=1_000,
        max_uncertainty_ms=1_000,
    )
    rig = Rig(settings)
    for turn in range(40):
        now_ms = START_MS + 100 * turn
        now = ClockInterval(now_ms * 1_000 - 10, now_ms * 1_000 + 10)
        back_ms = 3_500 if turn in (25, 33) else 300 * (turn % 3)
        said = ProducerStamps(1 + turn % 4, 10 * turn, (now_ms - back_ms) * 1_000)
        batch = encode([b"x"] * 3, groups=[b"g%d" % (turn % 5), b"", b"h"])
        decision = sending.admit(rig.partition, batch, 3, turn + 1, now_ms, said=said, now=now)
        rig.carry_out(decision)
        sorting = rig.partition.sorting
        assert sorting is not None
        through = sorting.due_through(now_ms, lambda now=now: now, 1_000)  # type: ignore[misc]  # a lambda with its own value
        if through is not None:
            rig.write([PendingRecord(Sorted(through, now_ms))])
        granted = rig.receive(4, now_ms) if turn % 4 == 3 else None
        if granted is not None and turn % 8 == 3:
            rig.delete(granted.lease, sorted(granted.runs), now_ms)
    lateness = Lateness(5, 6, "text")
    held = rig.partition.table.runs_in(states.RUNS_IN[states.HELD], 1, rig.partition.table.next, 1)
    rig.write([PendingRecord(MoveStarted(held, "orders.late", "late", START_MS + 5_000, lateness))])
    return rig


def stamped_by_server() -> Rig:
    """A queue ordered by the clock, stamped by the server, with priorities left out."""
    rig = Rig(QueueSettings(ordering="clock", max_uncertainty_ms=1_000))
    for turn in range(9):
        now = ClockInterval(START_MS * 1_000 + turn, START_MS * 1_000 + turn + 5)
        batch = encode([b"x"] * 2, groups=[b"a", b"b"], ttls_ms=[500, 900])
        rig.carry_out(sending.admit(rig.partition, batch, 4, turn, START_MS, now=now))
    rig.receive(3)
    return rig


def purged() -> Rig:
    """A queue of which nothing is left but numbers, and a log-only one's settings."""
    rig = Rig(QueueSettings(consumption="log", retention_ms=50_000))
    for turn in range(9):
        rig.send(encode([b"x"] * 4), START_MS + turn, 4, turn)
    rig.carry_out(settling.purge(rig.partition, START_MS + 20))
    rig.send(encode([b"y"]), START_MS + 30)
    changed = msgspec.structs.replace(rig.partition.settings, retention_ms=40_000)
    rig.write([PendingRecord(SettingsChanged(changed, START_MS + 40))])
    return rig


def overdue() -> Rig:
    """Messages whose time to live ended while they were on their way elsewhere."""
    rig = Rig(QueueSettings(default_ttl_ms=100))
    rig.send_plain(9)
    rig.carry_out(moving.start_move(rig.partition, [(2, 3), (7, 1)], "other", START_MS))
    rig.write(upkeep.expire(rig.partition, START_MS + 200))
    return rig


SCENES: dict[str, Callable[[], Rig]] = {
    "best-effort": busy,
    "fifo": lambda: busy("fifo"),
    "log": logged,
    "stamped": stamped_best_effort,
    "causal": lambda: sorted_by("causal"),
    "clock": lambda: sorted_by("clock"),
    "server-stamped": stamped_by_server,
    "purged": purged,
    "overdue": overdue,
    "empty": Rig,
}
