"""Groups of readers: offsets that only seek takes back, members with shares, generations that fence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.queue.log import groups as log_groups
from penstock.queue.log.groups import Membership
from penstock.queue.snapshot import snapshot
from tests.queue.rig import START_MS, Rig


def rig_with(messages: int = 20) -> Rig:
    rig = Rig(QueueSettings(consumption="log"))
    if messages:
        rig.send_plain(messages)
    return rig


def join(rig: Rig, member: str, group: str = "billing", start: int | None = None) -> Membership:
    return rig.carry_out(log_groups.join(rig.partition, group, member, 10_000, start, START_MS))


def leave(rig: Rig, member: str) -> None:
    rig.write(log_groups.leave(rig.partition, "billing", {member}, START_MS))


def commit(rig: Rig, offset: int, member: str = "", generation: int = 0) -> None:
    rig.carry_out(log_groups.commit(rig.partition, "billing", offset, member, generation, START_MS))


def seek(rig: Rig, offset: int) -> int:
    return rig.carry_out(log_groups.seek(rig.partition, "billing", offset, START_MS)).generation


def offset_of(rig: Rig) -> int:
    return log_groups.find(rig.partition, "billing").offset


def refused(code: ErrorCode, rig: Rig, offset: int, member: str = "", generation: int = 0) -> None:
    with pytest.raises(PenstockError) as caught:
        commit(rig, offset, member, generation)
    assert caught.value.code == code


def test_the_first_member_reads_and_the_next_takes_over() -> None:
    rig = rig_with()
    first = join(rig, "a", start=5)
    assert first.shares == [(0, 5)]
    second = join(rig, "b")
    assert (second.shares, second.members) == ([], 2)
    refused(ErrorCode.NOT_A_MEMBER, rig, 6, "a", first.generation)
    assert join(rig, "a").shares == [(0, 5)]
    commit(rig, 9, "a", second.generation)
    leave(rig, "a")
    refused(ErrorCode.NOT_A_MEMBER, rig, 12, "a", second.generation)
    assert join(rig, "b").shares == [(0, 9)]


def test_who_stands_by_commits_nothing() -> None:
    rig = rig_with()
    join(rig, "a")
    refused(ErrorCode.NOT_A_MEMBER, rig, 6, "b", join(rig, "b").generation)


def test_joining_again_changes_nothing() -> None:
    rig = rig_with()
    first = join(rig, "a")
    written = len(rig.log)
    assert join(rig, "a") == first
    assert len(rig.log) == written


def test_a_lower_offset_changes_nothing_and_only_seek_goes_back() -> None:
    rig = rig_with()
    commit(rig, 12)
    written = len(rig.log)
    commit(rig, 7)
    commit(rig, 12)
    assert (offset_of(rig), len(rig.log)) == (12, written)
    seek(rig, 7)
    assert offset_of(rig) == 7


def test_nobody_commits_for_a_group_that_has_members_but_they() -> None:
    rig = rig_with()
    join(rig, "a")
    refused(ErrorCode.NOT_A_MEMBER, rig, 3)
    leave(rig, "a")
    commit(rig, 3)
    assert offset_of(rig) == 3


def test_a_seek_makes_members_begin_again() -> None:
    rig = rig_with()
    before = join(rig, "a")
    commit(rig, 15, "a", before.generation)
    assert seek(rig, 4) > before.generation
    refused(ErrorCode.NOT_A_MEMBER, rig, 16, "a", before.generation)
    assert join(rig, "a").shares == [(0, 4)]


def test_a_generation_never_comes_back() -> None:
    rig = rig_with()
    before = join(rig, "a")
    leave(rig, "a")
    rig.carry_out(log_groups.remove(rig.partition, "billing", START_MS))
    after = join(rig, "a")
    assert after.generation > before.generation
    refused(ErrorCode.NOT_A_MEMBER, rig, 3, "a", before.generation)


def test_offsets_outside_the_log_are_refused() -> None:
    rig = rig_with()
    commit(rig, 21)
    refused(ErrorCode.BAD_REQUEST, rig, 22)
    assert rig.partition.log is not None
    rig.partition.log.cut(21)
    with pytest.raises(PenstockError, match="begins at 21") as caught:
        seek(rig, 20)
    assert caught.value.code == ErrorCode.OFFSET_GONE
    with pytest.raises(PenstockError):
        join(rig, "a", "other", start=22)


def test_a_group_with_members_cannot_be_deleted() -> None:
    rig = rig_with()
    join(rig, "a")
    with pytest.raises(PenstockError, match="members"):
        log_groups.remove(rig.partition, "billing", START_MS)


def test_groups_members_names_and_leases_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = rig_with()
    monkeypatch.setattr(limits, "LOG_GROUP_MEMBERS", 2)
    monkeypatch.setattr(limits, "LOG_GROUPS_PER_QUEUE", 2)
    join(rig, "a")
    join(rig, "b")
    for member, group, lease_ms in (
        ("c", "billing", 10_000),
        ("", "billing", 10_000),
        ("a", "x" * 129, 10_000),
        ("a", "billing", 999),
        ("a", "billing", 3_600_001),
    ):
        with pytest.raises(PenstockError):
            log_groups.join(rig.partition, group, member, lease_ms, None, START_MS)
    join(rig, "a", "other")
    with pytest.raises(PenstockError, match="limit"):
        join(rig, "a", "third")


def test_a_queue_without_a_log_has_no_groups() -> None:
    rig = Rig()
    with pytest.raises(PenstockError) as caught:
        join(rig, "a")
    assert caught.value.code == ErrorCode.UNSUPPORTED


STEPS = some.lists(
    some.tuples(
        some.sampled_from(["join", "leave", "commit", "seek", "stale"]),
        some.sampled_from("abc"),
        some.integers(1, 21),
    ),
    max_size=40,
)


@given(STEPS)
def test_offsets_only_rise_but_by_seek_and_only_for_who_has_the_share(
    steps: list[tuple[str, str, int]],
) -> None:
    rig = rig_with()
    known: dict[str, Membership] = {}
    order: list[str] = []
    offset, generation = 1, 0
    for kind, member, number in steps:
        if kind == "join":
            known[member] = join(rig, member)
            order += [member] if member not in order else []
            expected = [(0, offset)] if order[0] == member else []
            assert known[member].shares == expected
            assert known[member].generation >= generation
        elif kind == "leave":
            leave(rig, member)
            order = [other for other in order if other != member]
        elif kind == "seek" and rig.partition.readers.get("billing") is not None:
            seek(rig, number)
            offset = number
        elif kind == "commit" and member in known:
            group = log_groups.find(rig.partition, "billing")
            mine = bool(order) and order[0] == member and known[member].generation == group.generation
            try:
                commit(rig, number, member, known[member].generation)
                assert mine
                offset = max(offset, number)
            except PenstockError:
                assert not mine
        group = rig.partition.readers.get("billing")  # type: ignore[assignment]  # it is there
        if group is not None:
            assert (group.offset, group.members) == (offset, order)
            assert group.generation >= generation
            generation = group.generation
    assert snapshot.dump(rig.replayed()) == snapshot.dump(rig.partition)
    rig.reload()
