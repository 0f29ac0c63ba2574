"""Durations, sizes and addresses: what is read, what is refused, and that writing and reading agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.config.address import Address
from penstock.config.units import format_duration, format_size, parse_duration_ms, parse_size_bytes


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("30", 30_000),
        ("0", 0),
        ("1.5", 1_500),
        ("250ms", 250),
        ("30s", 30_000),
        ("0.5s", 500),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("1w", 604_800_000),
        ("1h30m", 5_400_000),
        (" 10 s ", 10_000),
    ],
)
def test_a_duration_is_read(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "1x", "1h30", "0.0001s", "1 2", "1s!", "ten", "1e3"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_duration_ms(text)


@given(some.integers(0, 10**12))
def test_a_written_duration_reads_back(milliseconds: int) -> None:
    assert parse_duration_ms(format_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("4096", 4096),
        ("0", 0),
        ("64KiB", 65_536),
        ("64kib", 65_536),
        ("1MiB", 1_048_576),
        ("1.5MiB", 1_572_864),
        ("2 GiB", 2 << 30),
        ("10MB", 10_000_000),
        ("12B", 12),
    ],
)
def test_a_size_is_read(text: str, size_bytes: int) -> None:
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "KiB", "-1", "1.5", "1 K", "64KiBs", "1MiB2"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_size_bytes(text)


@given(some.integers(0, 1 << 20), some.sampled_from([1, 1 << 10, 1 << 20, 1 << 30]))
def test_a_written_whole_size_reads_back(number: int, scale: int) -> None:
    text = format_size(number * scale)
    if "." not in text:
        assert parse_size_bytes(text) == number * scale


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9400", "127.0.0.1", 9400),
        ("localhost", "localhost", 9326),
        (":9400", "127.0.0.1", 9400),
        ("[::1]:9400", "::1", 9400),
        ("[::1]", "::1", 9326),
        ("::1", "::1", 9326),
        ("0.0.0.0:0", "0.0.0.0", 0),
    ],
)
def test_an_address_is_read(text: str, host: str, port: int) -> None:
    assert Address.parse(text, default_port=9326) == Address(host, port)


@pytest.mark.parametrize(
    "text", ["host:port", "host:70000", "host:-1", "[::1", "[::1]9400", "a b:1", "http://x"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Address.parse(text, default_port=9326)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, is_loopback: bool) -> None:
    assert Address(host, 1).is_loopback is is_loopback


def test_an_address_is_written_the_way_it_is_read() -> None:
    assert str(Address("::1", 9326)) == "[::1]:9326"
    assert str(Address("localhost", 1)) == "localhost:1"
