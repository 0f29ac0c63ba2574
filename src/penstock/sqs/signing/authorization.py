"""The signature of a request: an `Authorization` header, or parameters of a presigned URL.

It is only parsed here, not verified. If it cannot be parsed, the error says what is missing, because people write signers
by hand.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.signing.signing_keys import SERVICE, TERMINATOR

ALGORITHM = "AWS4-HMAC-SHA256"
HEADER_CHARACTERS = 4096
TIMESTAMP_CHARACTERS = 16
SIGNED_HEADERS = 64
EXPIRES_SECONDS_MAX = 604_800

_SIGNATURE = re.compile(r"[0-9a-f]{64}")
_TIMESTAMP = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_ACCESS_KEY = re.compile(r"[A-Za-z0-9_.+=@-]{1,128}")
_REGION = re.compile(r"[A-Za-z0-9-]{1,64}")
_HEADER_NAMES = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+(?:;[!#$%&'*+.^_`|~0-9a-z-]+)*")
_PRESIGNED = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
)


class Scope(NamedTuple):
    """The key, and the day, region and headers that were signed."""

    access_key: str
    day: str
    region: str
    signed_headers: tuple[str, ...]


class Authorization(msgspec.Struct, frozen=True):
    """A signature and everything that it covers."""

    scope: Scope
    signature: str
    timestamp: str
    """As signed: `YYYYMMDDTHHMMSSZ`."""
    signed_at_s: int
    expires_s: int | None = None
    """Seconds a presigned URL is good for; None for a header."""


def incomplete(message: str) -> SqsError:
    """A signature that lacks a part or has it in the wrong form."""
    return SqsError(ErrorKind.INCOMPLETE_SIGNATURE, message)


def does_not_match(message: str) -> SqsError:
    """A signature that cannot be the right one."""
    return SqsError(ErrorKind.SIGNATURE_DOES_NOT_MATCH, message)


def read_authorization(request: HttpRequest) -> Authorization:
    """The signature of a request; raises when there is none or it is not whole."""
    header = request.headers.get("authorization")
    if header is not None:
        return _read_header(request, header)
    if "X-Amz-Signature=" in request.query or "X-Amz-Algorithm=" in request.query:
        return _read_query(request.query)
    raise SqsError(ErrorKind.MISSING_AUTHENTICATION_TOKEN, "Request is missing Authentication Token")


# --- the header ---------------------------------------------------------------------------------------------


def _read_header(request: HttpRequest, header: str) -> Authorization:
    if len(header) > HEADER_CHARACTERS:
        raise incomplete("The Authorization header is too long.")
    # Everything but the signature is the same all day for one client, so it is taken apart once.
    start, found, signature = header.rpartition("Signature=")
    if not found or not _SIGNATURE.fullmatch(signature):
        start, signature = _signature_elsewhere(header)
    scope = _read_scope(start)
    timestamp, signed_at_s = _signing_time(request)
    _check_day(scope, timestamp)
    return Authorization(scope, signature, timestamp, signed_at_s)


def _signature_elsewhere(header: str) -> tuple[str, str]:
    """A signature that is not the last part, or not a signature."""
    algorithm, _, rest = header.partition(" ")
    others: list[str] = []
    signature = ""
    for part in rest.split(","):
        name, _, value = part.strip().partition("=")
        if name == "Signature":
            signature = value
        else:
            others.append(part.strip())
    start = f"{algorithm} {', '.join(others)}"
    if algorithm == ALGORITHM and not _SIGNATURE.fullmatch(signature):
        _read_scope(start)  # says first what else is missing
        if not signature:
            raise incomplete("Authorization header requires 'Signature' parameter.")
        raise does_not_match("The Signature is not 64 characters of lower-case hexadecimal.")
    return start, signature


@lru_cache(maxsize=4096)
def _read_scope(start: str) -> Scope:
    """The header without its signature; the cache is bounded in number, its keys in length by the caller."""
    algorithm, _, rest = start.strip().partition(" ")
    if algorithm != ALGORITHM:
        raise incomplete(f"Unsupported AWS 'algorithm': '{algorithm[:64]}'.")
    parts: dict[str, str] = {}
    for part in rest.split(","):
        text = part.strip()
        name, equals, value = text.partition("=")
        if not text:
            continue
        if not equals:
            raise incomplete(
                f"'{text[:128]}' not a valid key=value pair (missing equal-sign) in Authorization header."
            )
        if (
            name in parts or name == "Signature"
        ):  # two headers arrive as one, and it is ambiguous which one is valid
            raise incomplete(f"Authorization header has '{name[:64]}' more than once.")
        parts[name] = value
    for name in ("Credential", "SignedHeaders"):
        if not parts.get(name):
            raise incomplete(f"Authorization header requires '{name}' parameter.")
    return _scope_of(parts["Credential"], parts["SignedHeaders"])


def _signing_time(request: HttpRequest) -> tuple[str, int]:
    headers = request.headers
    text = headers.get("x-amz-date") or headers.get("date")
    if text is None:
        raise incomplete(
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
        )
    if len(text) == TIMESTAMP_CHARACTERS and (signed_at_s := seconds_of(text)) is not None:
        return text, signed_at_s
    try:  # the form of HTTP's own dates
        moment = datetime.strptime(text[:64], "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    except ValueError:
        raise incomplete(_bad_date(text)) from None
    return moment.strftime("%Y%m%dT%H%M%SZ"), int(moment.timestamp())


# --- presigned URLs -----------------------------------------------------------------------------------------


def _read_query(query: str) -> Authorization:
    values: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name in _PRESIGNED:
            values[name] = unquote(value[:HEADER_CHARACTERS])
    for name in _PRESIGNED:
        if not values.get(name):
            raise incomplete(f"AWS query-string parameters must include '{name}'.")
    algorithm, credential, timestamp, expires, names, signature = (values[name] for name in _PRESIGNED)
    if algorithm != ALGORITHM:
        raise incomplete(f"Unsupported AWS 'algorithm': '{algorithm[:64]}'.")
    if not _TIMESTAMP.fullmatch(timestamp):
        raise incomplete(_bad_date(timestamp))
    if not (expires.isascii() and expires.isdecimal() and len(expires) <= 8):
        raise incomplete("X-Amz-Expires should be a number.")
    if not 1 <= int(expires) <= EXPIRES_SECONDS_MAX:
        raise incomplete(f"X-Amz-Expires must be between 1 and {EXPIRES_SECONDS_MAX} seconds.")
    scope = _scope_of(credential, names)
    _check_day(scope, timestamp)
    if not _SIGNATURE.fullmatch(signature):
        raise does_not_match("The Signature is not 64 characters of lower-case hexadecimal.")
    return Authorization(scope, signature, timestamp, _epoch_s(timestamp), int(expires))


# --- parts of both ------------------------------------------------------------------------------------------


def _scope_of(credential: str, signed_headers: str) -> Scope:
    parts = credential.split("/")
    if len(parts) != 5:
        raise incomplete(
            "Credential must have exactly 5 slash-delimited elements, "
            f"e.g. keyid/date/region/service/term, got '{credential[:256]}'"
        )
    access_key, day, region, service, terminator = parts
    if not _ACCESS_KEY.fullmatch(access_key):
        raise SqsError(
            ErrorKind.INVALID_CLIENT_TOKEN_ID, "The security token included in the request is invalid."
        )
    if not _REGION.fullmatch(region):
        raise does_not_match(f"Credential should be scoped to a valid region, not '{region[:64]}'.")
    if service != SERVICE:
        raise does_not_match(f"Credential should be scoped to correct service: '{SERVICE}'.")
    if terminator != TERMINATOR:
        raise does_not_match(
            f"Credential should be scoped with a valid terminator: '{TERMINATOR}', not '{terminator[:64]}'."
        )
    names = tuple(signed_headers.split(";"))
    if len(names) > SIGNED_HEADERS or not _HEADER_NAMES.fullmatch(signed_headers):
        raise incomplete("SignedHeaders must be names in lower case, separated by semicolons.")
    if "host" not in names:
        raise does_not_match("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
    return Scope(access_key, day, region, names)


def _check_day(scope: Scope, timestamp: str) -> None:
    if scope.day != timestamp[:8]:
        raise does_not_match(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"'{scope.day[:16]}' != '{timestamp[:8]}', from '{timestamp}'."
        )


def _epoch_s(timestamp: str) -> int:
    seconds = seconds_of(timestamp)
    if seconds is None:
        raise incomplete(_bad_date(timestamp))
    return seconds


@lru_cache(maxsize=512)
def seconds_of(timestamp: str) -> int | None:
    """The time in a timestamp of 16 characters, if it is valid; requests of one second share theirs."""
    if not _TIMESTAMP.fullmatch(timestamp):
        return None
    try:
        return int(datetime.strptime(timestamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _bad_date(text: str) -> str:
    return f"Date must be in ISO-8601 'basic format'. Got '{text[:64]}'. See http://en.wikipedia.org/wiki/ISO_8601"
