"""Signatures over whatever a request has become, so that mutations get past authentication."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote

from penstock.sqs.errors import SqsError
from penstock.sqs.protocols.http import request_of
from penstock.sqs.signing.canonical_request import canonical_requests
from penstock.sqs.signing.signing_keys import SigningKeys, sha256_hex
from tests.fuzz.grammar import REGION
from tests.fuzz.mutations import Headers

_SIGNED = ("content-type", "host", "x-amz-date", "x-amz-security-token", "x-amz-target")
_keys = SigningKeys()


class Credentials(NamedTuple):
    """Who signs."""

    access_key: str
    secret: str


def signed(
    method: str, target: str, headers: Headers, body: bytes, credentials: Credentials, now_s: int
) -> Headers:
    """The headers with a date and a signature; as they were, where nothing can be signed."""
    timestamp = _timestamp(now_s)
    dated = [(name, value) for name, value in headers if name != "x-amz-date"] + [("x-amz-date", timestamp)]
    present = {name for name, _ in dated}
    names = tuple(name for name in _SIGNED if name in present)
    scope = f"{timestamp[:8]}/{REGION}/sqs/aws4_request"
    signature = _signature(method, target, dated, body, names, credentials.secret, timestamp, scope)
    value = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return [*dated, ("authorization", value)]


def presigned(method: str, target: str, headers: Headers, credentials: Credentials, now_s: int) -> str:
    """The target with a signature among its parameters."""
    timestamp = _timestamp(now_s)
    scope = f"{timestamp[:8]}/{REGION}/sqs/aws4_request"
    credential = quote(f"{credentials.access_key}/{scope}", safe="")
    target += "&" if "?" in target else "?"
    target += (
        f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={timestamp}"
        "&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
    )
    signature = _signature(method, target, headers, b"", ("host",), credentials.secret, timestamp, scope)
    return f"{target}&X-Amz-Signature={signature}"


def _signature(
    method: str,
    target: str,
    headers: Headers,
    body: bytes,
    names: tuple[str, ...],
    secret: str,
    timestamp: str,
    scope: str,
) -> str:
    request = request_of(method, target, [(n.encode(), v.encode("latin-1")) for n, v in headers], body)
    try:
        canonical = canonical_requests(request, names)
    except SqsError:
        canonical = []
    if not canonical:
        return "0" * 64
    text = f"AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{sha256_hex(canonical[0])}"
    return _keys.get(secret, timestamp[:8], REGION).sign(text.encode())


def _timestamp(now_s: int) -> str:
    return datetime.fromtimestamp(now_s, UTC).strftime("%Y%m%dT%H%M%SZ")
