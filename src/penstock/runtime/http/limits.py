"""The limits of the HTTP server for one client and for all of them: sizes, counts and times."""

from __future__ import annotations

import msgspec

from penstock.sqs.protocols.http import REQUEST_BYTES

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Every buffer and every wait of the HTTP server has one of these limits."""

    max_connections: int = 16_000
    head_bytes: int = 64 * KIBIBYTE
    """The request line and the headers of one request."""
    headers: int = 128
    target_bytes: int = 16 * KIBIBYTE
    body_bytes: int = REQUEST_BYTES
    buffered_bytes: int = 256 * MEBIBYTE
    """The maximum for all connections together of requests that arrive or are in progress."""
    pipelined: int = 64
    """How many requests of one connection are handled at a time; beyond that it is not read from."""
    write_buffer_bytes: int = 256 * KIBIBYTE
    """A client that leaves more than this unread is not read from."""
    head_seconds: float = 10.0
    """From the first byte of a request to the end of its headers."""
    request_seconds: float = 20.0
    """From the first byte of a request to its last."""
    idle_seconds: float = 75.0
    """How long a connection may stay open without a request."""
    stalled_seconds: float = 30.0
    """A client that reads nothing of its answers for so long is disconnected."""
    linger_seconds: float = 5.0
    """How long a refused client may continue to send before it reads the reason."""
    sweep_seconds: float = 1.0
    """The interval at which the waits above are checked: one timer for all connections."""
    handshake_seconds: float = 10.0
    """How long the TLS handshake may take; until it is done a connection does not count as one."""
    handshakes: int = 1_024
    """The maximum of TLS handshakes at once; the oldest is ended for the next."""
