"""The PROXY protocol: how a load balancer names the client of a connection, before its first byte.

Version 1 is a line of text, version 2 a header of bytes. It is read only from trusted addresses
(`native.trusted_proxies`). Every length is checked before it is used, and anything that is not exactly a header is
refused, never guessed.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Literal, NamedTuple

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
"""Version 2 begins with it."""
LINE = b"PROXY "
"""Version 1 begins with it."""
LINE_BYTES = 107
"""No line of version 1 is longer, with its end."""
FIXED_BYTES = 16
HEADER_BYTES = 2_048
"""No header is taken that is longer: addresses have 36 bytes, and what balancers add to them some hundred."""

_LOCAL, _PROXY = 0x20, 0x21
_UNSPECIFIED, _TCP4, _TCP6, _UNIX = 0x00, 0x11, 0x21, 0x31
_ADDRESS_BYTES = {_UNSPECIFIED: 0, _TCP4: 12, _TCP6: 36, _UNIX: 216}
_TLS_FIELD = 0x20
_FIELD_BYTES = 3
_SPOKE_TLS = 0x01
_PORT = r"(?:0|[1-9][0-9]{0,4})"
_LINES = re.compile(
    rf"PROXY (?:UNKNOWN(?: [\x20-\x7e]*)?|(TCP4|TCP6) ([0-9A-Fa-f:.]+) ([0-9A-Fa-f:.]+) ({_PORT}) ({_PORT}))\r\n"
)

MORE: Literal["more"] = "more"
"""So far it may be a header; it takes more bytes to know."""


class ProxyHeaderError(Exception):
    """It begins like a header and is none; the message says why."""


class ProxyHeader(NamedTuple):
    """The contents of a header."""

    size: int
    """So many bytes of the connection are the header."""
    address: str | None
    """Of the client; empty: the balancer does not know it. None: the connection is the balancer's own."""
    secure: bool | None
    """Whether the client used TLS with the balancer; None: unknown."""


def begins_header(data: bytes) -> bool:
    """Whether the first bytes of a connection are those of a header; as a frame of ours they would be too long."""
    return data.startswith((LINE, SIGNATURE))


def read_header(data: bytes) -> ProxyHeader | Literal["more"] | None:
    """The header at the beginning of a connection; None: there is none. Raises `ProxyHeaderError`."""
    if data.startswith(SIGNATURE):
        return _read_second(data)
    if data.startswith(LINE):
        return _read_first(data)
    is_short = SIGNATURE.startswith(data) or LINE.startswith(data)
    return MORE if is_short else None


def _read_first(data: bytes) -> ProxyHeader | Literal["more"]:
    end = data.find(b"\r\n", 0, LINE_BYTES)
    if end < 0:
        if len(data) >= LINE_BYTES:
            raise ProxyHeaderError(f"its line is longer than {LINE_BYTES} bytes")
        return MORE
    size = end + 2
    match = _LINES.fullmatch(data[:size].decode("latin-1"))
    if match is None:
        raise ProxyHeaderError("its line is not one of version 1")
    family, source, destination, *ports = match.groups()
    if family is None:
        return ProxyHeader(size, "", None)
    if any(int(port) > 0xFFFF for port in ports):
        raise ProxyHeaderError("its line names a port above 65535")
    kind = IPv4Address if family == "TCP4" else IPv6Address
    try:
        kind(destination)
        return ProxyHeader(size, _plain(kind(source)), None)
    except ValueError:
        raise ProxyHeaderError(f"its line names something that is no address of {family}") from None


def _read_second(data: bytes) -> ProxyHeader | Literal["more"]:
    if len(data) < FIXED_BYTES:
        return MORE
    command, family = data[12], data[13]
    length = int.from_bytes(data[14:16], "big")
    if command not in (_LOCAL, _PROXY):
        raise ProxyHeaderError(f"its command is {command:#x}, which version 2 does not have")
    size = FIXED_BYTES + length
    if size > HEADER_BYTES:
        raise ProxyHeaderError(f"it has {size} bytes, more than {HEADER_BYTES}")
    if len(data) < size:
        return MORE
    if command == _LOCAL:
        return ProxyHeader(size, None, None)
    address_bytes = _ADDRESS_BYTES.get(family)
    if address_bytes is None:
        raise ProxyHeaderError(f"it is about family and protocol {family:#x}, and not about TCP")
    if length < address_bytes:
        raise ProxyHeaderError(f"its {length} bytes are too few for an address")
    said = data[FIXED_BYTES:size]
    address = ""
    if family == _TCP4:
        address = str(IPv4Address(said[:4]))
    elif family == _TCP6:
        address = _plain(IPv6Address(said[:16]))
    return ProxyHeader(size, address, _secure(said[address_bytes:]))


def _secure(fields: bytes) -> bool | None:
    """The field about TLS, if there is one."""
    found: bool | None = None
    at = 0
    while at < len(fields):
        if at + _FIELD_BYTES > len(fields):
            raise ProxyHeaderError("its last field is cut off")
        kind, size = fields[at], int.from_bytes(fields[at + 1 : at + _FIELD_BYTES], "big")
        begin, at = at + _FIELD_BYTES, at + _FIELD_BYTES + size
        if at > len(fields):
            raise ProxyHeaderError("its last field is cut off")
        if kind == _TLS_FIELD and size:
            found = bool(fields[begin] & _SPOKE_TLS)
    return found


def _plain(address: IPv4Address | IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
