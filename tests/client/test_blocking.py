"""The blocking twin against a real server: the same calls, without await."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

import penstock
from penstock import BlockingClient, ErrorCode, OutgoingMessage, PenstockError, Settlement
from tests.client.real import served_in_a_thread


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served_in_a_thread() as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[BlockingClient]:
    with penstock.connect_blocking(url) as client:
        yield client


def test_queues_come_change_and_go(client: BlockingClient) -> None:
    client.create_queue("admin-b")
    client.create_queue("admin-a", visibility_timeout=9)
    assert [one.name for one in client.list_queues("admin-")] == ["admin-a", "admin-b"]
    assert client.alter_queue("admin-a", max_messages=5).settings.max_messages == 5
    assert client.describe_queue("admin-a").settings.visibility_timeout_ms == 9_000
    client.delete_queue("admin-a")
    with pytest.raises(PenstockError) as caught:
        client.queue("admin-a").describe()
    assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND
    assert client.describe_node().queues >= 1


def test_send_receive_and_settle(client: BlockingClient) -> None:
    queue = client.create_queue("settle")
    assert queue.send("text", attributes={"a": 1}).sequence == 1
    assert queue.send_batch([b"two", OutgoingMessage(b"three", priority=1)]).sequences == [2, 3]
    messages = queue.receive(10, wait=5)
    assert sorted(messages.bodies()) == [b"text", b"three", b"two"]
    one, two, three = sorted(messages, key=lambda message: message.sequence)
    assert (one.text(), one.attributes) == ("text", {"a": 1})
    one.delete()
    two.extend(60)
    three.release()
    with pytest.raises(PenstockError):
        three.ack()
    (again,) = queue.receive()
    assert again.body == b"three"
    assert queue.extend_batch([again], 60) == Settlement(1, 0, [])
    assert queue.release_batch([again]) == Settlement(1, 0, [])
    assert queue.delete_batch([two]) == Settlement(1, 0, [])
    assert [message.body for message in queue.peek()] == [b"three"]
    assert messages[0].sequence in (1, 2, 3)
    assert len(messages[:2]) == 2
    assert queue.purge() == 1
    assert not queue.receive(wait=0.01)


def test_a_producer_and_both_consumers(client: BlockingClient) -> None:
    queue = client.create_queue("stream")
    with queue.producer(batch_messages=10) as producer:
        ticket = producer.send(b"0")
        producer.send_many(b"%d" % number for number in range(1, 100))
        producer.flush()
        assert ticket.done()
        assert ticket.result().sequence == 1
        assert producer.take_failures() == []
    got: list[bytes] = []
    with queue.consume(credit=20, batch_messages=7) as messages:
        for message in messages:
            got.append(message.body)
            message.delete()
            if len(got) == 10:
                break
    with queue.consume_batches(batch_messages=30) as batches:
        for batch in batches:
            got += batch.bodies()
            assert batch.delete().stale == []
            if len(got) >= 100:
                break
    assert sorted(map(int, got)) == list(range(100))
    with pytest.raises(StopIteration):
        next(batches)


def test_dead_letters_are_redriven(client: BlockingClient) -> None:
    queue = client.create_queue("mortal", max_receives=1, dead_letter_queue="mortal-dead")
    queue.send(b"x")
    assert queue.receive().release() == Settlement(1, 0, [])
    dead = client.queue("mortal-dead")
    (letter,) = dead.receive(wait=5)
    letter.release()
    told: list[int] = []
    assert dead.redrive(on_progress=told.append) == 1
    assert told == [1]
    assert queue.receive(wait=5).bodies() == [b"x"]


def test_what_is_redriven_may_come_from_the_client_itself(client: BlockingClient) -> None:
    queue = client.create_queue("picked", max_receives=1, dead_letter_queue="picked-dead")
    queue.send_batch([b"leave", b"take"])
    queue.receive().release()
    dead = client.queue("picked-dead")
    dead.receive(wait=5).release()
    chosen = (message.sequence for message in dead.peek() if message.body == b"take")
    assert dead.redrive(sequences=chosen) == 1
    assert queue.receive(wait=5).bodies() == [b"take"]


def test_a_consumer_in_a_with_block_subscribes_at_once(client: BlockingClient) -> None:
    with pytest.raises(PenstockError) as caught, client.queue("nowhere").consume():
        pytest.fail("the queue does not exist")
    assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND


def test_threads_that_name_a_queue_at_once_lose_no_message(url: str, client: BlockingClient) -> None:
    # A handle numbers the batches of its queue. Two handles of one queue in one client would use the same numbers, and the
    # server would take the second batch for the first one sent again.
    rounds, threads = 50, 8
    stored: list[set[int]] = [set() for _ in range(rounds)]
    together = threading.Barrier(threads)

    def send() -> None:
        for turn in range(rounds):
            together.wait()
            stored[turn].add(client.queue(f"at-once-{turn}").send(b"x").sequence)

    with penstock.connect_blocking(url) as another:
        for turn in range(rounds):
            another.create_queue(f"at-once-{turn}")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [threading.Thread(target=send) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert [len(one) for one in stored] == [threads] * rounds


def test_a_producer_says_what_was_not_stored(client: BlockingClient) -> None:
    queue = client.create_queue("tiny", max_messages=1)
    with pytest.raises(penstock.ProducerError), queue.producer(batch_messages=2) as producer:
        producer.send_many([b"a", b"b"])


def test_what_a_producer_read_of_an_iterator_is_stored_or_named(client: BlockingClient) -> None:
    queue = client.create_queue("smallest", max_messages=3)
    source = iter([b"%d" % number for number in range(1_000)])
    producer = queue.producer(batch_messages=1, in_flight=1)
    with pytest.raises(penstock.ProducerError) as caught:
        producer.send_many(source)
    failures = caught.value.failures
    try:
        producer.close()
    except penstock.ProducerError as error:
        failures += error.failures
    named = [message for failure in failures for message in failure.messages]
    stored = [message.body for message in queue.peek()]
    assert stored == [b"0", b"1", b"2"]
    assert sorted([*stored, *named, *source], key=int) == [b"%d" % number for number in range(1_000)]


def test_an_error_inside_the_block_is_not_hidden_by_a_failure_to_send(client: BlockingClient) -> None:
    queue = client.create_queue("tinier", max_messages=1)
    queue.send(b"the only one")

    def fail() -> None:
        with queue.producer() as producer:
            producer.send(b"no room")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()


def test_threads_share_a_client(client: BlockingClient) -> None:
    queue = client.create_queue("shared")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(20):
                queue.send(f"{number} {turn}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert queue.describe().statistics.sent_total == 160


def test_a_closed_client_says_so(url: str) -> None:
    client = penstock.connect_blocking(url)
    queue = client.queue("any")
    client.close()
    client.close()
    with pytest.raises(PenstockError, match="closed; connect again"):
        queue.send(b"x")


def test_nobody_there_is_said_and_leaves_no_thread(url: str) -> None:
    before = threading.active_count()
    with pytest.raises(PenstockError, match="could not reach"):
        penstock.connect_blocking("penstock://127.0.0.1:1", timeout=0.1)
    assert threading.active_count() == before
    with pytest.raises(PenstockError, match="not the address"):
        penstock.connect_blocking("nonsense")
    assert threading.active_count() == before


def test_a_log_is_read_without_await(client: BlockingClient) -> None:
    queue = client.create_queue("retained", consumption="log")
    queue.send_batch([b"%d" % number for number in range(1, 21)])
    log = queue.log()
    assert log.bounds() == (1, 21)
    assert log.find(timedelta(hours=1)) == 1
    assert [message.sequence for message in log.messages(start=15, slice_bytes=10)] == list(range(15, 21))
    assert [body for piece in log.batches(limit=3) for body in piece.bodies()] == [b"1", b"2", b"3"]
    assert log.read(20).bodies() == [b"20"]
    with log.messages(start="end", follow=True) as messages:
        queue.send(b"21")
        assert next(messages).body == b"21"
    queue.purge()
    with pytest.raises(penstock.OffsetGone) as caught:
        next(log.batches(start=2))
    assert caught.value.begin == 22


def test_groups_are_read_without_await(client: BlockingClient) -> None:
    queue = client.create_queue("grouped", consumption="log")
    queue.send_batch([b"%d" % number for number in range(1, 21)])
    log = queue.log()
    with log.join("billing", auto_commit=None) as reader:
        assert not reader.standing_by
        for message in reader:
            if message.sequence == 5:
                assert reader.commit()
                break
        assert (reader.position, reader.committed, reader.members) == (6, 6, 1)
        assert log.describe_group("billing").members == [reader.member]
        reader.seek(start=10)
        piece = next(reader.batches())
        assert piece.first == 10
        assert reader.commit(piece)
    assert log.describe_group("billing").lag_messages == 0
    assert log.seek("billing", start="beginning").offset == 1
    with log.join("billing", follow=False) as reader:
        assert [message.sequence for message in reader] == list(range(1, 21))
    assert [(group.name, group.offset) for group in log.list_groups()] == [("billing", 21)]
    log.delete_group("billing")
    assert list(log.list_groups()) == []
