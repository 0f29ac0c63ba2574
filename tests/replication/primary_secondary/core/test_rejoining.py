"""Who comes back into the in-sync set while messages never stop coming, and who is taken out of it with good reason only."""

from __future__ import annotations

from collections import deque

from penstock.replication.primary_secondary.core.primary import Primary
from penstock.replication.primary_secondary.core.replica_progress import (
    AWAIT_AGAIN_MS,
    AWAIT_MS,
    LAG_MS,
    LAST_LAG_MS,
)

NODES = ("a", "b", "c")
LOOK_MS = 50


class Load:
    """A primary that is sent a record every millisecond. `b` is quick; `c` confirms as the test says."""

    def __init__(self, *, behind_ms: int, every: int = 1, synchronous: bool = True) -> None:
        self.primary = Primary(
            "a",
            last=1,
            replicas=NODES,
            in_sync=("a", "b"),
            synchronous=synchronous,
            least_in_sync=2,
            now_ms=0,
        )
        self.now_ms = 0
        self.last = 1
        self.behind_ms = behind_ms
        self.every = every
        """It takes one record of so many."""
        self.at_c = 1
        self.under_way: deque[tuple[int, int]] = deque()
        self.longest_wait_ms = 0
        self.commit_ms = 0
        self.c_works = True
        self.primary.flushed(1)
        for node in "bc":
            self.primary.confirmed(node, 1, 0)

    def run(self, duration_ms: int) -> frozenset[str] | None:
        """Until the in-sync set is to change, or the time is over."""
        for _ in range(duration_ms):
            self.now_ms += 1
            before = self.primary.committed
            self.last += 1
            self.primary.appended(self.last, self.now_ms)
            self.primary.flushed(self.last)
            self.primary.confirmed("b", self.last, self.now_ms)
            if self.now_ms % self.every == 0:
                self.at_c += 1
                self.under_way.append((self.now_ms + self.behind_ms, self.at_c))
            while self.c_works and self.under_way and self.under_way[0][0] <= self.now_ms:
                self.primary.confirmed("c", self.under_way.popleft()[1], self.now_ms)
            self.primary.end_waits(self.now_ms)
            if self.primary.committed > before:
                self.commit_ms = self.now_ms
            self.longest_wait_ms = max(self.longest_wait_ms, self.now_ms - self.commit_ms)
            if self.now_ms % LOOK_MS == 0:
                wanted = self.primary.wanted_in_sync(self.now_ms, NODES)
                if wanted is not None:
                    return wanted
        return None

    def run_until_awaited(self) -> None:
        """Until commits wait for `c`."""
        for _ in range(1_000):
            assert self.run(1) is None
            if self.primary.awaited_until_ms() is not None:
                return
        raise AssertionError("nobody waits for it")


def test_a_replica_that_always_trails_a_little_comes_in_under_constant_load() -> None:
    load = Load(behind_ms=40)
    assert load.run(2_000) == frozenset(NODES)
    follower = load.primary.followers["c"]
    assert follower.confirmed >= load.primary.committed, "whoever leads next may be this one"
    assert load.longest_wait_ms <= 3 * load.behind_ms


def test_it_stays_once_it_is_in_and_commits_wait_for_it() -> None:
    load = Load(behind_ms=40)
    wanted = load.run(2_000)
    assert wanted is not None
    load.primary.propose(wanted)
    assert load.run(100) is None
    load.primary.decided(wanted)
    assert load.run(3_000) is None
    assert load.primary.committed == load.primary.followers["c"].confirmed


def test_who_falls_behind_more_and_more_is_not_waited_for() -> None:
    load = Load(behind_ms=400, every=2)
    assert load.run(10_000) is None
    assert load.longest_wait_ms <= 1


def test_who_is_far_behind_is_not_waited_for() -> None:
    load = Load(behind_ms=2_000)
    assert load.run(10_000) is None
    assert load.longest_wait_ms <= 1


def test_who_hangs_while_it_comes_in_is_left_behind_and_not_waited_for_again_soon() -> None:
    load = Load(behind_ms=45)
    load.run_until_awaited()
    load.c_works = False
    assert load.run(AWAIT_MS + 100) is None
    assert load.primary.committed == load.last
    assert load.longest_wait_ms <= AWAIT_MS
    load.c_works, load.longest_wait_ms = True, 0
    assert load.run(AWAIT_AGAIN_MS // 2) is None
    assert load.longest_wait_ms <= 1
    assert load.run(AWAIT_AGAIN_MS) == frozenset(NODES)


def test_who_breaks_off_while_it_comes_in_is_waited_for_no_longer() -> None:
    load = Load(behind_ms=45)
    load.run_until_awaited()
    load.c_works = False
    load.run(10)
    assert load.primary.committed < load.last
    load.primary.lost("c")
    assert load.primary.committed == load.last


def test_what_was_there_when_the_epoch_began_is_needed_by_whoever_comes_in() -> None:
    primary = Primary(
        "a", last=100, replicas=NODES, in_sync=("a", "b"), synchronous=True, least_in_sync=2, now_ms=0
    )
    primary.flushed(100)
    for now_ms in range(0, 200, 10):
        primary.confirmed("c", 99, now_ms)
    assert primary.awaited_until_ms() is None
    assert primary.wanted_in_sync(200, NODES) is None


def test_async_a_replica_comes_in_that_is_less_than_the_allowed_time_behind() -> None:
    load = Load(behind_ms=LAG_MS // 2, synchronous=False)
    assert load.run(5_000) == frozenset(NODES)
    assert load.longest_wait_ms <= 1
    assert Load(behind_ms=2 * LAG_MS, synchronous=False).run(10_000) is None


# --- who is taken out ---------------------------------------------------------------------------------------


def leader(in_sync: tuple[str, ...]) -> Primary:
    primary = Primary(
        "a", last=1, replicas=NODES, in_sync=in_sync, synchronous=True, least_in_sync=2, now_ms=0
    )
    primary.flushed(1)
    for node in "bc":
        primary.confirmed(node, 1, 0)
    primary.appended(2, 0)
    primary.flushed(2)
    return primary


def test_the_last_one_that_is_needed_gets_more_time() -> None:
    primary = leader(("a", "b"))
    living = ("a", "b")
    assert primary.wanted_in_sync(LAG_MS, living) is None
    assert primary.wanted_in_sync(LAST_LAG_MS - 1, living) is None
    assert primary.wanted_in_sync(LAST_LAG_MS, living) == frozenset("a")
    assert primary.wanted_in_sync(LAG_MS, ("a",)) == frozenset("a"), "nobody waits for one that is gone"


def test_who_is_not_needed_for_the_least_leaves_as_soon_as_it_lags() -> None:
    primary = leader(NODES)
    primary.confirmed("b", 2, 10)
    assert primary.wanted_in_sync(LAG_MS, NODES) == frozenset("ab")


def test_a_primary_that_stood_still_does_not_blame_its_followers() -> None:
    primary = leader(NODES)
    primary.confirmed("b", 2, 10)
    primary.stalled(5_000, 5_100)
    assert primary.wanted_in_sync(5_100, NODES) is None
    assert primary.wanted_in_sync(5_000 + LAG_MS, NODES) == frozenset("ab")


def test_a_stall_is_never_credit_for_the_time_after_it() -> None:
    primary = leader(NODES)
    primary.confirmed("b", 2, 10)
    primary.stalled(60_000, 100)
    assert primary.wanted_in_sync(100 + LAG_MS, NODES) == frozenset("ab")


# -- what no failover may lose -------------------------------------------------------------------------------


def alone_with(in_sync: tuple[str, ...]) -> Primary:
    primary = Primary(
        "a", last=1, replicas=NODES, in_sync=in_sync, synchronous=False, least_in_sync=1, now_ms=0
    )
    primary.flushed(1)
    for node in "bc":
        primary.confirmed(node, 1, 0)
    return primary


def test_what_an_async_primary_has_alone_is_committed_and_not_everywhere() -> None:
    primary = alone_with(("a", "b"))
    primary.appended(5, 0)
    primary.flushed(5)
    assert (primary.committed, primary.everywhere()) == (5, 1)
    primary.confirmed("c", 5, 1)
    assert primary.everywhere() == 1, "c may not be elected, so what it has does not count"
    primary.confirmed("b", 4, 1)
    assert primary.everywhere() == 4
    primary.propose(("a",))
    assert primary.everywhere() == 4, "until the store says otherwise b may be elected"
    primary.decided(("a",))
    assert primary.everywhere() == 5
    primary.propose(("a", "b"))
    assert primary.everywhere() == 4


def test_nobody_comes_in_sync_without_what_somebody_relies_on() -> None:
    primary = alone_with(("a",))
    primary.appended(5, 0)
    primary.flushed(5)
    primary.confirmed("b", 4, 10)
    assert primary.wanted_in_sync(20, NODES) == frozenset("ab"), "who trails a little may come in"
    primary.rely(5)
    assert primary.wanted_in_sync(20, NODES) is None
    primary.confirmed("b", 5, 30)
    assert primary.wanted_in_sync(40, NODES) == frozenset("ab")


def test_a_replica_that_trails_comes_in_though_somebody_relies_on_the_newest_all_the_time() -> None:
    load = Load(behind_ms=8, synchronous=False)
    load.primary.decided(("a",))
    for _ in range(2_000):
        load.primary.rely(load.primary.everywhere())
        wanted = load.run(1)
        if wanted is not None and "c" in wanted:
            return
    raise AssertionError("it never came in")


def test_who_hangs_while_it_comes_in_holds_up_only_for_a_moment_what_others_rely_on() -> None:
    load = Load(behind_ms=8, synchronous=False)
    load.primary.decided(("a",))
    while load.primary.followers["c"].awaited_until_ms is None:
        load.run(1)
    load.c_works = False
    before = load.primary.everywhere()
    load.run(AWAIT_MS // 2)
    assert load.primary.everywhere() <= before + load.behind_ms
    assert load.primary.committed > load.primary.everywhere(), "acknowledgements do not wait"
    for _ in range(AWAIT_MS):
        load.run(1)
    assert load.primary.everywhere() == load.primary.committed
