"""Headers of the PROXY protocol: what balancers send is read, everything else is refused, and nothing is believed too early."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire.frames import encode_frame
from penstock.wire.messages import Hello, encode_message
from penstock.wire.proxy_protocol import (
    HEADER_BYTES,
    LINE,
    LINE_BYTES,
    MORE,
    SIGNATURE,
    ProxyHeader,
    ProxyHeaderError,
    begins_header,
    read_header,
)

PORTS = st.integers(0, 0xFFFF)
REST = st.binary(max_size=40)
FIELDS = st.lists(
    st.tuples(st.integers(0, 0xFF).filter(lambda kind: kind != 0x20), st.binary(max_size=60)), max_size=5
)


def field(kind: int, value: bytes) -> bytes:
    return bytes([kind]) + len(value).to_bytes(2, "big") + value


def second(command: int, family: int, said: bytes) -> bytes:
    return SIGNATURE + bytes([command, family]) + len(said).to_bytes(2, "big") + said


def tcp4(source: str = "203.0.113.9", fields: bytes = b"") -> bytes:
    addresses = IPv4Address(source).packed + IPv4Address("10.0.0.1").packed
    return second(0x21, 0x11, addresses + b"\x12\x34\x24\x6e" + fields)


def tcp6(source: str, fields: bytes = b"") -> bytes:
    return second(0x21, 0x21, IPv6Address(source).packed + bytes(16) + b"\x12\x34\x24\x6e" + fields)


# --- version 1 --------------------------------------------------------------------------------------------------


@given(st.ip_addresses(v=4), st.ip_addresses(v=4), PORTS, PORTS, REST)
def test_lines_about_ipv4(source: object, destination: object, port: int, other: int, rest: bytes) -> None:
    line = f"PROXY TCP4 {source} {destination} {port} {other}\r\n".encode()
    assert read_header(line + rest) == ProxyHeader(len(line), str(source), None)


@given(st.ip_addresses(v=6), st.ip_addresses(v=6), PORTS, PORTS, REST)
def test_lines_about_ipv6(
    source: IPv6Address, destination: object, port: int, other: int, rest: bytes
) -> None:
    line = f"PROXY TCP6 {source} {destination} {port} {other}\r\n".encode()
    assert read_header(line + rest) == ProxyHeader(len(line), str(source.ipv4_mapped or source), None)


@pytest.mark.parametrize("line", ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN ffff:: ffff:: 65535 65535\r\n"])
def test_a_balancer_may_not_know(line: str) -> None:
    assert read_header(line.encode()) == ProxyHeader(len(line), "", None)


@pytest.mark.parametrize(
    "line",
    [
        "PROXY TCP4 203.0.113.9 10.0.0.1 1 2 \r\n",
        "PROXY  TCP4 203.0.113.9 10.0.0.1 1 2\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 1\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 1 65536\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 01 2\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 +1 2\r\n",
        "PROXY TCP4 203.0.113.9 10.0.0.1 -1 2\r\n",
        "PROXY TCP4 203.0.113.09 10.0.0.1 1 2\r\n",
        "PROXY TCP4 203.0.113 10.0.0.1 1 2\r\n",
        "PROXY TCP4 ::1 10.0.0.1 1 2\r\n",
        "PROXY TCP4 203.0.113.9 ::1 1 2\r\n",
        "PROXY TCP6 203.0.113.9 ::1 1 2\r\n",
        "PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
        "PROXY UDP4 203.0.113.9 10.0.0.1 1 2\r\n",
        "PROXY tcp4 203.0.113.9 10.0.0.1 1 2\r\n",
        "PROXY TCP4 localhost 10.0.0.1 1 2\r\n",
        "PROXY UNKNOWNX\r\n",
        "PROXY \r\n",
        f"PROXY UNKNOWN {'x' * 200}\r\n",
        "PROXY TCP4 " + "1" * 200,
        "PROXY UNKNOWN \x00\r\n",
    ],
)
def test_what_is_not_exactly_a_line_is_refused(line: str) -> None:
    with pytest.raises(ProxyHeaderError):
        read_header(line.encode("latin-1"))


def test_the_longest_line_there_is() -> None:
    longest = f"PROXY UNKNOWN {'f' * 39} {'f' * 39} 65535 65535\r\n".encode()
    assert len(longest) <= LINE_BYTES
    assert read_header(longest) == ProxyHeader(len(longest), "", None)


# --- version 2 --------------------------------------------------------------------------------------------------


@given(st.ip_addresses(v=4), FIELDS, REST)
def test_headers_about_ipv4(source: object, fields: list[tuple[int, bytes]], rest: bytes) -> None:
    header = tcp4(str(source), b"".join(field(*one) for one in fields))
    assert read_header(header + rest) == ProxyHeader(len(header), str(source), None)


@given(st.ip_addresses(v=6), FIELDS, REST)
def test_headers_about_ipv6(source: IPv6Address, fields: list[tuple[int, bytes]], rest: bytes) -> None:
    header = tcp6(str(source), b"".join(field(*one) for one in fields))
    assert read_header(header + rest) == ProxyHeader(len(header), str(source.ipv4_mapped or source), None)


@pytest.mark.parametrize(("flags", "secure"), [(0, False), (1, True), (7, True), (6, False)])
def test_whether_the_client_spoke_tls(flags: int, secure: bool) -> None:
    header = tcp4(fields=field(4, b"") + field(0x20, bytes([flags]) + bytes(4) + field(0x21, b"TLSv1.3")))
    assert read_header(header) == ProxyHeader(len(header), "203.0.113.9", secure)


def test_the_balancers_own_connections_and_those_of_nobody_known() -> None:
    own = second(0x20, 0x00, b"")
    assert read_header(own) == ProxyHeader(16, None, None)
    # Whatever is said of a connection of its own is to be ignored.
    assert read_header(second(0x20, 0x11, tcp4()[16:])) == ProxyHeader(28, None, None)
    assert read_header(second(0x21, 0x00, b"")) == ProxyHeader(16, "", None)
    assert read_header(second(0x21, 0x31, bytes(216))) == ProxyHeader(232, "", None)


@pytest.mark.parametrize(
    "header",
    [
        second(0x11, 0x11, bytes(12)),
        second(0x22, 0x11, bytes(12)),
        second(0x21, 0x12, bytes(12)),
        second(0x21, 0x22, bytes(36)),
        second(0x21, 0x41, bytes(36)),
        second(0x21, 0x11, bytes(11)),
        second(0x21, 0x21, bytes(35)),
        second(0x21, 0x31, bytes(215)),
        second(0x21, 0x11, bytes(12) + b"\x04\xff\xff"),
        second(0x21, 0x11, bytes(12) + b"\x04\x00"),
        SIGNATURE + b"\x21\x11\xff\xff",
        SIGNATURE + b"\x21\x11" + (HEADER_BYTES - 15).to_bytes(2, "big"),
    ],
)
def test_what_is_not_exactly_a_header_is_refused(header: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        read_header(header)


# --- bytes as they come -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [tcp4(), tcp6("::1"), b"PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n"])
def test_a_header_may_come_in_pieces(header: bytes) -> None:
    for size in range(len(header)):
        assert read_header(header[:size]) == MORE
    assert isinstance(read_header(header), ProxyHeader)


def test_no_greeting_of_a_client_is_taken_for_a_header() -> None:
    for length in range(600):
        frame = b"".join(encode_frame(1, encode_message(Hello([1], "x" * length))))
        assert read_header(frame) is None
        assert not begins_header(frame)
    assert read_header(b"\x16\x03\x01\x02\x00\x01") is None  # TLS
    assert read_header(b"GET / HTTP/1.1\r\n") is None
    assert read_header(b"") == MORE


@given(
    st.sampled_from([LINE, SIGNATURE, b"", SIGNATURE + b"\x21\x11", LINE + b"TCP4 "]), st.binary(max_size=300)
)
def test_any_bytes_are_answered(begin: bytes, rest: bytes) -> None:
    """And what is taken for a header lies within what came, and within the bounds."""
    data = begin + rest
    try:
        found = read_header(data)
    except ProxyHeaderError:
        return
    if isinstance(found, ProxyHeader):
        assert 0 < found.size <= min(len(data), HEADER_BYTES)
        assert read_header(data[: found.size]) == found
    elif found == MORE:
        assert len(data) < HEADER_BYTES
