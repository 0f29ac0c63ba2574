"""The depth of a msgpack value, found without decoding it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire.nesting import is_intricate

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300)
    | st.builds(msgspec.msgpack.Ext, st.integers(-100, 100), st.binary(max_size=40))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=3), inner, max_size=20),
)


def nests_deeper_than(most: int, data: bytes) -> bool:
    return is_intricate(data, levels=most, values=1 << 40)


def depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(depth, inside), default=0)


@given(VALUES)
def test_it_counts_what_a_decoder_would(value: Any) -> None:
    encoded, deep = msgspec.msgpack.encode(value), depth(value)
    assert not nests_deeper_than(deep, encoded)
    if deep:
        assert nests_deeper_than(deep - 1, encoded)


@given(st.binary(max_size=200), st.integers(0, 10))
def test_any_bytes_are_answered(data: bytes, most: int) -> None:
    """And whatever a decoder takes is judged rightly."""
    judged = nests_deeper_than(most, data)
    try:
        value = msgspec.msgpack.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError):
        return
    if depth(value) > most:
        assert judged


@pytest.mark.parametrize(
    "data",
    [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xffab", b"\x9f", b"", b"\xc1"],
)
def test_an_announced_length_is_not_believed(data: bytes) -> None:
    assert not nests_deeper_than(1, data)


def test_a_million_levels_take_no_more_than_those_that_are_allowed() -> None:
    assert nests_deeper_than(8, b"\x91" * 1_000_000 + b"\xc0")
    assert not nests_deeper_than(8, b"\x91" * 8 + b"\xc0")


def test_so_many_values_and_no_more() -> None:
    encoded = msgspec.msgpack.encode([1, "two", [3, {"four": 5}]])
    assert not is_intricate(encoded, levels=8, values=8)
    assert is_intricate(encoded, levels=8, values=7)
