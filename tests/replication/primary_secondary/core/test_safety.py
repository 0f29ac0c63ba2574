"""Many short lives of a partition: whatever crashes, lags and is elected, what was committed is never lost.

The logs, disks and messages are plain lists here; the decisions are those of the product. The last tests break one rule
each and show that the checks would notice.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from penstock.replication.primary_secondary.core.epochs import EpochHistory
from penstock.replication.primary_secondary.core.primary import Primary
from penstock.replication.primary_secondary.core.replica_progress import LAG_MS
from penstock.replication.primary_secondary.core.secondary import (
    Continue,
    CutFirst,
    OutOfStep,
    Ready,
    Refused,
    Secondary,
    SendWhole,
    approach,
)
from tests.cluster.model_node import Record, epochs_of

NODES = ("a", "b", "c")


@dataclass
class Replica:
    """A node: its log, all of it on disk, and what it knows of epochs."""

    name: str
    log: list[Record] = field(default_factory=list)
    up: bool = True
    leads: int = 0
    primary: Primary | None = None
    known_epoch: int = 0

    @property
    def epochs(self) -> EpochHistory:
        return epochs_of(self.log)


@dataclass
class Entry:
    """What the metadata store says."""

    epoch: int = 1
    primary: str = "a"
    in_sync: frozenset[str] = frozenset(NODES)


class LostError(Exception):
    """Something committed is gone."""


def hears_of(secondary: Secondary, epoch: int) -> bool:
    """Somebody speaks for an epoch; False where it is over. As `Following._obeys` does it."""
    if epoch < secondary.known_epoch:
        return False
    secondary.known_epoch = epoch
    return True


class World:
    """A partition on three nodes, its entry in the store, and a hand that breaks things."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.store = Entry()
        self.replicas = {name: Replica(name) for name in NODES}
        self.committed: list[Record] = []
        self.next_value = 0
        self.elections = 0
        self.lead("a")

    def lead(self, name: str) -> None:
        replica = self.replicas[name]
        replica.leads = replica.known_epoch = self.store.epoch
        if replica.log[: len(self.committed)] != self.committed:
            raise LostError(f"{name} leads epoch {self.store.epoch} without what was committed")
        replica.log.append((self.store.epoch, -self.store.epoch))
        replica.primary = Primary(
            name,
            last=len(replica.log),
            replicas=NODES,
            in_sync=self.store.in_sync,
            synchronous=True,
            least_in_sync=2,
            now_ms=self.now_ms,
        )
        replica.primary.flushed(len(replica.log))

    # --- what happens ---------------------------------------------------------------------------------------

    def step(self) -> None:
        self.now_ms += self.random.randrange(200)
        self.random.choice(
            [self.append, self.append, self.replicate, self.replicate, self.replicate, self.keep_in_sync, self.crash,
             self.restart, self.elect]
        )()  # fmt: skip
        for replica in self.replicas.values():
            self.note_commits(replica)

    def leader(self) -> Replica | None:
        leaders = [r for r in self.replicas.values() if r.up and r.primary is not None]
        return self.random.choice(leaders) if leaders else None

    def append(self) -> None:
        leader = self.leader()
        if leader is not None and leader.primary is not None and leader.primary.takes_sends:
            self.next_value += 1
            leader.log.append((leader.leads, self.next_value))
            leader.primary.appended(len(leader.log), self.now_ms)
            leader.primary.flushed(len(leader.log))

    def replicate(self) -> None:
        leader = self.leader()
        if leader is None or leader.primary is None:
            return
        follower = self.replicas[self.random.choice([name for name in NODES if name != leader.name])]
        if not follower.up:
            return
        secondary = self.secondary_of(follower)
        way = approach(leader.epochs, len(leader.log), 1, follower.epochs, len(follower.log))
        match way:
            case Continue(previous) | CutFirst(previous):
                if not hears_of(secondary, leader.leads):
                    self.deposed(leader)
                    return
                del follower.log[previous:]
            case SendWhole():
                if not hears_of(secondary, leader.leads):
                    self.deposed(leader)
                    return
                follower.log.clear()
                previous = 0
        follower.known_epoch = secondary.known_epoch
        self.stand_down(follower)
        count = self.random.randint(0, len(leader.log) - previous)
        secondary = self.secondary_of(follower)
        match secondary.judge(leader.leads, previous, leader.epochs.at(previous), count):
            case Refused():
                self.deposed(leader)
                return
            case OutOfStep():
                raise AssertionError("the primary has just looked where the logs part")
            case Ready(first):
                follower.log += leader.log[first - 1 : previous + count]
        leader.primary.confirmed(follower.name, len(follower.log), self.now_ms)

    def secondary_of(self, replica: Replica) -> Secondary:
        return Secondary(replica.epochs, len(replica.log), replica.known_epoch)

    def stand_down(self, replica: Replica) -> None:
        replica.primary = None

    def deposed(self, leader: Replica) -> None:
        leader.primary = None

    def keep_in_sync(self) -> None:
        leader = self.leader()
        if leader is None or leader.primary is None:
            return
        living = [name for name, replica in self.replicas.items() if replica.up]
        wanted = leader.primary.wanted_in_sync(self.now_ms, living)
        if wanted is None:
            return
        leader.primary.propose(wanted)
        if self.random.random() < 0.5:
            self.append()
            self.replicate()
        if self.random.random() < 0.2 or leader.primary is None:
            return  # the answer of the store never comes; the proposal stands
        if (self.store.epoch, self.store.primary) == (leader.leads, leader.name):
            self.store.in_sync = wanted
            leader.primary.decided(wanted)
        else:
            leader.primary = None

    def crash(self) -> None:
        if self.random.random() < 0.5:
            replica = self.replicas[self.random.choice(NODES)]
            replica.up = False
            replica.primary = None

    def restart(self) -> None:
        replica = self.replicas[self.random.choice(NODES)]
        replica.up = True

    def candidates(self) -> list[str]:
        return [name for name in self.store.in_sync if self.replicas[name].up]

    def elect(self) -> None:
        """A manager believes that the primary is gone, rightly or not."""
        names = [name for name in self.candidates() if name != self.store.primary] or self.candidates()
        if not names:
            return
        chosen = max(names, key=lambda name: (self.replicas[name].log[-1:], len(self.replicas[name].log)))
        self.store.epoch += 1
        self.store.primary = chosen
        self.elections += 1
        self.lead(chosen)

    def note_commits(self, replica: Replica) -> None:
        if replica.primary is None or not replica.up:
            return
        known = replica.log[: replica.primary.committed]
        if len(known) > len(self.committed):
            if known[: len(self.committed)] != self.committed:
                raise LostError(f"{replica.name} commits something else")
            self.committed = known
        elif known != self.committed[: len(known)]:
            raise LostError(f"{replica.name} committed something else before")


def live(world: World, steps: int = 400) -> World:
    for _ in range(steps):
        world.step()
    return world


@pytest.mark.parametrize("part", range(8))
def test_what_was_committed_is_never_lost(part: int) -> None:
    elections = commits = 0
    for seed in range(part * 50, part * 50 + 50):
        world = live(World(seed))
        elections += world.elections
        commits += len(world.committed)
    assert elections > 500
    assert commits > 2_000


# --- the checks would notice --------------------------------------------------------------------------------


def breaks(kind: type[World]) -> bool:
    for seed in range(300):
        try:
            live(kind(seed))
        except LostError:
            return True
    return False


class ElectsAnybody(World):
    def candidates(self) -> list[str]:
        return [name for name, replica in self.replicas.items() if replica.up]


class ForgetsProposals(World):
    """Counts only the old set while a new member is on its way in."""

    def keep_in_sync(self) -> None:
        leader = self.leader()
        if leader is None or leader.primary is None:
            return
        wanted = leader.primary.wanted_in_sync(self.now_ms, NODES)
        if wanted is None or (self.store.epoch, self.store.primary) != (leader.leads, leader.name):
            return
        self.append()
        self.replicate()
        self.note_commits(leader)
        self.store.in_sync = wanted
        leader.primary.decided(wanted)


class TrustsItsOwnCommits(World):
    """Takes a replica in that lacks what an earlier primary committed."""

    def lead(self, name: str) -> None:
        super().lead(name)
        primary = self.replicas[name].primary
        assert primary is not None
        primary._begun = 1


class BelievesTheOldPrimary(World):
    def secondary_of(self, replica: Replica) -> Secondary:
        secondary = super().secondary_of(replica)
        secondary.known_epoch = 0
        return secondary


class CommitsAlone(World):
    def lead(self, name: str) -> None:
        super().lead(name)
        primary = self.replicas[name].primary
        assert primary is not None
        primary.synchronous = False


@pytest.mark.parametrize(
    "broken",
    [ElectsAnybody, ForgetsProposals, TrustsItsOwnCommits, BelievesTheOldPrimary, CommitsAlone],
    ids=lambda kind: kind.__name__,
)
def test_a_broken_rule_is_noticed(broken: type[World]) -> None:
    assert breaks(broken)


# --- single rules -------------------------------------------------------------------------------------------


def primary(**changes: object) -> Primary:
    settings: dict[str, object] = {
        "last": 1, "replicas": NODES, "in_sync": NODES, "synchronous": True, "least_in_sync": 2, "now_ms": 0,
        **changes,
    }  # fmt: skip
    return Primary("a", **settings)  # type: ignore[arg-type]  # as the caller names them


def test_the_slowest_in_sync_decides_what_is_committed() -> None:
    leader = primary()
    leader.flushed(1)
    leader.confirmed("b", 1, 0)
    assert leader.committed == 0
    leader.confirmed("c", 1, 0)
    assert leader.committed == 1


def test_who_lags_is_taken_out_and_comes_back_with_everything() -> None:
    leader = primary()
    leader.flushed(1)
    for node in "bc":
        leader.confirmed(node, 1, 0)
    assert leader.wanted_in_sync(0, NODES) is None
    leader.appended(2, 10)
    leader.flushed(2)
    leader.confirmed("b", 2, 20)
    assert leader.next_lag_ms() == 10 + LAG_MS
    assert leader.wanted_in_sync(10 + LAG_MS - 1, NODES) is None
    wanted = leader.wanted_in_sync(10 + LAG_MS, NODES)
    assert wanted == frozenset("ab")
    leader.propose(wanted)
    assert leader.committed == 1, "nobody was told yet that c is out"
    leader.decided(wanted)
    assert leader.committed == 2
    assert leader.takes_sends
    leader.confirmed("c", 2, 3_000)
    assert leader.wanted_in_sync(3_000, NODES) == frozenset(NODES)


def test_word_of_a_node_that_is_no_replica_counts_for_nothing() -> None:
    leader = primary()
    leader.vouched("stranger", 10)
    leader.lost("stranger")
    leader.confirmed("stranger", 1, 0)
    assert "stranger" not in leader.followers
    assert leader.committed == 0


def test_too_few_in_sync_take_no_sends() -> None:
    leader = primary()
    leader.decided({"a"})
    assert not leader.takes_sends
    assert primary(synchronous=False, in_sync=["a"]).takes_sends


def test_word_from_before_a_restart_does_not_count() -> None:
    leader = primary(in_sync=["a", "b"])
    leader.confirmed("b", 1, 0)
    leader.lost("b")
    leader.flushed(1)
    assert leader.committed == 0


def test_a_deposed_primary_is_refused() -> None:
    replica = Secondary(EpochHistory([(1, 1), (3, 5)]), last=7, known_epoch=3)
    assert replica.judge(2, 7, 3, 1) == Refused(3)
    assert replica.judge(3, 7, 3, 1) == Ready(8)
    assert replica.judge(3, 8, 3, 1) == OutOfStep(7)
    assert replica.judge(4, 6, 1, 2) == OutOfStep(7)
