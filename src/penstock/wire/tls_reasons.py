"""The meaning of OpenSSL's errors when it refuses a connection: the same for servers and clients."""

from __future__ import annotations

_NO_TLS = {
    "HTTP_REQUEST",
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "UNKNOWN_PROTOCOL",
    "BAD_RECORD_TYPE",
}
_WRONG_NAME = (62, 64)
"""A mismatch of the host name, and of the IP address."""
_GREETINGS = (b"\x16\x03\x01", b"\x16\x03\x03")
"""How a handshake begins; as a frame of ours it would be longer than a greeting may be."""


def speaks_no_tls(reason: str | None) -> bool:
    """Whether the other side sent something that is not TLS at all."""
    return reason in _NO_TLS


def is_wrong_name(verify_code: int) -> bool:
    """Whether a certificate was refused only because it has another name."""
    return verify_code in _WRONG_NAME


def begins_tls(data: bytes) -> bool:
    """Whether the first bytes of a connection are those of a client that speaks TLS."""
    return data.startswith(_GREETINGS)
