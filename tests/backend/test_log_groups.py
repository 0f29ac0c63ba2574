"""Groups of readers over the node: leases, shares that move on, fencing, restarts."""

from __future__ import annotations

from penstock.wire import messages
from tests.backend.harness import NodeHarness
from tests.backend.log_reader import opened_slice, read_log


def filled() -> tuple[NodeHarness, int]:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    for number in range(10):
        node.send(log, [b"%d" % number] * 10)
    return node, log


def join(node: NodeHarness, log: int, member: str, **options: object) -> messages.GroupMembership:
    answer = node.call(messages.JoinGroup(log, "billing", member, **options))  # type: ignore[arg-type]  # as the caller names them
    assert isinstance(answer, messages.GroupMembership)
    return answer


def group_of(node: NodeHarness, log: int) -> messages.GroupDescription:
    answer = node.call(messages.ListGroups(log))
    assert isinstance(answer, messages.GroupList)
    (group,) = answer.groups
    return group


def test_the_share_of_a_member_that_falls_silent_moves_on() -> None:
    node, log = filled()
    first = join(node, log, "a")
    join(node, log, "b", lease_ms=60_000)
    first = join(node, log, "a")
    assert first.shares == [(0, 1)]
    read_log(node, log, 1, group="billing", member="a", generation=first.generation, max_messages=30)
    node.call(messages.CommitOffset(log, "billing", 31, "a", first.generation))
    node.advance(9_999)
    assert group_of(node, log).members == ["a", "b"]
    node.advance(1)
    assert group_of(node, log).members == ["b"]
    assert join(node, log, "b").shares == [(0, 31)]
    failed = node.fail(messages.ReadLog(log, 31, group="billing", member="a", generation=first.generation))
    assert failed.code == "not-a-member"
    assert node.fail(messages.CommitOffset(log, "billing", 99, "a", first.generation)).code == "not-a-member"
    assert group_of(node, log).offset == 31


def test_reading_committing_and_joining_renew_the_lease() -> None:
    node, log = filled()
    generation = join(node, log, "a").generation
    for request in (
        messages.ReadLog(log, 1, group="billing", member="a", generation=generation),
        messages.CommitOffset(log, "billing", 2, "a", generation),
        messages.JoinGroup(log, "billing", "a"),
    ):
        node.advance(9_999)
        node.call(request)
    assert group_of(node, log).members == ["a"]
    node.advance(10_000)
    assert group_of(node, log).members == []


def test_a_member_that_leaves_is_none_at_once() -> None:
    node, log = filled()
    join(node, log, "a")
    join(node, log, "b")
    node.call(messages.LeaveGroup(log, "billing", "a"))
    assert join(node, log, "b").shares == [(0, 1)]
    node.call(messages.LeaveGroup(log, "billing", "nobody"))
    node.call(messages.LeaveGroup(log, "nothing", "nobody"))


def test_a_waiting_member_is_told_when_its_group_changes() -> None:
    node, log = filled()
    generation = join(node, log, "a").generation
    request = messages.ReadLog(log, 101, wait_ms=4_000, group="billing", member="a", generation=generation)
    waiting = node.start(request)
    node.call(messages.SeekGroup(log, "billing", offset=50))
    (arrived,) = node.answers(waiting)
    assert isinstance(arrived.answer, messages.Failed)
    assert arrived.answer.code == "not-a-member"
    again = join(node, log, "a")
    assert again.shares == [(0, 50)]


def test_a_member_does_not_wait_its_lease_away() -> None:
    node, log = filled()
    generation = join(node, log, "a").generation
    request = messages.ReadLog(log, 101, wait_ms=60_000, group="billing", member="a", generation=generation)
    waiting = node.start(request)
    node.advance(5_000)
    (arrived,) = node.answers(waiting)
    assert opened_slice(arrived).bodies == []
    assert group_of(node, log).members == ["a"]


def test_members_get_a_fresh_lease_after_a_restart_and_keep_their_generation() -> None:
    node, log = filled()
    generation = join(node, log, "a", lease_ms=30_000).generation
    node.call(messages.CommitOffset(log, "billing", 40, "a", generation))
    node.advance(29_000)
    node.crash()
    node.advance(29_999)
    node.call(messages.CommitOffset(log, "billing", 50, "a", generation))
    assert group_of(node, log).offset == 50
    node.restart()
    node.advance(30_000)
    assert group_of(node, log).members == []


def test_a_committed_offset_survives_and_never_goes_back() -> None:
    node, log = filled()
    node.call(messages.CommitOffset(log, "billing", 40))
    node.crash()
    node.call(messages.CommitOffset(log, "billing", 30))
    assert group_of(node, log).offset == 40
    node.call(messages.SeekGroup(log, "billing", offset=30))
    node.crash()
    assert group_of(node, log).offset == 30


def test_groups_are_listed_with_their_lag_page_by_page() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    sent_ms = node.now_ms
    node.send(log, [b"x"] * 10)
    node.now_ms += 500
    node.send(log, [b"y"] * 10)
    for name, offset in (("a", 1), ("b", 11), ("c", 21)):
        node.call(messages.CommitOffset(log, name, offset))
    node.now_ms += 1_000
    first = node.call(messages.ListGroups(log, limit=2))
    assert isinstance(first, messages.GroupList)
    assert first.more
    rest = node.call(messages.ListGroups(log, after="b"))
    assert isinstance(rest, messages.GroupList)
    assert not rest.more
    lags = [(group.name, group.lag_messages, group.lag_ms) for group in (*first.groups, *rest.groups)]
    assert lags == [("a", 20, node.now_ms - sent_ms), ("b", 10, 1_000), ("c", 0, 0)]
    assert node.show("events").statistics.log_groups == 3
    node.call(messages.Purge(log))
    assert [group.lag_messages for group in listed(node, log)] == [0, 0, 0]


def listed(node: NodeHarness, log: int) -> list[messages.GroupDescription]:
    answer = node.call(messages.ListGroups(log))
    assert isinstance(answer, messages.GroupList)
    return answer.groups


def test_a_group_seeks_by_time_and_by_offset_one_of_them() -> None:
    node = NodeHarness()
    log = node.create("events", consumption="log")
    node.send(log, [b"x"] * 10)
    node.now_ms += 1_000
    node.send(log, [b"y"] * 10)
    node.call(messages.CommitOffset(log, "billing", 21))
    sought = node.call(messages.SeekGroup(log, "billing", time_ms=node.now_ms))
    assert isinstance(sought, messages.GroupDescription)
    assert (sought.offset, sought.lag_messages) == (11, 10)
    assert group_of(node, log) == sought
    assert node.fail(messages.SeekGroup(log, "billing")).code == "bad-request"
    assert node.fail(messages.SeekGroup(log, "billing", offset=1, time_ms=1)).code == "bad-request"
    assert node.fail(messages.SeekGroup(log, "nobody", offset=1)).code == "bad-request"


def test_a_group_is_deleted_when_nobody_reads_for_it() -> None:
    node, log = filled()
    join(node, log, "a")
    assert node.fail(messages.DeleteGroup(log, "billing")).code == "bad-request"
    node.call(messages.LeaveGroup(log, "billing", "a"))
    node.call(messages.DeleteGroup(log, "billing"))
    assert listed(node, log) == []
    node.crash()
    assert listed(node, log) == []


def test_deleting_the_queue_forgets_its_members() -> None:
    node, log = filled()
    join(node, log, "a")
    node.call(messages.DeleteQueue("events"))
    node.advance(60_000)
    assert node.fail(messages.ListGroups(log)).code == "queue-not-found"
    assert len(node.node._parts.members) == 0
