"""Which frames are written at once; `tests/streams/test_framed.py` writes them over an event loop."""

from __future__ import annotations

from penstock.model.batch import Buffer
from penstock.wire.frames import LONE_TURNS, FrameGathering


def turn(gathering: FrameGathering, *frames: bytes) -> tuple[list[bytes], list[Buffer]]:
    """The frames of one turn: those written at once, and what is written when it ends."""
    starts = []
    at_once = []
    for frame in frames:
        starts.append(gathering.is_between_turns)
        if gathering.add([frame]):
            at_once.append(frame)
    assert starts == [True, *[False] * (len(frames) - 1)]
    return at_once, gathering.end_turn()


def test_the_first_frame_of_a_turn_is_written_at_once_and_the_others_together() -> None:
    assert turn(FrameGathering(), b"a", b"b", b"c") == ([b"a"], [b"b", b"c"])


def test_after_a_burst_frames_wait_until_turns_stay_alone() -> None:
    gathering = FrameGathering()
    turn(gathering, b"a", b"b")
    for _ in range(LONE_TURNS):
        assert turn(gathering, b"one") == ([], [b"one"])
    assert turn(gathering, b"one") == ([b"one"], [])


def test_a_connection_that_gathers_writes_nothing_at_once() -> None:
    assert turn(FrameGathering(gathers=True), b"one") == ([], [b"one"])


def test_what_was_gathered_is_forgotten_with_the_connection() -> None:
    gathering = FrameGathering(gathers=True)
    gathering.add([b"one"])
    gathering.clear()
    assert gathering.end_turn() == []
