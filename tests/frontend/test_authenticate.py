"""Who may ask at all: signatures in both forms, keys that come and go, and servers without users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from penstock.metadata.users.users import KEYS, USERS
from penstock.model.limits import MINUTE_MS, SECOND_MS
from penstock.sqs.protocols.http import HttpRequest, Peer
from tests.frontend.pipeline import Key, Pipeline, json_request, presigned, query_request, read, signed

SKEW_MS = 15 * MINUTE_MS
UNKNOWN = "UnrecognizedClientException"
MISMATCH = "InvalidSignatureException"
MISSING = "MissingAuthenticationTokenException"


@pytest.fixture
def admin(server: Pipeline) -> Key:
    return server.add_user("admin", root=True)


Tamper = Callable[[HttpRequest], HttpRequest]


def with_headers(request: HttpRequest, **headers: str) -> HttpRequest:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return msgspec.structs.replace(request, headers=request.headers | given)


def test_a_signed_request_is_let_in(server: Pipeline, admin: Key) -> None:
    server.must("CreateQueue", admin, QueueName="orders")
    assert server.must("ListQueues", admin)["QueueUrls"] == ["http://127.0.0.1:9324/000000000000/orders"]


def test_a_form_is_let_in_when_it_is_signed(server: Pipeline, admin: Key) -> None:
    request = query_request("CreateQueue", QueueName="orders")
    assert server.send(signed(request, admin, server.node.now_ms)).status == 200
    assert server.send(request).status == 403


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_presigned_url_is_good_until_it_expires(server: Pipeline, admin: Key, method: str) -> None:
    request = query_request("ListQueues", method="GET")
    request = msgspec.structs.replace(request, method=method)
    url = presigned(request, admin, server.node.now_ms, expires_s=60)
    assert server.send(url).status == 200
    server.advance(60 * SECOND_MS)
    assert server.send(url).status == 200
    server.advance(SECOND_MS)
    late = server.send(url)
    assert late.status == 400
    assert b"<Code>RequestExpired</Code>" in late.body


def test_the_wrong_secret_opens_nothing(server: Pipeline, admin: Key) -> None:
    answer = server.call("ListQueues", admin._replace(secret="another"))
    assert (answer.status, answer.error) == (403, MISMATCH)
    assert admin.secret not in str(answer)


def test_who_is_locked_out_looks_like_nobody(server: Pipeline, admin: Key) -> None:
    disabled_user = server.add_user("till")
    disabled_key = server.add_user("kitchen")
    deleted = server.add_user("waiter")
    for key in (disabled_user, disabled_key, deleted):
        assert (
            server.call("ListQueues", key).error == "AccessDeniedException"
        )  # known, from here on remembered
    server.change_user("till", enabled=False)
    server.change_key(disabled_key, enabled=False)
    server.store(USERS + "waiter", None)
    nobody = server.call("ListQueues", Key("AKIAIOSFODNN7EXAMPLE", "secret"))
    assert (nobody.status, nobody.error) == (403, UNKNOWN)
    for key in (disabled_user, disabled_key, deleted):
        answer = server.call("ListQueues", key)
        assert (answer.status, answer.members) == (nobody.status, nobody.members)


def test_a_user_made_anew_does_not_inherit_keys(server: Pipeline, admin: Key) -> None:
    old = server.add_user("till", root=True)
    server.must("ListQueues", old)
    server.store(USERS + "till", None)
    server.add_user("till", root=True)
    server.change_user("till", user_id="AIDANEW")
    assert server.call("ListQueues", old).error == UNKNOWN


@pytest.mark.parametrize(
    ("shift_ms", "status"),
    [(-SKEW_MS, 200), (SKEW_MS, 200), (-SKEW_MS - SECOND_MS, 403), (SKEW_MS + SECOND_MS, 403)],
)
def test_clocks_may_differ_by_fifteen_minutes(
    server: Pipeline, admin: Key, shift_ms: int, status: int
) -> None:
    request = signed(json_request("ListQueues", {}), admin, server.node.now_ms + shift_ms)
    answer = read(server.send(request))
    assert answer.status == status
    if status == 403:
        assert answer.error == MISMATCH


def test_signatures_are_compared_with_the_clock_as_it_is_set(server: Pipeline, admin: Key) -> None:
    """The engine's time goes on when the system's clock is set back by an hour; clients know only the latter."""
    server.wall_shift_ms = -60 * MINUTE_MS
    right = signed(json_request("ListQueues", {}), admin, server.node.now_ms - 60 * MINUTE_MS)
    assert server.send(right).status == 200
    assert server.send(signed(json_request("ListQueues", {}), admin, server.node.now_ms)).status == 403


def test_a_presigned_url_of_the_future_is_refused(server: Pipeline, admin: Key) -> None:
    url = presigned(query_request("ListQueues", "GET"), admin, server.node.now_ms + SKEW_MS + SECOND_MS)
    assert server.send(url).status == 403


def test_nothing_is_done_unsigned_once_there_is_a_user(server: Pipeline, admin: Key) -> None:
    server.must("CreateQueue", admin, QueueName="orders")
    answer = server.call("DeleteQueue", QueueUrl="orders")
    assert (answer.status, answer.error) == (403, MISSING)
    # Nor is anybody told what is wrong with a question before it is known who asks.
    assert server.call("NoSuchAction").error == MISSING
    assert server.call("SendMessage", QueueUrl="orders").error == MISSING
    assert len(server.must("ListQueues", admin)["QueueUrls"]) == 1


@pytest.mark.parametrize(
    "payload",
    ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"],
)
def test_the_payload_must_be_signed(server: Pipeline, admin: Key, payload: str) -> None:
    request = with_headers(json_request("ListQueues", {}), x_amz_content_sha256=payload)
    answer = read(server.send(signed(request, admin, server.node.now_ms)))
    assert (answer.status, answer.error) == (403, MISMATCH)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda request: msgspec.structs.replace(request, body=request.body.replace(b"orders", b"orderz")),
        lambda request: with_headers(request, x_amz_target="AmazonSQS.PurgeQueue"),
        lambda request: with_headers(request, host="another"),
        lambda request: with_headers(request, x_amz_date="20231114T221321Z"),
        lambda request: msgspec.structs.replace(request, query="Action=PurgeQueue"),
        lambda request: msgspec.structs.replace(request, path="/000000000000/other"),
        lambda request: msgspec.structs.replace(request, method="PUT"),
    ],
    ids=["body", "target", "host", "date", "query", "path", "method"],
)
def test_whatever_is_changed_on_the_way_breaks_the_signature(
    server: Pipeline, admin: Key, tamper: Tamper
) -> None:
    server.must("CreateQueue", admin, QueueName="orders")
    request = server.request("SendMessage", admin, QueueUrl="orders", MessageBody="x")
    assert server.send(request).status == 200
    assert server.send(tamper(request)).status in (403, 404)
    found = server.must("GetQueueAttributes", admin, QueueUrl="orders", AttributeNames=["All"])
    assert found["Attributes"]["ApproximateNumberOfMessages"] == "1"


@pytest.mark.parametrize(
    "tamper",
    [
        lambda request: msgspec.structs.replace(request, query=request.query.replace("orders", "others")),
        lambda request: msgspec.structs.replace(request, query=request.query + "&MaxResults=1"),
        lambda request: msgspec.structs.replace(request, query=request.query.replace("=900", "=9000")),
        lambda request: msgspec.structs.replace(request, body=b"Action=PurgeQueue"),
        lambda request: with_headers(request, x_amz_target="AmazonSQS.PurgeQueue"),
        lambda request: with_headers(request, authorization="AWS4-HMAC-SHA256"),
    ],
    ids=["value", "more", "expires", "body", "target", "header"],
)
def test_a_presigned_url_cannot_be_bent(server: Pipeline, admin: Key, tamper: Tamper) -> None:
    server.must("CreateQueue", admin, QueueName="orders")
    request = query_request("GetQueueUrl", "GET", QueueName="orders")
    request = presigned(msgspec.structs.replace(request, method="POST"), admin, server.node.now_ms)
    assert server.send(request).status == 200
    assert server.send(tamper(request)).status in (400, 403)


def test_a_key_is_rotated_without_a_restart(server: Pipeline, admin: Key) -> None:
    user = server.change_user("admin")
    new = server.add_key(user)
    server.must("ListQueues", admin)
    server.must("ListQueues", new)
    server.store(KEYS + admin.key_id, None)
    assert server.call("ListQueues", admin).error == UNKNOWN
    server.must("ListQueues", new)


def test_a_policy_that_is_taken_away_no_longer_allows(server: Pipeline, admin: Key) -> None:
    everything = {"Statement": {"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}}
    till = server.add_user("till", everything)
    server.must("ListQueues", till)
    server.change_user("till", policies={})
    assert server.call("ListQueues", till).error == "AccessDeniedException"


def test_without_users_anybody_is_let_in_and_the_first_user_ends_that(server: Pipeline) -> None:
    made_up = Key("AKIAIOSFODNN7EXAMPLE", "anything")
    server.must("CreateQueue", QueueName="orders")
    assert server.must("GetQueueUrl", made_up, QueueName="orders")["QueueUrl"].endswith(
        "/000000000000/orders"
    )
    admin = server.add_user("admin", root=True)
    assert server.call("ListQueues").error == MISSING
    assert server.call("ListQueues", made_up).error == UNKNOWN
    server.must("ListQueues", admin)


def test_a_disabled_user_is_a_user(server: Pipeline, admin: Key) -> None:
    server.change_user("admin", enabled=False)
    assert server.call("ListQueues").error == MISSING


def test_without_users_a_key_of_twelve_digits_names_its_account(server: Pipeline) -> None:
    url = server.must("CreateQueue", Key("123456789012", "x", "eu-west-1"), QueueName="orders")["QueueUrl"]
    assert url.endswith("/123456789012/orders")
    assert "QueueUrls" not in server.must("ListQueues") or not server.must("ListQueues")["QueueUrls"]


def test_beyond_loopback_the_last_user_leaves_nobody_who_may_enter(tmp_path: Path) -> None:
    server = Pipeline(tmp_path, open_without_users=False)
    admin = server.add_user("admin", root=True)
    server.must("ListQueues", admin)
    server.store(USERS + "admin", None)
    server.store(KEYS + admin.key_id, None)
    assert server.call("ListQueues").error == MISSING
    assert server.call("ListQueues", admin).error == UNKNOWN
    assert server.call("ListQueues", Key("AKIAIOSFODNN7EXAMPLE", "x")).error == UNKNOWN
    server.usage.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost.evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "Cross-Site"},
        {"sec_fetch_site": "none", "sec_fetch_mode": "navigate"},
        {"sec_fetch_site": "none,cross-site"},
        {"sec_fetch_site": "same-origin", "referer": "https://evil.example/x"},
        {"referer": "https://evil.example/x"},
        {"referer": "http://localhost.evil.example/"},
        {"referer": "http://localhost@evil.example/"},
        {"user_agent": "Mozilla/5.0", "host": "rebound.example:9324"},
        {"user_agent": "Mozilla/5.0 (old: it says nothing of the page)"},
        {"user_agent": "Mozilla/5.0 (old)", "authorization": "Basic of a link with a name and a password"},
        {"host": "rebound.example:9324"},
        {"host": "rebound.example:9324", "sec_fetch_site": "same-origin", "user_agent": "Boto3/1.40"},
        {"host": "rebound.example", "sec_fetch_site": "none"},
        {"host": "rebound.example", "origin": "http://localhost:3000"},
        {"host": "127.0.0.1.rebound.example"},
        {"host": "localhost.rebound.example"},
        {"host": "evillocalhost:9324"},
        {"host": "127.0.0.1:9324@rebound.example"},
        {"host": ""},
        {"x_forwarded_for": "203.0.113.9"},
        {"x_forwarded_for": "127.0.0.1, 203.0.113.9"},
        {"x_forwarded_for": "203.0.113.9, 127.0.0.1"},
        {"x_forwarded_for": "unknown"},
        {"forwarded": "for=203.0.113.9"},
        {"x_real_ip": "203.0.113.9"},
        {"x_forwarded_for": "127.0.0.1", "x_real_ip": "203.0.113.9"},
        {"x_client_ip": "203.0.113.9"},
        {"true_client_ip": "203.0.113.9"},
        {"cf_connecting_ip": "203.0.113.9"},
    ],
)
def test_without_users_a_web_page_from_elsewhere_is_not_let_in(
    server: Pipeline, headers: dict[str, str]
) -> None:
    """A browser on the same machine sends whatever any page asks it to send, to loopback as well."""
    server.must("CreateQueue", QueueName="orders")
    answer = server.send(with_headers(query_request("DeleteQueue", QueueUrl="orders"), **headers))
    assert answer.status == 403
    assert len(server.must("ListQueues")["QueueUrls"]) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://localhost:3000", "sec_fetch_site": "cross-site"},
        {"origin": "http://127.0.0.1:9324"},
        {"origin": "http://[::1]:8080"},
        {"sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "same-origin", "referer": "http://localhost:9324/?Action=ListQueues"},
        {"origin": "http://localhost:3000", "referer": "http://localhost:3000"},
        {"user_agent": "Mozilla/5.0", "host": "localhost:9324", "sec_fetch_site": "same-origin"},
        {"user_agent": "Mozilla/5.0", "host": "localhost:9324", "referer": "http://localhost:3000/"},
        {
            "user_agent": "Mozilla/5.0 (compatible; pycurl)",
            "authorization": "AWS4-HMAC-SHA256 Credential=x/y",
        },
        {"user_agent": "Boto3/1.40", "host": "us-east-1.queue.localhost:9324"},
        {"host": "[::1]:9324"},
        {"host": "127.0.0.53"},
        {"x_forwarded_for": "127.0.0.1"},
        {"x_forwarded_for": "::1, 127.0.0.1"},
        {"x_real_ip": "127.0.0.1"},
    ],
)
def test_without_users_a_local_page_is_let_in(server: Pipeline, headers: dict[str, str]) -> None:
    assert server.send(with_headers(query_request("ListQueues"), **headers)).status == 200


@pytest.mark.parametrize(
    "address", ["203.0.113.9", "10.0.0.1", "::ffff:203.0.113.9", "fe80::1", "", "unknown"]
)
def test_without_users_only_clients_of_this_machine_are_served(server: Pipeline, address: str) -> None:
    """Behind a trusted proxy the address is that of the client."""
    answer = server.send(query_request("ListQueues"), Peer(address, secure=False))
    assert answer.status == 403
    assert b"only clients on this machine" in answer.body


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_without_users_every_client_of_this_machine_is_served(server: Pipeline, address: str) -> None:
    assert server.send(query_request("ListQueues"), Peer(address, secure=False)).status == 200


def test_with_users_neither_host_nor_address_matters(server: Pipeline, admin: Key) -> None:
    request = with_headers(json_request("ListQueues", {}), host="queues.example")
    assert (
        server.send(signed(request, admin, server.node.now_ms), Peer("203.0.113.9", secure=False)).status
        == 200
    )
