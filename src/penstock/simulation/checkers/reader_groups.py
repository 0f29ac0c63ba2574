"""Consumer groups: one owner a generation, commits of an older one do nothing, offsets never go back by themselves, and never
advance further than a commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.records import LogCut, NumbersSkipped, Purged, decode_record
from penstock.simulation.history import History
from penstock.simulation.log_history import GroupSeek, Joined, OffsetCommit, ReaderIdentity
from penstock.simulation.message_history import QueueLife
from penstock.simulation.violation import Violation

NAME = "groups"

_GroupKey = tuple[int, str]


class _Seen(NamedTuple):
    """An offset of a group that a client was told."""

    life: QueueLife
    group: str
    offset: int
    asked_ms: int
    answered_ms: int


def check(history: History) -> Iterator[Violation]:
    """Shares that two have, strangers that commit, and offsets that are not what was committed."""
    log = history.log
    joined: dict[_GroupKey, list[Joined]] = {}
    commits: dict[_GroupKey, list[OffsetCommit]] = {}
    seeks: dict[_GroupKey, list[GroupSeek]] = {}
    for row in log.joined:
        joined.setdefault((row.life.queue_id, row.place.group), []).append(row)
    for commit in log.commits:
        commits.setdefault((commit.life.queue_id, commit.place.group), []).append(commit)
    for seek in log.seeks:
        seeks.setdefault((seek.life.queue_id, seek.group), []).append(seek)
    for memberships in joined.values():
        yield from _owners(memberships)
    worked = [(c.life, c.place, c.asked_ms, "committed") for c in log.commits if c.result == "done"]
    worked += [(r.life, r.place, r.asked_ms, "read") for r in log.reads if r.place is not None]
    for life, place, asked_ms, what in worked:
        yield from _stale(place, asked_ms, what, joined.get((life.queue_id, place.group), []))
    told = [
        _Seen(j.life, j.place.group, j.offset, j.asked_ms, j.answered_ms)
        for j in log.joined
        if j.offset is not None
    ]
    told += [_Seen(*standing) for standing in log.standings]
    begins: dict[int, int] = {}
    for seen in told:
        key = (seen.life.queue_id, seen.group)
        if seen.life.damaged_ms is None:
            if key[0] not in begins:
                begins[key[0]] = _last_begin(history, key[0])
            yield from _gone_back(seen, commits.get(key, []), seeks.get(key, []))
            yield from _ahead(seen, commits.get(key, []), seeks.get(key, []), begins[key[0]])


def _owners(memberships: list[Joined]) -> Iterator[Violation]:
    owners: dict[int, Joined] = {}
    for row in memberships:
        if row.offset is None:
            continue
        owner = owners.setdefault(row.place.generation, row)
        if owner.place.member != row.place.member:
            yield Violation(
                NAME,
                row.answered_ms,
                f"in generation {row.place.generation} of group {row.place.group!r} both {owner.place.member!r} and "
                f"{row.place.member!r} have the log {row.life.name!r}",
            )


def _stale(place: ReaderIdentity, asked_ms: int, what: str, memberships: list[Joined]) -> Iterator[Violation]:
    """Whether somebody had learned of a later generation before this was asked, or this member never had the share."""
    if not place.member:  # who commits for a group without members has no generation
        return
    for row in memberships:
        if row.answered_ms < asked_ms and row.place.generation > place.generation:
            yield Violation(
                NAME,
                asked_ms,
                f"{place.member!r} {what} for group {place.group!r} in generation {place.generation}, when "
                f"{row.place.member!r} had been told of generation {row.place.generation}",
            )
            return
    if any(
        row.place.generation == place.generation
        and row.offset is not None
        and row.place.member != place.member
        for row in memberships
    ):
        yield Violation(
            NAME, asked_ms, f"{place.member!r} {what} for group {place.group!r} and had no share of it"
        )


def _gone_back(seen: _Seen, commits: list[OffsetCommit], seeks: list[GroupSeek]) -> Iterator[Violation]:
    for commit in commits:
        if commit.result != "done" or commit.answered_ms is None or commit.answered_ms >= seen.asked_ms:
            continue
        if seen.offset >= commit.offset or any(
            seek.asked_ms <= seen.answered_ms
            and (seek.answered_ms is None or seek.answered_ms >= commit.asked_ms)
            for seek in seeks
        ):
            continue
        yield Violation(
            NAME,
            seen.answered_ms,
            f"group {seen.group!r} of the log {seen.life.name!r} had committed {commit.offset} and is at {seen.offset}",
        )
        return


def _last_begin(history: History, queue_id: int) -> int:
    """The furthest that the log was cut, or that numbers were left out: groups that are new begin where it begins."""
    ends = [1]
    for entry in history.records.get(queue_id, []):
        record = decode_record(entry.head)
        if isinstance(record, LogCut | Purged):
            ends.append(record.end)
        elif isinstance(record, NumbersSkipped):
            ends.append(record.first)
    return max(ends)


def _ahead(
    seen: _Seen, commits: list[OffsetCommit], seeks: list[GroupSeek], last_begin: int
) -> Iterator[Violation]:
    """Whether a group continues at an uncommitted offset: the messages before it are never read."""
    possible = [c.offset for c in commits if c.asked_ms <= seen.answered_ms and c.result != "refused"]
    for seek in seeks:
        if seek.asked_ms <= seen.answered_ms and seek.result != "refused":
            if seek.offset is None and seek.result == "lost":
                return
            possible.append(seek.offset or 1)
    if seen.offset > max([last_begin, *possible]):
        yield Violation(
            NAME,
            seen.answered_ms,
            f"group {seen.group!r} of the log {seen.life.name!r} goes on at {seen.offset}, and nobody said so: "
            f"{max([last_begin, *possible])} is the most",
        )
