"""Frames: cut out of a stream at any place, bounded, and refused at the first bytes that cannot be one."""

from __future__ import annotations

import random

import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.frames import PREFIX_BYTES, FrameReader, encode_frame

Whole = tuple[int, bytes, bytes]


def encoded(frame: Whole) -> bytes:
    request_id, head, body = frame
    return b"".join(encode_frame(request_id, head, [body] if body else []))


def fed(reader: FrameReader, data: bytes) -> list[Whole]:
    return [(frame.request_id, bytes(frame.head), bytes(frame.body)) for frame in reader.feed(data)]


def some_frames(dice: random.Random) -> list[Whole]:
    return [
        (
            dice.randrange(2**32),
            dice.randbytes(dice.choice([0, 1, 5, 30, 200])),
            dice.randbytes(dice.choice([0, 0, 3, 100, 5_000])),
        )
        for _ in range(dice.randrange(1, 12))
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_stream_cut_anywhere_gives_the_same_frames(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(20):
        frames = some_frames(dice)
        stream = b"".join(map(encoded, frames))
        reader, found, start = FrameReader(), [], 0
        while start < len(stream):
            end = start + dice.choice([1, 2, 3, 4, 5, 15, 16, 17, 100, 1_000, 6_000, 20_000])
            found += fed(reader, stream[start:end])
            start = end
        assert found == frames
        assert reader.buffered_bytes == 0


def test_what_has_not_arrived_whole_is_counted() -> None:
    stream = encoded((1, b"head", b"body" * 100))
    reader = FrameReader()
    assert fed(reader, stream[:300]) == []
    assert reader.buffered_bytes == 300
    assert fed(reader, stream[300:] + b"\x20\x00") == [(1, b"head", b"body" * 100)]
    assert reader.buffered_bytes == 2


def test_a_body_in_pieces_is_the_body_in_one() -> None:
    assert b"".join(encode_frame(7, b"head", [b"one", b"", b"two"])) == encoded((7, b"head", b"onetwo"))


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"SSH-"]
)
@pytest.mark.parametrize("before", [b"", encoded((1, b"a", b"b"))])
def test_garbage_is_refused_at_its_fourth_byte(garbage: bytes, before: bytes) -> None:
    reader = FrameReader()
    reader.feed(before + garbage[:3])
    with pytest.raises(PenstockError, match="a frame of") as refused:
        reader.feed(garbage[3:4])
    assert refused.value.code is ErrorCode.BAD_FRAME


def test_every_flipped_bit_is_noticed() -> None:
    stream = encoded((3, b"head", b"body"))
    codes: set[ErrorCode] = set()
    for bit in range(8 * len(stream)):
        damaged = bytearray(stream)
        damaged[bit // 8] ^= 1 << bit % 8
        reader = FrameReader(frame_bytes=len(stream))
        try:
            assert fed(reader, bytes(damaged)) == [], "a damaged frame was taken for a whole one"
        except PenstockError as error:
            codes.add(error.code)
    assert codes == {ErrorCode.BAD_FRAME}


def test_a_head_larger_than_its_frame_is_refused() -> None:
    from crc32c import crc32c

    rest = (9).to_bytes(4, "little") + (50).to_bytes(4, "little") + b"short"
    stream = (4 + len(rest)).to_bytes(4, "little") + crc32c(rest).to_bytes(4, "little") + rest
    assert len(stream) > PREFIX_BYTES
    with pytest.raises(PenstockError, match="a head of 50 bytes"):
        FrameReader().feed(stream)
