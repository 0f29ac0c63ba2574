"""Signed HTTP requests as bytes, made as cheaply as they can be: what does not change is written once.

A signature holds for a quarter of an hour, so a request that is the same every time is signed once and sent often;
the server verifies it every time. What differs from answer to answer (receipt handles) is signed when it is sent.
"""

from __future__ import annotations

from datetime import UTC, datetime

from benchmarks.sqs.tasks import Endpoint
from penstock.sqs.names import DEFAULT_REGION
from penstock.sqs.protocols.json_protocol import CONTENT_TYPE, TARGET_PREFIX
from penstock.sqs.signing.signing_keys import SERVICE, TERMINATOR, derive_key, sha256_hex

_SIGNED_HEADERS = "content-type;host;x-amz-date;x-amz-target"


class Signer:
    """Makes the requests of one action."""

    __slots__ = ("_canonical", "_end", "_head", "_key", "_text")

    def __init__(self, endpoint: Endpoint, action: str, now: datetime | None = None) -> None:
        moment = now if now is not None else datetime.now(UTC)
        timestamp = moment.strftime("%Y%m%dT%H%M%SZ")
        day = timestamp[:8]
        host = f"{endpoint.host}:{endpoint.port}"
        target = TARGET_PREFIX + action
        scope = f"{day}/{DEFAULT_REGION}/{SERVICE}/{TERMINATOR}"
        self._key = derive_key(endpoint.secret, day, DEFAULT_REGION)
        self._canonical = (
            f"POST\n/\n\ncontent-type:{CONTENT_TYPE}\nhost:{host}\nx-amz-date:{timestamp}\n"
            f"x-amz-target:{target}\n\n{_SIGNED_HEADERS}\n"
        )
        self._text = f"AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n"
        self._head = (
            f"POST / HTTP/1.1\r\nHost: {host}\r\nUser-Agent: penstock-bench\r\nContent-Type: {CONTENT_TYPE}\r\n"
            f"X-Amz-Target: {target}\r\nX-Amz-Date: {timestamp}\r\n"
            f"Authorization: AWS4-HMAC-SHA256 Credential={endpoint.access_key}/{scope}, "
            f"SignedHeaders={_SIGNED_HEADERS}, Signature="
        )
        self._end = "\r\nContent-Length: "

    def request(self, body: bytes) -> bytes:
        """The whole request."""
        canonical = self._canonical + sha256_hex(body)
        signature = self._key.sign((self._text + sha256_hex(canonical.encode())).encode())
        return f"{self._head}{signature}{self._end}{len(body)}\r\n\r\n".encode() + body
