"""How far a reader of a log reads ahead, without a server: questions out, answers in."""

from __future__ import annotations

from penstock.client_core.read_ahead import (
    WAIT_MS,
    Arrived,
    Contradiction,
    Dropped,
    Effect,
    Question,
    RangeRead,
    ReadAnswer,
    ReadingAhead,
)


def _found(first: int, following: int, end: int, batch_messages: int = 1) -> ReadAnswer:
    """So many messages of ten bytes."""
    return ReadAnswer(first, following, end, following - first, 10 * (following - first), batch_messages)


def _told(effects: list[Effect]) -> list[str]:
    def one(effect: Effect) -> str:
        match effect:
            case Question(read, _, _, wait_ms):
                return f"ask [{read.start}, {read.stop or ''}){' and wait' if wait_ms else ''}"
            case Dropped(read):
                return f"drop {read.start}"
            case Arrived(read, up_to):
                return f"keep {read.start}{f' up to {up_to}' if up_to is not None else ''}"
            case Contradiction(read):
                return f"contradiction {read.start}"

    return [one(effect) for effect in effects]


def _asked(effects: list[Effect]) -> list[RangeRead]:
    return [effect.read for effect in effects if isinstance(effect, Question)]


def _ahead(
    end: int = 100, *, start: int = 1, limit: int | None = None, stop: int | None = None
) -> ReadingAhead:
    return ReadingAhead(start, end, stop=stop, limit=limit, slice_bytes=100, in_flight=3)


def test_ranges_are_asked_for_once_it_is_known_how_much_fits() -> None:
    ahead = _ahead()
    first = ahead.plan()
    assert _told(first) == ["ask [1, )"]
    effects = ahead.arrived(_asked(first)[0], _found(1, 11, 100))
    assert _told(effects) == ["keep 1", "ask [11, 21)", "ask [21, 31)"]


def test_the_rest_of_a_range_comes_before_the_next_range() -> None:
    ahead = _ahead()
    (endless,) = _asked(ahead.plan())
    second, third = _asked(ahead.arrived(endless, _found(1, 11, 100)))
    ahead.hand_out(11, 10)
    effects = ahead.arrived(second, _found(11, 15, 100))
    assert _told(effects) == ["ask [15, 21)", "keep 11"]
    ahead.arrived(third, _found(21, 31, 100))
    ahead.hand_out(15, 4)
    first = ahead.first
    assert first is not None
    assert (first.start, first.stop) == (15, 21)


def test_at_the_end_one_read_waits_and_asks_on() -> None:
    ahead = _ahead(end=1)
    first = ahead.plan()
    assert _told(first) == ["ask [1, ) and wait"]
    assert ahead.plan() == []
    (read,) = _asked(first)
    assert _told(ahead.arrived(read, _found(1, 1, 1))) == ["ask [1, ) and wait"]
    assert isinstance(first[0], Question)
    assert first[0].wait_ms == WAIT_MS
    assert _told(ahead.arrived(read, _found(1, 3, 3))) == ["keep 1", "ask [3, ) and wait"]


def test_a_gap_drops_what_was_asked_for_further_on() -> None:
    ahead = _ahead(end=10_000)
    (endless,) = _asked(ahead.plan())
    second, third = _asked(ahead.arrived(endless, _found(1, 11, 10_000)))
    ahead.hand_out(11, 10)
    effects = ahead.arrived(second, _found(5_000, 5_010, 10_000))
    assert _told(effects) == ["drop 21", "keep 11", "ask [5010, 5020)", "ask [5020, 5030)"]
    assert ahead.arrived(third, _found(21, 31, 10_000)) == []


def test_a_limit_counts_messages_and_not_the_numbers_of_a_gap() -> None:
    ahead = _ahead(end=10_000, limit=15)
    (endless,) = _asked(ahead.plan())
    (second,) = _asked(ahead.arrived(endless, _found(1, 11, 10_000)))
    assert (second.start, second.stop) == (11, 16)
    ahead.hand_out(11, 10)
    assert _told(ahead.arrived(second, _found(5_000, 5_010, 10_000))) == ["keep 11 up to 5005"]
    ahead.hand_out(5_005, 5)
    assert ahead.plan() == []
    assert (ahead.first, ahead.position, ahead.given) == (None, 5_005, 15)


def test_reading_ends_before_the_stop() -> None:
    ahead = _ahead(stop=14)
    (endless,) = _asked(ahead.plan())
    effects = ahead.arrived(endless, _found(1, 11, 100))
    assert _told(effects) == ["keep 1", "ask [11, 14)"]
    assert ahead.plan() == []


def test_ranges_are_whole_batches() -> None:
    ahead = _ahead()
    (endless,) = _asked(ahead.plan())
    effects = ahead.arrived(endless, _found(1, 9, 100, batch_messages=4))
    assert _told(effects) == ["keep 1", "ask [9, 17)", "ask [17, 25)"]


def test_an_answer_to_another_question_is_a_contradiction() -> None:
    for wrong in (ReadAnswer(1, 1, 100, 0, 0, 0), ReadAnswer(3, 6, 100, 2, 20, 1)):
        ahead = _ahead()
        (read,) = _asked(ahead.plan())
        assert _told(ahead.arrived(read, wrong)) == ["contradiction 1"]


def test_nothing_is_asked_once_it_is_closed() -> None:
    ahead = _ahead()
    (read,) = _asked(ahead.plan())
    assert ahead.close() == [read]
    assert ahead.arrived(read, _found(1, 11, 100)) == []
    assert (ahead.plan(), ahead.first) == ([], None)
