"""Throttling: who is limited how, that changes apply at once, and that the buckets stay bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.frontend.throttle.throttle import Throttle
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.request_limits import RequestLimit, encode, key_of
from penstock.metadata.store.interface import Change
from penstock.model.limits import SECOND_MS
from penstock.sqs.errors import ErrorKind, SqsError
from tests.frontend.pipeline import Pipeline, query_request

NOW_MS = 1_000_000


class Limits:
    """A cache whose limits a test sets."""

    def __init__(self) -> None:
        self.cache = MetadataCache()
        self._version = 0

    def put(self, key: str, rate: float, burst: int) -> None:
        self._apply(key, encode(RequestLimit(rate, burst)))

    def remove(self, key: str) -> None:
        self._apply(key, None)

    def corrupt(self, key: str) -> None:
        self._apply(key, b"{")

    def _apply(self, key: str, value: bytes | None) -> None:
        self._version += 1
        self.cache.apply(Change(key, value, self._version))


@pytest.fixture
def limits() -> Limits:
    return Limits()


def passes(throttle: Throttle, user: str, queue: str | None, cost: int = 1, now_ms: int = NOW_MS) -> bool:
    try:
        throttle.admit(user, queue, cost, now_ms)
    except SqsError as error:
        return error.kind is not ErrorKind.REQUEST_THROTTLED
    return True


def passed(throttle: Throttle, user: str, queue: str | None, now_ms: int = NOW_MS) -> int:
    """How many single requests pass at one moment."""
    return sum(passes(throttle, user, queue, 1, now_ms) for _ in range(50))


def test_without_limits_everything_passes(limits: Limits) -> None:
    assert passed(Throttle(limits.cache), "ada", "orders") == 50


def test_a_bucket_gives_its_burst_and_then_its_rate(limits: Limits) -> None:
    limits.put("limits/user/ada", 10, 5)
    throttle = Throttle(limits.cache)
    assert passed(throttle, "ada", None) == 5
    assert passed(throttle, "ada", None, NOW_MS + 99) == 0
    assert passed(throttle, "ada", None, NOW_MS + 100) == 1
    assert passed(throttle, "ada", None, NOW_MS + 400) == 3
    assert passed(throttle, "ada", None, NOW_MS + 60_000) == 5
    assert passed(throttle, "eve", None) == 50


def test_queues_are_limited_over_all_users(limits: Limits) -> None:
    limits.put("limits/queue/orders", 1, 4)
    throttle = Throttle(limits.cache)
    assert passed(throttle, "ada", "orders") + passed(throttle, "eve", "orders") == 4
    assert passed(throttle, "ada", "others") == 50
    assert passed(throttle, "ada", None) == 50


def test_a_default_gives_everyone_a_bucket_of_their_own_unless_they_have_a_limit(limits: Limits) -> None:
    limits.put("limits/default/user", 1, 2)
    limits.put("limits/default/queue", 1, 7)
    limits.put("limits/user/ada", 1, 6)
    throttle = Throttle(limits.cache)
    assert passed(throttle, "ada", "orders") == 6
    assert passed(throttle, "eve", "others") == 2
    assert passed(throttle, "bob", "orders") == 1


def test_what_the_queue_refuses_costs_the_user_nothing(limits: Limits) -> None:
    limits.put("limits/user/ada", 1, 3)
    limits.put("limits/queue/orders", 1, 1)
    throttle = Throttle(limits.cache)
    assert passed(throttle, "ada", "orders") == 1
    assert passed(throttle, "ada", "others") == 2


def test_a_change_applies_to_the_next_request(limits: Limits) -> None:
    throttle = Throttle(limits.cache)
    assert passed(throttle, "ada", None) == 50
    limits.put("limits/user/ada", 1, 3)
    assert passed(throttle, "ada", None) == 3
    limits.put("limits/user/ada", 100, 20)
    assert passed(throttle, "ada", None) == 0  # a new limit is no new burst
    assert passed(throttle, "ada", None, NOW_MS + 100) == 10
    limits.remove("limits/user/ada")
    assert passed(throttle, "ada", None) == 50
    limits.put("limits/default/user", 0, 5)
    assert passed(throttle, "eve", None) == 0  # a rate of 0 stops all


def test_a_batch_costs_its_entries_and_one_above_the_burst_is_paid_off(limits: Limits) -> None:
    limits.put("limits/user/ada", 10, 4)
    throttle = Throttle(limits.cache)
    assert passes(throttle, "ada", None, 3)
    assert not passes(throttle, "ada", None, 3)
    assert passes(throttle, "ada", None, 10, NOW_MS + 300)
    assert not passes(throttle, "ada", None, 1, NOW_MS + 900)
    assert passes(throttle, "ada", None, 1, NOW_MS + 1_000)


def test_a_clock_that_was_set_back_neither_gives_nor_stops(limits: Limits) -> None:
    limits.put("limits/user/ada", 10, 2)
    throttle = Throttle(limits.cache)
    assert passed(throttle, "ada", None) == 2
    assert passed(throttle, "ada", None, NOW_MS - 3_600_000) == 0
    assert passed(throttle, "ada", None, NOW_MS - 3_600_000 + 100) == 1


def test_a_limit_that_cannot_be_read_limits_nobody(limits: Limits) -> None:
    limits.put("limits/user/ada", 1, 1)
    limits.corrupt("limits/user/ada")
    limits.put("limits/other/thing", 1, 1)
    assert passed(Throttle(limits.cache), "ada", None) == 50


def test_the_number_of_buckets_is_bounded_and_the_idle_go_first(limits: Limits) -> None:
    limits.put("limits/default/user", 1, 2)
    throttle = Throttle(limits.cache, most_buckets=100)
    for number in range(90):
        assert passes(throttle, f"idle-{number}", None)
    later_ms = NOW_MS + 60_000
    assert passed(throttle, "busy", None, later_ms) == 2
    for number in range(10):
        assert passes(throttle, f"new-{number}", None, 1, later_ms)
    assert len(throttle._buckets) <= 100
    assert passed(throttle, "busy", None, later_ms) == 0  # it was not forgotten
    for number in range(1_000):
        assert passes(throttle, f"flood-{number}", None, 1, later_ms)
    assert len(throttle._buckets) <= 100


def test_what_leads_nowhere_counts_too(tmp_path: Path) -> None:
    """Who asks for a queue that is gone, or for nothing that makes sense, asks all the same."""
    server = Pipeline(tmp_path)
    server.store(key_of("user", "anonymous"), encode(RequestLimit(1, 3)))
    codes = [
        server.call("SendMessage", QueueUrl="nowhere", MessageBody="x").error,
        server.call("SendMessage", QueueUrl="nowhere").error,
        server.call("ListQueues").error,
        server.call("SendMessage", QueueUrl="nowhere", MessageBody="x").error,
        server.call("SendMessage", QueueUrl="nowhere").error,
    ]
    throttled = "RequestThrottled"
    assert codes == ["QueueDoesNotExist", "MissingRequiredParameterException", "", throttled, throttled]
    server.usage.close()


def test_both_protocols_say_that_a_request_was_throttled(tmp_path: Path) -> None:
    server = Pipeline(tmp_path)
    server.store(key_of("user", "anonymous"), encode(RequestLimit(1, 1)))
    server.must("ListQueues")
    answer = server.call("ListQueues")
    assert (answer.status, answer.error) == (403, "RequestThrottled")
    assert answer.headers["x-amzn-query-error"].startswith("RequestThrottled;")
    form = server.send(query_request("ListQueues"))
    assert form.status == 403
    assert b"<Code>RequestThrottled</Code>" in form.body
    server.advance(SECOND_MS)
    server.must("ListQueues")
    server.store(key_of("user", "anonymous"), None)
    for _ in range(10):
        server.must("ListQueues")
    server.usage.close()
