"""A retained log and its files: segments, space that comes back, crashes, damage."""

from __future__ import annotations

import random
from typing import Literal

import pytest

from penstock.simulation.disk import SimulatedDisk
from penstock.wire import messages
from tests.backend.harness import NodeHarness
from tests.backend.log_reader import read_all, read_log

BATCH = 10


def fill(node: NodeHarness, queue_id: int, batches: int, tag: bytes = b"") -> list[bytes]:
    bodies = [tag + b"%06d" % number + b"x" * 1_000 for number in range(batches * BATCH)]
    for start in range(0, len(bodies), BATCH):
        node.send(queue_id, bodies[start : start + BATCH])
    return bodies


def segment_bytes(node: NodeHarness, name: str = "events") -> int:
    return node.show(name).statistics.segment_bytes


@pytest.mark.parametrize("consumption", ["log", "both"])
def test_a_log_moves_to_segments_and_survives(consumption: Literal["log", "both"]) -> None:
    node = NodeHarness()
    log = node.create("events", consumption=consumption)
    bodies = fill(node, log, 100)
    if consumption == "both":
        assert node.drain(log) == bodies
        bodies += fill(node, log, 50, b"later")
    assert segment_bytes(node) > 500_000
    assert read_all(node, log) == bodies
    node.crash()
    assert read_all(node, log) == bodies
    node.restart()
    assert read_all(node, log) == bodies


def test_copies_lie_in_the_order_of_the_log_whatever_consumers_did() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="both")
    dice = random.Random(3)
    for number in range(150):
        fill(node, log, 1, b"%d" % number)
        received = node.receive(log, dice.choice([1, 5, 10]))
        if dice.random() < 0.7:
            node.delete(received)
    index = node.node._parts.catalogue.partitions[log].log
    assert index is not None
    segments = node.node._store.segment_numbers(log)
    positions = [run.position for run in index.batches(1, 10_000, 1 << 30, 10_000)]
    copied = [position for position in positions if position >> 32 in segments]
    assert len(copied) > 50
    assert copied == sorted(copied)


@pytest.mark.parametrize("consumption", ["log", "both"])
def test_what_is_cut_gives_its_space_back(consumption: Literal["log", "both"]) -> None:
    node = NodeHarness()
    log = node.create("events", consumption=consumption, retain_bytes=100_000)
    for number in range(20):
        fill(node, log, 20, b"%02d" % number)
        if consumption == "both":
            node.drain(log)
        node.advance(1_000)
    statistics = node.show("events").statistics
    assert 100_000 <= statistics.log_bytes <= 100_000 + 11 * 1_008
    assert statistics.segment_bytes <= 3 * 128 * 1024 + 256 * 1024
    kept = read_all(node, log)
    assert kept[-1].startswith(b"19000199")
    node.crash()
    assert read_all(node, log) == kept
    assert node.fail(messages.ReadLog(log, 1)).code == "offset-gone"


def test_age_cuts_a_log_nobody_writes_to() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log", retention_ms=60_000)
    fill(node, log, 100)
    assert segment_bytes(node) > 0
    node.advance(59_000)
    assert node.show("events").statistics.log_messages == 1_000
    node.advance(1_100)
    assert node.show("events").statistics.log_messages == 0
    assert segment_bytes(node) == 0


def test_a_queue_that_needs_a_file_keeps_it_when_the_log_does_not() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="both", retain_bytes=10_000)
    bodies = fill(node, log, 100)
    node.advance(1_000)
    assert node.show("events").statistics.log_messages == BATCH
    node.crash()
    assert node.drain(log) == bodies


def test_messages_sent_at_once_are_read_after_any_crash() -> None:
    for seed in range(10):
        dice = random.Random(seed)
        node = NodeHarness(SimulatedDisk(random.Random(seed), cold_reads=0.5))
        log = node.create("events", consumption="both" if seed % 2 else "log", retain_bytes=200_000)
        known: dict[int, bytes] = {}
        for number in range(60):
            bodies = [
                b"%d-%d-" % (seed, number) + bytes(dice.randrange(2_000)) for _ in range(dice.randint(1, 20))
            ]
            (run,) = node.send(log, bodies).runs
            known.update(zip(range(run[0], run[0] + run[1]), bodies, strict=True))
            if seed % 2 and dice.random() < 0.5:
                node.delete(node.receive(log, 20))
            if dice.random() < 0.1:
                node.advance(200)
            if dice.random() < 0.15:
                node.crash()
                begin = node.show("events").statistics.log_begin
                found = read_all(node, log)
                assert found == [known[sequence] for sequence in range(begin, max(known) + 1)]


def test_damage_fences_the_log_and_nobody_else() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    orders = node.create("orders")
    fill(node, log, 100)
    node.send(orders, [b"fine"])
    waiting = node.start(messages.ReadLog(log, 1_001, wait_ms=5_000))
    name = next(name for name in node.disk.files() if name.endswith(".segment"))
    node.disk.flip_bit(name, 30_000)
    good = read_log(node, log, 1)
    assert 0 < good.next <= 31, "what lies before the damage can be read"
    failed = node.fail(messages.ReadLog(log, good.next))
    assert failed.code == "queue-damaged"
    assert name in failed.message
    (arrived,) = node.answers(waiting)
    assert isinstance(arrived.answer, messages.Failed)
    assert node.show("events").damage is not None
    assert node.receive(orders).bodies == [b"fine"]
    node.crash()
    assert node.fail(messages.ReadLog(log, good.next)).code == "queue-damaged", "it is found again"


def test_a_missing_segment_is_damage() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    fill(node, log, 100)
    node.node.close(node.now_ms)
    node.disk = node.disk.reopen()
    node.disk.remove(next(name for name in node.disk.files() if name.endswith(".segment")))
    node._open()
    assert "missing" in node.fail(messages.ReadLog(log, 1)).message


def test_deleting_the_queue_gives_all_of_its_space_back() -> None:
    for consumption in ("log", "both"):
        node = NodeHarness()
        log = node.create("events", consumption=consumption)
        fill(node, log, 100)
        assert any(name.endswith(".segment") for name in node.disk.files())
        node.call(messages.DeleteQueue("events"))
        assert not any(name.endswith(".segment") for name in node.disk.files())
        node.crash()
        assert node.fail(messages.ReadLog(log, 1)).code == "queue-not-found"
