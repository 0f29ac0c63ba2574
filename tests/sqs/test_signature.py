"""Signature Version 4 against botocore's own signer, and everything that must not pass."""

from collections.abc import Callable
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sqs.errors import SqsError
from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.signing.authorization import read_authorization
from penstock.sqs.signing.signature import invalid_access_key, verify_signature
from penstock.sqs.signing.signing_keys import SigningKeys, derive_key
from tests.sqs.reference import ACCESS_KEY, HOST, SECRET, signed
from tests.sqs.requests import QUEUE_URL, form_request, get_request, json_request

PLAIN = json_request("SendMessage", b'{"QueueUrl": "orders", "MessageBody": "b"}')


def verify(request: HttpRequest, *, secret: str = SECRET, now_s: int | None = None) -> None:
    """botocore reads the clock by itself; ours is by default the moment of the signature."""
    authorization = read_authorization(request)
    moment_s = authorization.signed_at_s if now_s is None else now_s
    verify_signature(request, authorization, secret, moment_s, SigningKeys())


def refused(request: HttpRequest, *, secret: str = SECRET, now_s: int | None = None) -> SqsError:
    with pytest.raises(SqsError) as caught:
        verify(request, secret=secret, now_s=now_s)
    return caught.value


def with_header(request: HttpRequest, name: str, value: str | None) -> HttpRequest:
    headers = {key: old for key, old in request.headers.items() if key != name}
    if value is not None:
        headers[name] = value
    return msgspec.structs.replace(request, headers=headers)


# --- what botocore signs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        PLAIN,
        json_request("SendMessage", b"{}", "/000000000000/orders"),
        json_request("ListQueues", b""),
        form_request(Action="ListQueues", Version="2012-11-05"),
        form_request("/000000000000/orders.fifo", Action="PurgeQueue"),
        get_request(Action="SendMessage", MessageBody="a b+c&d=é~*'"),
        get_request("/000000000000/orders", Action="GetQueueAttributes", AttributeName__1="All"),
        with_header(PLAIN, "x-amz-meta", "a   b    c"),
        with_header(PLAIN, "host", "example.com"),
    ],
)
def test_what_botocore_signs_is_verified(request_: HttpRequest) -> None:
    in_header = signed(request_)
    authorization = read_authorization(in_header)
    assert authorization.scope.access_key == ACCESS_KEY
    assert authorization.scope.region == "us-east-1"
    assert authorization.expires_s is None
    verify(in_header)


@pytest.mark.parametrize(
    "request_",
    [
        get_request(Action="ListQueues", Version="2012-11-05"),
        get_request(Action="SendMessage", QueueUrl=QUEUE_URL, MessageBody="a b+c&d=é~*'"),
        get_request("/000000000000/orders.fifo", Action="ReceiveMessage", accept="application/json"),
    ],
)
def test_what_botocore_presigns_is_verified(request_: HttpRequest) -> None:
    request = signed(request_, expires=60)
    assert "authorization" not in request.headers
    assert read_authorization(request).expires_s == 60
    verify(request)


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(
            lambda name: name[:6] != "X-Amz-"
        ),
        st.text(st.characters(codec="utf-8"), max_size=8),
        max_size=4,
    ),
    st.binary(max_size=30),
)
def test_any_parameters_and_any_body(parameters: dict[str, str], body: bytes) -> None:
    query = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in parameters.items()
    )
    request = HttpRequest("POST", "/000000000000/orders", query, {"host": HOST}, body)
    verify(signed(request))
    verify(signed(msgspec.structs.replace(request, method="GET", body=b""), expires=60))


def test_session_tokens_are_signed_like_any_header() -> None:
    verify(signed(PLAIN, token="session"))
    tampered = with_header(signed(PLAIN, token="session"), "x-amz-security-token", "other")
    assert refused(tampered).query_code == "SignatureDoesNotMatch"


def test_other_regions() -> None:
    request = signed(PLAIN, region="eu-central-1")
    assert read_authorization(request).scope.region == "eu-central-1"
    verify(request)


def test_the_date_may_come_from_the_date_header() -> None:
    request = signed(PLAIN)
    authorization = request.headers["authorization"].replace("x-amz-date;", "")
    moved = with_header(with_header(request, "date", request.headers["x-amz-date"]), "x-amz-date", None)
    moved = with_header(moved, "authorization", authorization)
    assert read_authorization(moved).timestamp == request.headers["x-amz-date"]
    rfc = with_header(moved, "date", "Tue, 14 Nov 2023 22:13:20 GMT")
    rfc = with_header(rfc, "authorization", authorization.replace(authorization.split("/")[1], "20231114"))
    assert read_authorization(rfc).signed_at_s == 1_700_000_000
    assert read_authorization(rfc).timestamp == "20231114T221320Z"


def test_a_key_is_good_for_one_day() -> None:
    key = derive_key(SECRET, "20120215", "us-east-1")
    assert len(key.sign(b"x")) == 64
    assert key.sign(b"x") != derive_key(SECRET, "20120216", "us-east-1").sign(b"x")


# --- what must not pass -------------------------------------------------------------------------------------


def flipped(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


Tampering = Callable[[HttpRequest], HttpRequest]

TAMPERED: tuple[Tampering, ...] = (
    lambda request: msgspec.structs.replace(request, body=request.body + b" "),
    lambda request: msgspec.structs.replace(request, path="/000000000000/other"),
    lambda request: msgspec.structs.replace(request, query="x=1"),
    lambda request: msgspec.structs.replace(request, method="PUT"),
    lambda request: with_header(request, "host", "evil"),
    lambda request: with_header(request, "content-type", None),
    lambda request: with_header(request, "x-amz-target", "AmazonSQS.DeleteQueue"),
    lambda request: with_header(request, "authorization", flipped(request.headers["authorization"])),
)
"""What may be changed on the way of a signed request."""


@pytest.mark.parametrize("tampered", TAMPERED)
def test_a_changed_request_does_not_pass(tampered: Tampering) -> None:
    error = refused(tampered(signed(PLAIN)))
    assert (error.query_code, error.status) == ("SignatureDoesNotMatch", 403)


def test_a_wrong_secret_does_not_pass() -> None:
    error = refused(signed(PLAIN), secret="wrong")
    assert error.query_code == "SignatureDoesNotMatch"
    assert error.message.startswith("The request signature we calculated does not match")
    assert SECRET not in error.message
    assert (invalid_access_key().query_code, invalid_access_key().status) == ("InvalidClientTokenId", 403)


def test_a_changed_presigned_url_does_not_pass() -> None:
    request = signed(get_request(Action="PurgeQueue", QueueUrl="orders"), expires=60)
    for tampered in (
        request.query.replace("PurgeQueue", "DeleteQueue"),
        request.query.replace("X-Amz-Expires=60", "X-Amz-Expires=61"),
        request.query + "&extra=1",
    ):
        assert tampered != request.query
        error = refused(msgspec.structs.replace(request, query=tampered))
        assert error.query_code == "SignatureDoesNotMatch"


def test_an_unsigned_request() -> None:
    error = refused(PLAIN)
    assert (error.query_code, error.status) == ("MissingAuthenticationToken", 403)
    assert error.message == "Request is missing Authentication Token"


@pytest.mark.parametrize("payload", ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"])
def test_payloads_must_be_signed(payload: str) -> None:
    error = refused(signed(with_header(PLAIN, "x-amz-content-sha256", payload)))
    assert error.query_code == "SignatureDoesNotMatch"


def test_a_claimed_payload_digest_is_not_believed() -> None:
    claimed = signed(with_header(PLAIN, "x-amz-content-sha256", "0" * 64))
    assert refused(claimed).query_code == "SignatureDoesNotMatch"


def test_the_action_must_be_signed() -> None:
    """Otherwise anyone on the way could turn a receive into a purge."""
    request = with_header(
        signed(with_header(PLAIN, "x-amz-target", None)), "x-amz-target", "AmazonSQS.DeleteQueue"
    )
    assert "x-amz-target" in refused(request).message


# --- time ---------------------------------------------------------------------------------------------------


def test_clocks_may_differ_by_a_quarter_of_an_hour() -> None:
    request = signed(PLAIN)
    at = read_authorization(request).signed_at_s
    verify(request, now_s=at + 900)
    verify(request, now_s=at - 900)
    error = refused(request, now_s=at + 901)
    assert error.query_code == "SignatureDoesNotMatch"
    assert error.message.startswith("Signature expired: ")
    assert error.message.endswith(" - 15 min.)")
    error = refused(request, now_s=at - 901)
    assert error.message.startswith("Signature not yet current: ")


def test_presigned_urls_expire() -> None:
    request = signed(get_request(Action="ListQueues"), expires=3600)
    at = read_authorization(request).signed_at_s
    verify(request, now_s=at + 3600)
    error = refused(request, now_s=at + 3601)
    assert (error.query_code, error.status) == ("RequestExpired", 400)
    assert refused(request, now_s=at - 901).query_code == "SignatureDoesNotMatch"


# --- broken signatures --------------------------------------------------------------------------------------

GOOD = (
    "AWS4-HMAC-SHA256 Credential=AKID/20231114/us-east-1/sqs/aws4_request, SignedHeaders=host;x-amz-date, "
    f"Signature={'0' * 64}"
)


@pytest.mark.parametrize(
    ("header", "code", "message"),
    [
        ("", "IncompleteSignature", "Unsupported AWS 'algorithm': ''."),
        ("Bearer x", "IncompleteSignature", "Unsupported AWS 'algorithm': 'Bearer'."),
        ("AWS4-HMAC-SHA256", "IncompleteSignature", "Authorization header requires 'Credential' parameter."),
        (
            GOOD.replace("Credential=", "Credential"),
            "IncompleteSignature",
            (
                "'CredentialAKID/20231114/us-east-1/sqs/aws4_request' not a valid key=value pair "
                "(missing equal-sign) in Authorization header."
            ),
        ),
        (
            GOOD.replace("SignedHeaders=host;x-amz-date, ", ""),
            "IncompleteSignature",
            "Authorization header requires 'SignedHeaders' parameter.",
        ),
        (
            GOOD.split(", Signature")[0],
            "IncompleteSignature",
            "Authorization header requires 'Signature' parameter.",
        ),
        (
            GOOD.replace("/sqs/", "/"),
            "IncompleteSignature",
            (
                "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
                "got 'AKID/20231114/us-east-1/aws4_request'"
            ),
        ),
        (
            GOOD.replace("/sqs/", "/sns/"),
            "SignatureDoesNotMatch",
            "Credential should be scoped to correct service: 'sqs'.",
        ),
        (
            GOOD.replace("aws4_request", "aws5_request"),
            "SignatureDoesNotMatch",
            "Credential should be scoped with a valid terminator: 'aws4_request', not 'aws5_request'.",
        ),
        (
            GOOD.replace("us-east-1", "us east"),
            "SignatureDoesNotMatch",
            "Credential should be scoped to a valid region, not 'us east'.",
        ),
        (
            GOOD.replace("AKID", "A K"),
            "InvalidClientTokenId",
            "The security token included in the request is invalid.",
        ),
        (
            GOOD.replace("host;", ""),
            "SignatureDoesNotMatch",
            "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.",
        ),
        (
            GOOD.replace("host;", "Host;"),
            "IncompleteSignature",
            "SignedHeaders must be names in lower case, separated by semicolons.",
        ),
        (
            GOOD.replace("20231114/", "20231113/"),
            "SignatureDoesNotMatch",
            (
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
                "'20231113' != '20231114', from '20231114T221320Z'."
            ),
        ),
        (
            GOOD[:-1],
            "SignatureDoesNotMatch",
            "The Signature is not 64 characters of lower-case hexadecimal.",
        ),
        ("A" * 5000, "IncompleteSignature", "The Authorization header is too long."),
    ],
)
def test_broken_headers(header: str, code: str, message: str) -> None:
    request = HttpRequest(
        "POST", "/", "", {"host": "h", "x-amz-date": "20231114T221320Z", "authorization": header}, b""
    )
    error = refused(request, now_s=1_700_000_000)
    assert (error.query_code, error.message) == (code, message)


def test_parts_of_the_header_may_come_in_any_order() -> None:
    algorithm, _, rest = GOOD.partition(" ")
    header = f"{algorithm} {','.join(reversed(rest.split(', ')))}"
    request = HttpRequest("POST", "/", "", {"x-amz-date": "20231114T221320Z", "authorization": header})
    assert read_authorization(request).signature == "0" * 64


@pytest.mark.parametrize(
    "date", [None, "", "yesterday", "20231314T221320Z", "20231114T221320", "2023-11-14T22:13:20Z"]
)
def test_broken_dates(date: str | None) -> None:
    headers = {"authorization": GOOD.replace("20231114", "20231314")}
    if date is not None:
        headers["x-amz-date"] = date
    assert refused(HttpRequest("POST", "/", "", headers)).query_code == "IncompleteSignature"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("X-Amz-Algorithm", "HMAC", "IncompleteSignature"),
        ("X-Amz-Credential", "", "IncompleteSignature"),
        ("X-Amz-Date", "20239999T000000Z", "SignatureDoesNotMatch"),
        ("X-Amz-Date", "now", "IncompleteSignature"),
        ("X-Amz-Expires", "x", "IncompleteSignature"),
        ("X-Amz-Expires", "0", "IncompleteSignature"),
        ("X-Amz-Expires", "604801", "IncompleteSignature"),
        ("X-Amz-SignedHeaders", "x", "SignatureDoesNotMatch"),
        ("X-Amz-Signature", "x", "SignatureDoesNotMatch"),
    ],
)
def test_broken_presigned_urls(name: str, value: str, code: str) -> None:
    query = signed(get_request(Action="ListQueues"), expires=60).query
    pairs = [pair if not pair.startswith(f"{name}=") else f"{name}={value}" for pair in query.split("&")]
    assert refused(HttpRequest("GET", "/", "&".join(pairs), {"host": HOST})).query_code == code
