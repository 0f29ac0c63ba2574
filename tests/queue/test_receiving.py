"""Receiving: order, budgets, where bodies are, and a receive that could not be written."""

from __future__ import annotations

from penstock.model.batch import encode
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import receive as receiving
from penstock.queue.state import states
from tests.queue import recount
from tests.queue.rig import START_MS, Rig, expand


def test_plain_messages_come_in_the_order_sent_and_in_one_run() -> None:
    rig = Rig()
    rig.send_plain(6_000)
    granted = rig.receive(5_000)
    assert granted is not None
    assert granted.runs == [(1, 4_095), (4_096, 905)]
    assert granted.until_ms == START_MS + rig.partition.settings.visibility_timeout_ms
    assert rig.take(10_000) == list(range(5_001, 6_001))
    assert rig.receive(1) is None


def test_an_answer_is_full_if_enough_is_ready() -> None:
    rig = Rig()
    rig.send_plain(10)
    granted = rig.receive(10)
    assert granted is not None
    for sequence in (2, 4, 6, 8):
        rig.release(granted.lease, [(sequence, 1)])
    rig.send_plain(6)
    assert rig.take(10) == [2, 4, 6, 8, 11, 12, 13, 14, 15, 16]


def test_what_comes_back_keeps_its_place_before_later_messages() -> None:
    rig = Rig(QueueSettings(visibility_timeout_ms=100))
    rig.send_plain(1)
    rig.receive(1)
    rig.send_plain(2)
    rig.upkeep(START_MS + 100)
    assert rig.take(10, START_MS + 100) == [1, 2, 3]


def test_every_receive_has_a_lease_of_its_own() -> None:
    rig = Rig()
    rig.send_plain(3)
    leases = [granted.lease for _ in range(3) if (granted := rig.receive(1)) is not None]
    assert leases == [1, 2, 3]


def test_bytes_end_an_answer_but_one_message_always_comes() -> None:
    rig = Rig()
    for size in (50, 50, 500, 10):
        rig.send_plain(1, size=size)
    sizes = []
    while granted := rig.receive(10, max_bytes=120):
        sizes.append(len(expand(granted.runs)))
    assert sizes == [2, 1, 1]


def test_bodies_are_found_over_batches_and_chunks() -> None:
    rig = Rig(start=4_090)
    for start in range(0, 40, 4):
        rig.send(encode([b"%d" % i for i in range(start, start + 4)]))
    granted = rig.receive(40)
    assert granted is not None
    assert rig.bodies(granted.runs) == [b"%d" % i for i in range(40)]
    assert rig.bodies([(4_101, 3), (4_092, 2)]) == [b"11", b"12", b"13", b"2", b"3"]


def test_receive_costs_the_same_at_any_backlog() -> None:
    """Counted in chunks looked at, not in seconds: the first with something ready is enough."""
    rig = Rig()
    for _ in range(30):
        rig.send_plain(10_000)
    chunks = rig.partition.table.chunks
    looked_at: list[int] = []

    class Watched(dict[int, object]):
        def get(self, key: int, default: object = None) -> object:
            looked_at.append(key)
            return chunks.get(key, default)

    rig.partition.table.chunks = Watched(chunks)  # type: ignore[assignment]  # counts what is looked at
    assert receiving.grant(rig.partition, 100, 1 << 20, None, START_MS) is not None
    assert len(looked_at) <= 2


def test_a_receive_that_could_not_be_written_leaves_everything_deliverable() -> None:
    for settings, batch in (
        (QueueSettings(), encode([b"x"] * 4)),
        (QueueSettings(), encode([b"x"] * 4, groups=[b"a", b"b", b"a", b""], priorities=[0, 3, 0, 0])),
        (QueueSettings(ordering="fifo"), encode([b"x"] * 4, groups=[b"a", b"b", b"a", b""])),
    ):
        rig = Rig(settings)
        rig.send(batch)
        for most in (1, 3, 10):
            assert receiving.grant(rig.partition, most, 1 << 20, None, START_MS) is not None
        assert sorted(rig.take(10)) == [1, 2, 3, 4]
        recount.check(rig.partition)


def test_nothing_is_granted_to_who_asks_for_nothing() -> None:
    rig = Rig()
    rig.send_plain(1)
    assert rig.receive(0) is None
    assert rig.partition.table.counts[states.READY] == 1
