"""The entry codec."""

from __future__ import annotations

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.entry import (
    END,
    HEADER_BYTES,
    PADDING,
    RECORD,
    Header,
    checksum,
    decode_header,
    decode_table,
    encode_header,
    encode_table,
    entry_bytes,
    payload_is_whole,
    position_of,
)

SEED = 12345


def encode(
    head: bytes, payload: list[bytes], *, partition: int = 3, index: int = 9, kind: int = RECORD
) -> bytes:
    size = sum(map(len, payload))
    header = encode_header(SEED, 7, 800, kind, partition, index, len(head), size, checksum(head, payload))
    whole = header + head + b"".join(payload)
    return whole + PADDING[-len(whole) % 8]


@given(
    st.binary(max_size=50),
    st.lists(st.binary(max_size=50), max_size=4),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
)
def test_an_entry_comes_back(head: bytes, payload: list[bytes], partition: int, index: int) -> None:
    data = b"12345678" + encode(head, payload, partition=partition, index=index)
    header = decode_header(data, 8, SEED)
    size = sum(map(len, payload))
    crc = crc32c(head + b"".join(payload))
    assert header == Header(size, 7, 800, len(head), RECORD, partition, index, crc, len(data) - 8)
    assert len(data) - 8 == entry_bytes(len(head), size)
    assert payload_is_whole(header, data, 8)


def test_every_flipped_bit_shows() -> None:
    data = encode(b"a record head", [b"a pay", b"load"])
    for bit in range(8 * (HEADER_BYTES + 13 + 9)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        header = decode_header(bytes(damaged), 0, SEED)
        if bit < 8 * HEADER_BYTES:
            assert header is None
        else:
            assert header is not None
            assert not payload_is_whole(header, bytes(damaged), 0)


def test_a_header_of_another_directory_is_none() -> None:
    assert decode_header(encode(b"head", []), 0, SEED + 1) is None


@pytest.mark.parametrize("data", [b"", bytes(39), bytes(40), bytes(4096)])
def test_zeros_and_scraps_are_no_entries(data: bytes) -> None:
    assert decode_header(data, 0, SEED) is None


def test_a_payload_that_is_cut_off_is_not_whole() -> None:
    data = encode(b"head", [b"payload of some bytes"])
    header = decode_header(data, 0, SEED)
    assert header is not None
    assert not payload_is_whole(header, data[:-8], 0)


def test_kinds_and_tables() -> None:
    rows = [(0, 5), (2**40, 2**50)]
    data = encode(b"", [encode_table(rows)], kind=END)
    header = decode_header(data, 0, SEED)
    assert header is not None
    assert header.kind == END
    assert decode_table(data[HEADER_BYTES : HEADER_BYTES + header.payload_size]) == rows


def test_positions_rise_with_files_and_offsets() -> None:
    assert position_of(1, 2**32 - 8) < position_of(2, 0) < position_of(2, 8)
