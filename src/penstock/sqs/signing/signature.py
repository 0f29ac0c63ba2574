"""Signature Version 4: whether a request was signed with a secret, and when.

Payloads are always part of the signature: `UNSIGNED-PAYLOAD` and chunk signatures, which only storage services accept, are
refused. The caller provides the secret of an access key and the time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hmac import compare_digest

from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.signing.authorization import Authorization, Scope, does_not_match
from penstock.sqs.signing.canonical_request import canonical_requests
from penstock.sqs.signing.signing_keys import SERVICE, TERMINATOR, SigningKeys, sha256_hex

SKEW_SECONDS = 15 * 60

TARGET = "x-amz-target"
PAYLOAD = "x-amz-content-sha256"
UNSIGNED = ("UNSIGNED-PAYLOAD", "STREAMING-")
_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
    "Access Key and signing method. Consult the service documentation for details."
)


def invalid_access_key() -> SqsError:
    """The error for an access key that does not exist."""
    return SqsError(
        ErrorKind.INVALID_CLIENT_TOKEN_ID, "The security token included in the request is invalid."
    )


def verify_signature(
    request: HttpRequest,
    authorization: Authorization,
    secret: str,
    now_s: int,
    keys: SigningKeys,
) -> None:
    """Raises unless the request was signed with the secret, lately, and arrived as it was signed."""
    _check_time(authorization, now_s)
    scope = authorization.scope
    _check_what_is_signed(request, scope)
    key = keys.get(secret, scope.day, scope.region)
    for canonical in canonical_requests(request, scope.signed_headers):
        text = (
            f"AWS4-HMAC-SHA256\n{authorization.timestamp}\n"
            f"{scope.day}/{scope.region}/{SERVICE}/{TERMINATOR}\n{sha256_hex(canonical)}"
        )
        if compare_digest(key.sign(text.encode()), authorization.signature):
            return
    raise does_not_match(_MISMATCH)


def _check_time(authorization: Authorization, now_s: int) -> None:
    age_s = now_s - authorization.signed_at_s
    if age_s < -SKEW_SECONDS:
        raise does_not_match(
            f"Signature not yet current: {authorization.timestamp} is still later than "
            f"{_basic(now_s + SKEW_SECONDS)} ({_basic(now_s)} + {SKEW_SECONDS // 60} min.)"
        )
    if authorization.expires_s is not None:
        if age_s > authorization.expires_s:
            raise SqsError(ErrorKind.REQUEST_EXPIRED, "Request has expired.")
    elif age_s > SKEW_SECONDS:
        raise does_not_match(
            f"Signature expired: {authorization.timestamp} is now earlier than "
            f"{_basic(now_s - SKEW_SECONDS)} ({_basic(now_s)} - {SKEW_SECONDS // 60} min.)"
        )


def _basic(moment_s: int) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y%m%dT%H%M%SZ")


def _check_what_is_signed(request: HttpRequest, scope: Scope) -> None:
    headers = request.headers
    # An unsigned target would let anyone on the way turn one action into another.
    if TARGET in headers and TARGET not in scope.signed_headers:
        raise does_not_match(f"'{TARGET}' must be a 'SignedHeader' in the AWS Authorization.")
    payload = headers.get(PAYLOAD)
    if payload is not None and payload.startswith(UNSIGNED):
        raise does_not_match(f"{payload[:64]} is not supported: the payload must be signed.")
