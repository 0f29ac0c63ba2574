"""Frames under Hypothesis: any frames, cut anywhere; any bytes at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.frames import FrameReader, encode_frame

FRAMES = st.tuples(
    st.integers(0, 2**32 - 1), st.binary(max_size=50), st.lists(st.binary(max_size=60), max_size=4)
)


@given(st.lists(FRAMES, max_size=8), st.lists(st.integers(1, 80), min_size=1))
def test_any_frames_cut_anywhere_come_back(
    frames: list[tuple[int, bytes, list[bytes]]], cuts: list[int]
) -> None:
    stream = b"".join(piece for frame in frames for piece in encode_frame(*frame))
    reader, found, start, turn = FrameReader(), [], 0, 0
    while start < len(stream):
        end = start + cuts[turn % len(cuts)]
        found += [
            (one.request_id, bytes(one.head), bytes(one.body)) for one in reader.feed(stream[start:end])
        ]
        start, turn = end, turn + 1
    assert found == [(number, head, b"".join(body)) for number, head, body in frames]
    assert reader.buffered_bytes == 0


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_any_bytes_at_all_are_refused_or_wait_within_the_bound(pieces: list[bytes]) -> None:
    reader = FrameReader(frame_bytes=64)
    for piece in pieces:
        code = refusal(reader, piece)
        if code is not None:
            assert code is ErrorCode.BAD_FRAME
            return
        assert reader.buffered_bytes < 4 + 64


def refusal(reader: FrameReader, data: bytes) -> ErrorCode | None:
    try:
        reader.feed(data)
    except PenstockError as error:
        return error.code
    return None


@given(FRAMES, st.data())
def test_a_frame_over_the_bound_is_refused_as_soon_as_its_size_is_known(
    frame: tuple[int, bytes, list[bytes]], data: st.DataObject
) -> None:
    stream = b"".join(encode_frame(*frame))
    bound = data.draw(st.integers(12, len(stream)))
    over = len(stream) - 4 > bound
    assert refusal(FrameReader(frame_bytes=bound), stream[:4]) == (ErrorCode.BAD_FRAME if over else None)
