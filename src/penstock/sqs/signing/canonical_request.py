"""The canonical form of a request: the text that Signature Version 4 signs.

Both sides build it from what they see, so everything signed has arrived unchanged. The payload's digest is always computed
here, never taken from a header.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.refusals import request_too_large
from penstock.sqs.signing.signing_keys import sha256_hex

QUERY_CHARACTERS = 1024 * 1024
SIGNATURE_PARAMETER = "X-Amz-Signature"

_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+/?|/")
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")


def canonical_requests(request: HttpRequest, signed_headers: tuple[str, ...]) -> list[bytes]:
    """The canonical forms that may have been signed; none when a header in the list of signed ones did not arrive."""
    headers = request.headers
    lines = [""]
    for name in signed_headers:
        value = headers.get(name)
        if value is None:
            return []
        value = value.strip()
        lines.append(f"{name}:{' '.join(value.split()) if '  ' in value else value}")
    lines += ("", ";".join(signed_headers), sha256_hex(request.body))
    start = f"{request.method}\n{canonical_path(request.path)}\n"
    end = "\n".join(lines)
    return [f"{start}{query}{end}".encode("latin-1", "replace") for query in canonical_queries(request.query)]


def canonical_path(path: str) -> str:
    """The path without dot segments, encoded twice, as for every service except S3."""
    if _PLAIN_PATH.fullmatch(path):
        return path
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    trailing = "/" if kept and path.endswith("/") else ""
    return quote(f"/{'/'.join(kept)}{trailing}", safe="/~")


def canonical_queries(query: str) -> list[str]:
    """The parameters sorted, without the signature itself: encoded in one way, and, when that differs, as sent.

    Some signers sign the text that they send, with `+` for a space or small letters in its escapes. They sign what
    arrived, so this is accepted too.
    """
    if not query:
        return [""]
    if len(query) > QUERY_CHARACTERS:
        raise request_too_large(QUERY_CHARACTERS)
    sent: list[tuple[str, str]] = []
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if pair and name != SIGNATURE_PARAMETER:
            sent.append((name, value))
    encoded = [(_encoded(name), _encoded(value)) for name, value in sent]
    forms = [encoded] if encoded == sent else [encoded, sent]
    return ["&".join(f"{name}={value}" for name, value in sorted(form)) for form in forms]


def _encoded(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~")
