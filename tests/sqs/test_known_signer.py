"""A known signer says yes only where the careful way does, and to everything that clients usually send."""

from collections.abc import Callable

import msgspec
import pytest

from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.signing.authorization import read_authorization
from penstock.sqs.signing.known_signer import REMEMBERED, REMEMBERED_CHARACTERS, KnownSigner, is_usual
from penstock.sqs.signing.signature import SKEW_SECONDS
from penstock.sqs.signing.signing_keys import derive_key
from tests.sqs.reference import SECRET, signed
from tests.sqs.requests import form_request, get_request, json_request
from tests.sqs.test_signature import PLAIN, TAMPERED, with_header


def signer_of(request: HttpRequest, secret: str = SECRET) -> KnownSigner:
    scope = read_authorization(request).scope
    return KnownSigner(scope, derive_key(secret, scope.day, scope.region))


def has_signed(signer: KnownSigner, request: HttpRequest, after_s: int = 0) -> bool:
    at_s = read_authorization(signed(PLAIN)).signed_at_s
    return signer.has_signed(request, request.headers["authorization"], at_s + after_s)


@pytest.mark.parametrize(
    "request_",
    [
        PLAIN,
        json_request("SendMessage", b"{}", "/000000000000/orders"),
        form_request("/000000000000/orders.fifo", Action="PurgeQueue"),
        with_header(PLAIN, "x-amz-meta", "attempt=1; max=3"),
        with_header(PLAIN, "x-amz-100%s", "a"),
        with_header(PLAIN, "x-amz-meta", "100%s"),
    ],
)
def test_what_clients_usually_send_is_known(request_: HttpRequest) -> None:
    request = signed(request_)
    assert is_usual(request.headers["authorization"], read_authorization(request).scope)
    assert has_signed(signer_of(request), request)


@pytest.mark.parametrize(
    "tampered",
    [
        *TAMPERED,
        lambda request: with_header(request, "x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        lambda request: with_header(request, "x-amz-date", None),
        lambda request: with_header(request, "x-amz-date", "20231399T000000Z"),
        lambda request: with_header(
            request, "authorization", request.headers["authorization"][:-64] + "\xe9" * 64
        ),
    ],
)
def test_whatever_is_changed_is_not_taken(tampered: Callable[[HttpRequest], HttpRequest]) -> None:
    request = signed(PLAIN)
    changed = tampered(request)
    at_s, signer = read_authorization(request).signed_at_s, signer_of(request)
    assert not signer.has_signed(changed, changed.headers["authorization"], at_s)
    # Nor once the signer remembers what the rightful request has in common with it.
    assert signer.has_signed(request, request.headers["authorization"], at_s)
    assert not signer.has_signed(changed, changed.headers["authorization"], at_s)
    assert signer.has_signed(request, request.headers["authorization"], at_s)


def test_another_secret_is_not_taken() -> None:
    request = signed(PLAIN)
    assert not has_signed(signer_of(request, "wrong"), request)


@pytest.mark.parametrize("value", [" a", "a ", "a  b"])
def test_what_has_to_be_made_canonical_first_is_left_to_the_careful_way(value: str) -> None:
    request = signed(with_header(PLAIN, "x-amz-meta", value))
    assert not has_signed(signer_of(request), request)


def test_parameters_in_the_address_are_left_to_the_careful_way() -> None:
    request = signed(get_request(Action="ListQueues"))
    assert not has_signed(signer_of(request), request)


def test_an_unsigned_target_is_not_taken() -> None:
    request = signed(form_request(Action="ListQueues"))
    with_target = with_header(request, "x-amz-target", "AmazonSQS.DeleteQueue")
    assert has_signed(signer_of(request), request)
    assert not has_signed(signer_of(request), with_target)


def test_old_and_early_signatures_are_not_taken() -> None:
    request = signed(PLAIN)
    at_s = read_authorization(request).signed_at_s
    signer, header = signer_of(request), request.headers["authorization"]
    assert signer.has_signed(request, header, at_s + SKEW_SECONDS)
    assert signer.has_signed(request, header, at_s - SKEW_SECONDS)
    assert not signer.has_signed(request, header, at_s + SKEW_SECONDS + 1)
    assert not signer.has_signed(request, header, at_s - SKEW_SECONDS - 1)


def test_a_header_with_the_signature_elsewhere_is_unusual() -> None:
    request = signed(PLAIN)
    start, _, signature = request.headers["authorization"].partition(", Signature=")
    algorithm, _, rest = start.partition(" ")
    moved = with_header(request, "authorization", f"{algorithm} Signature={signature}, {rest}")
    assert not is_usual(moved.headers["authorization"], read_authorization(moved).scope)


def test_requests_of_many_kinds_are_known_by_turns() -> None:
    requests = [
        signed(json_request(action, body, path))
        for action in ("SendMessage", "ReceiveMessage", "DeleteMessage")
        for body in (b"{}", b'{"QueueUrl":"orders"}')
        for path in ("/", "/000000000000/orders")
    ]
    assert len(requests) > REMEMBERED
    signer = signer_of(requests[0])
    for request in requests * 2:
        assert has_signed(signer, request)
        assert len(signer._prepared) <= REMEMBERED
    swapped = msgspec.structs.replace(requests[0], body=requests[2].body)
    assert not has_signed(signer, swapped)


def test_nothing_of_a_very_long_request_is_remembered() -> None:
    request = signed(with_header(PLAIN, "x-amz-meta", "x" * REMEMBERED_CHARACTERS))
    signer = signer_of(request)
    assert has_signed(signer, request)
    assert not signer._prepared
