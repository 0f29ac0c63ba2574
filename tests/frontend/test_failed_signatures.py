"""Failed signatures: counted by address, answered with a throttle in the end, and nobody else pays for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.frontend import authenticate
from penstock.frontend.throttle.failed_signatures import FailedSignatures, limit_of
from penstock.metadata.request_limits import RequestLimit
from penstock.model.limits import DAY_MS, SECOND_MS
from penstock.sqs.protocols.http import Peer
from tests.frontend.pipeline import Key, Pipeline, query_request

NOW_MS = 1_000_000
STRANGER, NEIGHBOUR = Peer("192.0.2.7", secure=False), Peer("192.0.2.8", secure=False)
NOBODY = Key("AKIAXXXXXXXXXXXXXXXX", "guess")
UNKNOWN, MISMATCH, MISSING = (
    "UnrecognizedClientException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
)
THROTTLED = "RequestThrottled"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path, failed_signatures=RequestLimit(1, 3))
    yield pipeline
    pipeline.usage.close()


@pytest.fixture
def admin(server: Pipeline) -> Key:
    return server.add_user("admin", root=True)


def errors(server: Pipeline, *keys: Key | None, peer: Peer = STRANGER) -> list[str]:
    return [server.call("ListQueues", key, peer).error for key in keys]


def test_failures_of_any_kind_are_throttled_after_a_burst_and_come_back_with_time(
    server: Pipeline, admin: Key
) -> None:
    wrong = admin._replace(secret="guess")
    assert errors(server, NOBODY, wrong, None) == [UNKNOWN, MISMATCH, MISSING]
    assert errors(server, NOBODY, wrong, None) == [THROTTLED] * 3
    server.advance(2 * SECOND_MS)
    assert errors(server, NOBODY, NOBODY, NOBODY) == [UNKNOWN, UNKNOWN, THROTTLED]


def test_both_protocols_say_so_as_the_service_does(server: Pipeline, admin: Key) -> None:
    errors(server, NOBODY, NOBODY, NOBODY)
    answer = server.call("ListQueues", NOBODY, STRANGER)
    assert (answer.status, answer.error) == (403, THROTTLED)
    assert answer.headers["x-amzn-query-error"] == "RequestThrottled;Sender"
    form = server.send(query_request("ListQueues"), STRANGER)
    assert form.status == 403
    assert b"<Code>RequestThrottled</Code>" in form.body


def test_other_addresses_do_not_pay(server: Pipeline, admin: Key) -> None:
    errors(server, NOBODY, NOBODY, NOBODY)
    assert errors(server, NOBODY, admin, peer=NEIGHBOUR) == [UNKNOWN, ""]


def test_who_signed_rightly_before_is_let_in_from_a_throttled_address(server: Pipeline, admin: Key) -> None:
    till = server.add_user("till", root=True)
    assert errors(server, admin) == [""]
    assert errors(server, NOBODY, NOBODY, NOBODY, NOBODY)[-1] == THROTTLED
    assert errors(server, admin) == [""]
    assert errors(server, till) == [THROTTLED]  # it may be a guess: it is not even compared
    server.advance(SECOND_MS)
    assert errors(server, till) == [""]


def test_a_user_of_many_regions_makes_no_strangers_of_other_keys(
    server: Pipeline, admin: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticate, "_SESSIONS", 10)
    mallory = server.add_user("mallory", root=True)
    assert errors(server, admin) == [""]
    errors(server, *[mallory._replace(region=f"region-{number}") for number in range(30)])
    assert errors(server, NOBODY, NOBODY, NOBODY, NOBODY)[-1] == THROTTLED
    assert errors(server, admin) == [""]


def test_a_new_day_does_not_make_a_stranger_of_a_key(server: Pipeline, admin: Key) -> None:
    assert errors(server, admin) == [""]
    server.advance(DAY_MS)
    assert errors(server, NOBODY, NOBODY, NOBODY, NOBODY)[-1] == THROTTLED
    assert errors(server, admin, admin._replace(secret="guess")) == ["", THROTTLED]


def test_requests_that_succeed_are_not_counted(server: Pipeline, admin: Key) -> None:
    assert errors(server, *[admin] * 20) == [""] * 20
    assert len(server.services.failures) == 0


def test_without_a_limit_nothing_is_counted(tmp_path: Path) -> None:
    server = Pipeline(tmp_path)
    server.add_user("admin", root=True)
    assert errors(server, *[NOBODY] * 1_000) == [UNKNOWN] * 1_000
    assert len(server.services.failures) == 0
    server.usage.close()


def test_the_addresses_are_bounded_and_the_busy_are_remembered() -> None:
    failures = FailedSignatures(RequestLimit(1, 2), most_addresses=100)
    later_ms = NOW_MS + 60_000
    for number in range(90):
        failures.count(f"10.0.0.{number}", NOW_MS)
    for _ in range(2):
        failures.count("192.0.2.7", later_ms)
    for number in range(20):
        failures.count(f"10.0.1.{number}", later_ms)
    assert failures.are_used_up("192.0.2.7", later_ms)
    for number in range(10_000):
        failures.count(f"10.1.{number // 256}.{number % 256}", later_ms)
        assert len(failures) <= 100


def test_neighbours_in_one_ipv6_network_are_one() -> None:
    failures = FailedSignatures(RequestLimit(1, 2))
    failures.count("2001:db8::1", NOW_MS)
    failures.count("2001:db8::ffff:2", NOW_MS)
    assert failures.are_used_up("2001:db8:0:0:abcd::", NOW_MS)
    assert not failures.are_used_up("2001:db8:0:1::1", NOW_MS)
    assert not failures.are_used_up("odd:address", NOW_MS)


def test_the_setting_is_a_rate_with_ten_seconds_of_it_at_once() -> None:
    assert limit_of(20) == RequestLimit(20, 200)
    assert limit_of(None) is None
