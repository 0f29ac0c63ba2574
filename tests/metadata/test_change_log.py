"""The log of changes: what it tells is whole, in order, and never half a version."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.metadata.server import change_log
from penstock.metadata.server.change_log import ChangeLog
from penstock.metadata.store.interface import Change

keys = st.sampled_from(["a/1", "a/2", "b"])
versions = st.lists(st.lists(keys, min_size=1, max_size=4, unique=True), max_size=12)


@given(versions, st.integers(0, 14), st.integers(1, 20), st.sampled_from(["", "a/"]))
def test_reading_on_from_any_version_tells_everything_after_it_or_says_that_it_cannot(
    written: list[list[str]], after: int, kept: int, prefix: str
) -> None:
    log = ChangeLog(1 << 20, kept)
    log.begin(1)
    everything = [Change(key, b"", number) for number, keys in enumerate(written, 2) for key in keys]
    for change in everything:
        log.append(change)
    assert len(everything) <= kept or log.floor > 1
    news = log.news(prefix, after)
    if news is None:
        assert after < log.floor
        return
    assert news.changes == [one for one in everything if one.version > after and one.key.startswith(prefix)]
    assert news.upto == max(after, log.heard)
    assert not news.more


def test_a_long_past_is_told_in_parts_and_none_ends_within_a_version() -> None:
    log = ChangeLog(1 << 30, 1 << 20)
    log.begin(0)
    everything = [Change(str(number), b"x" * 100, number // 3 + 1) for number in range(3000)]
    for change in everything:
        log.append(change)
    told: list[Change] = []
    after, more = 0, True
    while more:
        news = log.news("", after)
        assert news is not None
        assert len(news.changes) <= change_log.READ_AT_ONCE + 3
        told += news.changes
        after, more = news.upto, news.more
        assert all(one.version <= after for one in news.changes)
        assert len(told) % 3 == 0
    assert told == everything


def test_it_is_bounded_in_bytes() -> None:
    log = ChangeLog(10_000)
    log.begin(0)
    for number in range(1, 101):
        log.append(Change("a", b"x" * 1000, number))
    assert log.floor > 85
    assert log.news("", 5) is None
    news = log.news("", log.floor)
    assert news is not None
    assert [one.version for one in news.changes] == list(range(log.floor + 1, 101))
