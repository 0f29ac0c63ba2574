"""The node and its files: checkpoints, space that comes back, full disks, damage."""

from __future__ import annotations

from penstock.model.batch import encode_parts
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import NodeHarness


def fill(node: NodeHarness, queue_id: int, batches: int, size: int = 1_000) -> list[bytes]:
    bodies = [b"%06d" % n + b"x" * size for n in range(batches * 10)]
    for start in range(0, len(bodies), 10):
        node.send(queue_id, bodies[start : start + 10])
    return bodies


def describe(node: NodeHarness) -> messages.NodeDescription:
    answer = node.call(messages.DescribeNode())
    assert isinstance(answer, messages.NodeDescription)
    return answer


def test_a_backlog_moves_to_segments_and_survives() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    bodies = fill(node, orders, 100)
    assert describe(node).segment_bytes > 500_000
    node.crash()
    assert node.drain(orders) == bodies


def test_a_checkpoint_waits_for_what_is_still_being_flushed() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    bodies = [b"%06d" % n + b"x" * 10_000 for n in range(200)]
    head = memoryview(messages.encode_message(messages.Send(orders)))
    for n, body in enumerate(bodies):
        # Jobs run while the flush is under way and more is appended behind it, as in a busy server.
        node.node.handle(1, Frame(1_000 + n, head, memoryview(encode_parts([body]))), node.now_ms)
        if n % 4 == 0:
            flush = node.node.take_flush()
            for job in node.node.take_jobs():
                job.run()
                node.node.job_done(job, node.now_ms)
            if flush is not None:
                flush.run()
                node.node.flushed(flush, node.now_ms)
    node.turn()
    assert node.show("orders").damage is None
    assert describe(node).segment_bytes > 0
    assert node.drain(orders) == bodies


def test_space_comes_back() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    fill(node, orders, 100)
    before = node.show("orders").statistics.segment_bytes
    assert before > 0
    node.drain(orders)
    fill(node, orders, 1)
    node.drain(orders)
    assert node.show("orders").statistics.segment_bytes <= 256 * 1024
    journal = describe(node).journal_bytes
    for _ in range(5):
        fill(node, orders, 40)
        node.drain(orders)
    assert describe(node).journal_bytes <= journal + 1024 * 1024
    node.call(messages.DeleteQueue("orders"))
    assert describe(node).segment_bytes == 0


def test_a_few_survivors_do_not_hold_whole_segments() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    fill(node, orders, 100)
    survivors = []
    while (received := node.receive(orders, 10)).bodies:
        keep = received.bodies[0].endswith(b"0" + b"x" * 1_000) and received.bodies[0][4:6] == b"00"
        if keep:
            survivors.append(received.bodies[0])
        runs = sorted(received.runs)
        if keep:
            runs = [(runs[0][0] + 1, runs[0][1] - 1), *runs[1:]]
        node.delete(received, runs)
    for _ in range(3):
        node.drain(node.create("other"))
        fill(node, node.create("other"), 40)
        node.drain(node.create("other"))
    assert node.show("orders").statistics.segment_bytes < 400_000
    node.advance(60_000)
    node.crash()
    assert node.drain(orders) == survivors


def test_a_full_disk_refuses_sends_serves_the_rest_and_recovers_by_itself() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    acknowledged = fill(node, orders, 20)
    node.disk.capacity = sum(node.disk.files().values())
    refused = False
    for n in range(400):
        answer = node.ask(messages.Send(orders), encode_parts([b"f%05d" % n + b"y" * 4_000])).answer
        if isinstance(answer, messages.Failed):
            assert answer.code == "disk-full"
            refused = True
            break
        acknowledged.append(b"f%05d" % n + b"y" * 4_000)
    assert refused
    assert describe(node).disk_full
    received = node.receive(orders, 50)
    assert node.delete(received).done == len(received.bodies)
    assert received.bodies == acknowledged[: len(received.bodies)]
    node.disk.capacity = None
    node.advance(5_000)
    assert not describe(node).disk_full
    node.send(orders, [b"after"])
    node.crash()
    assert node.drain(orders) == [*acknowledged[len(received.bodies) :], b"after"]


def test_damage_fences_its_queue_and_no_other() -> None:
    node = NodeHarness()
    orders, other = node.create("orders"), node.create("other")
    node.send(orders, [b"precious" * 100])
    node.send(other, [b"fine"])
    node.send(orders, [b"more"])
    node.send(other, [b"fine too"])
    wanted = b"precious" * 100
    name = next(name for name in node.disk.files() if wanted in node.disk.contents(name))
    node.disk.flip_bit(name, node.disk.contents(name).index(wanted) + 50)
    node.crash()
    shown = node.show("orders")
    assert shown.damage is not None
    assert name in shown.damage
    failed = node.fail(messages.Receive(orders, 1))
    assert failed.code == "queue-damaged"
    assert name in failed.message
    assert node.drain(other) == [b"fine", b"fine too"]


def test_cold_data_is_peeked_moved_and_received_without_being_in_memory_at_once() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead")
    bodies = fill(node, orders, 60)  # ten times what the cache holds
    node.disk.cold_reads = 0.7
    seen: list[int] = []
    start: int | None = 0
    while start is not None:
        answer = node.call(messages.Peek(orders, start, 1_000, messages.PeekFilter(states=["ready"])))
        assert isinstance(answer, messages.Peeked)
        seen += [s for batch in answer.batches for s in range(batch.first, batch.first + batch.count)]
        start = answer.next
    assert seen == list(range(1, len(bodies) + 1))
    node.call(messages.AlterQueue("orders", {"default_ttl_ms": 1_000}))
    more = fill(node, orders, 60)
    node.advance(1_100)
    dead = node.show("dead").queue_id
    assert node.drain(dead) == more
    assert node.drain(orders) == bodies
