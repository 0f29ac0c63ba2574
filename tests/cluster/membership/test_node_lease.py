"""A node's registration under every interleaving: what it counts on is true, and every lease is another life."""

from __future__ import annotations

from itertools import product
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.cluster.layout.entries import (
    NodeEntry,
    Position,
    decode_node,
    decode_positions,
    node_key,
    positions_key,
)
from penstock.cluster.membership.node_lease import (
    LEASE_MS,
    LOOK_MS,
    RENEW_MS,
    RETRY_MS,
    CountOn,
    Effect,
    NewLife,
    NodeLease,
    Note,
    Registered,
)
from penstock.cluster.membership.store_requests import Ask, Delete, Look, Put, Renew, Revoke, Unknown
from tests.cluster.membership.lease_store import Flying, LeaseStore

NAME = "node-1"
KEY = node_key(NAME)
START_MS = 1_000_000
Fate = Literal["answered", "answer lost", "request lost", "late"]
FATES: tuple[Fate, ...] = ("answered", "answer lost", "request lost", "late")


class Node:
    """A node over a store, with a clock of its own pace; checks what is promised after every step."""

    def __init__(
        self, pace_percent: int = 100, store: LeaseStore | None = None, started_ms: int = START_MS
    ) -> None:
        self.store = store if store is not None else LeaseStore()
        self.pace_percent = pace_percent
        entry = NodeEntry(node=NAME, native="", peers="", started_ms=started_ms)
        self.lease = NodeLease(entry, self.now_ms)
        self.flying: list[Flying] = []
        self.counted_ms = 0
        self.life_ms = started_ms
        self.notes: list[str] = []
        self.has_registered = False
        self.is_robbed = False
        """Whether somebody else has deleted its entry, which the node cannot know at once."""
        self._checked = 0
        self._life: tuple[int | None, int] = (None, 0)
        """(lease, number) of the last entry that was put."""

    @property
    def now_ms(self) -> int:
        return START_MS + self.store.now_ms * self.pace_percent // 100

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Ask():
                    self.flying.append(Flying(effect))
                case CountOn(until_ms):
                    self.counted_ms = until_ms
                case NewLife(started_ms):
                    assert started_ms > self.life_ms
                    assert self.counted_ms <= self.now_ms, "it stands down before it is another life"
                    self.life_ms = started_ms
                case Registered():
                    assert not self.has_registered
                    self.has_registered = True
                case Note(sentence):
                    self.notes.append(sentence)
        self.check()

    def check(self) -> None:
        """What it counts on is so at the store, and every lease is another life."""
        for key, value, lease in self.store.puts[self._checked :]:
            if key == KEY:
                life = (lease, decode_node(value).started_ms)
                before = self._life
                assert life[1] > before[1] if lease != before[0] else life[1] == before[1]
                self._life = life
        self._checked = len(self.store.puts)
        if self.now_ms < self.counted_ms and not self.is_robbed:
            assert KEY in self.store.entries, "it counts on a lease that has ended"
            assert self._life[1] == self.life_ms

    # -- steps -----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        self.perform(self.lease.tick(self.now_ms))

    def pass_time(self, ms: int) -> None:
        for _ in range(0, ms, 50):
            self.store.pass_time(min(ms, 50))
            self.check()

    def answer(self, flying: Flying) -> None:
        flying.land(self.store)
        assert flying.outcome is not None
        self.flying.remove(flying)
        if not flying.is_told:
            self.perform(self.lease.answered(flying.number, flying.outcome, self.now_ms))

    def lose(self, flying: Flying) -> None:
        """The node is told that there is no answer; the request may still land."""
        if not flying.is_told:
            flying.is_told = True
            self.perform(self.lease.answered(flying.number, Unknown("lost"), self.now_ms))

    def hear(self, place: int = -1) -> None:
        news = [one for one in self.store.news if one[0] == KEY]
        if news:
            _, value, version = news[place]
            self.perform(self.lease.heard(value, version, self.now_ms))

    def settle(self, ms: int = 10_000) -> None:
        """Everything gets through at once, for a while."""
        for _ in range(ms // 50):
            self.tick()
            while self.flying:
                self.answer(self.flying[0])
            self.hear()
            self.pass_time(50)
        self.tick()
        while self.flying:
            self.answer(self.flying[0])

    def asked(self, kind: type) -> list[Flying]:
        return [one for one in self.flying if isinstance(one.request, kind)]


def registered(pace_percent: int = 100) -> Node:
    node = Node(pace_percent)
    node.settle(50)
    assert node.has_registered
    return node


Step = tuple[str, int]
STEPS = some.lists(
    some.one_of(
        some.tuples(
            some.sampled_from(("pass", "wait")), some.sampled_from((10, 100, 500, 1_000, 2_000, 3_000))
        ),
        some.tuples(some.just("tick"), some.just(0)),
        some.tuples(some.sampled_from(("land", "answer", "lose")), some.integers(0, 9)),
        some.tuples(some.just("hear"), some.integers(0, 5)),
        some.tuples(some.just("positions"), some.integers(0, 3)),
        some.tuples(some.just("leaving"), some.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=600, deadline=None)
@given(STEPS, some.sampled_from((90, 95, 100, 103)), some.booleans())
def test_what_it_counts_on_is_true_whatever_the_store_answers_and_when(
    steps: list[Step], pace_percent: int, is_registered: bool
) -> None:
    node = registered(pace_percent) if is_registered else Node(pace_percent)
    node.tick()
    for kind, number in steps:
        flying = node.flying[number % len(node.flying)] if node.flying else None
        match kind:
            case "pass":
                node.pass_time(number)
            case "wait":
                node.pass_time(number)
                node.tick()
            case "tick":
                node.tick()
            case "land" if flying is not None:
                flying.land(node.store)
                node.check()
            case "answer" if flying is not None:
                node.answer(flying)
            case "lose" if flying is not None:
                node.lose(flying)
            case "hear":
                node.hear(-1 - number % max(1, sum(key == KEY for key, *_ in node.store.news)))
            case "positions":
                positions = {partition: Position(1, 1, number) for partition in range(number)}
                node.perform(node.lease.say_positions(positions, node.now_ms))
            case "leaving":
                node.perform(node.lease.say_leaving(node.now_ms))
            case _:
                pass  # nothing is on its way
    node.settle()
    assert node.lease.is_registered
    assert node.now_ms < node.counted_ms
    said = node.store.entries.get(positions_key(NAME))
    if node.lease._positions:
        assert said is not None
        assert decode_positions(said.value).positions == node.lease._positions
    assert decode_node(node.store.entries[KEY].value) == node.lease.entry


@pytest.mark.parametrize("gap_ms", [50, 900, 2_500])
def test_every_fate_of_the_first_five_requests(gap_ms: int) -> None:
    """Each of them is answered, lost on the way there or back, or lands after the node has given up waiting."""
    for fates in product(FATES, repeat=5):
        node = Node(90)
        left = list(fates)
        late: list[Flying] = []
        for _ in range(10):
            node.tick()
            for flying in list(node.flying):
                fate = left.pop(0) if left else "answered"
                match fate:
                    case "answered":
                        node.answer(flying)
                    case "answer lost":
                        flying.land(node.store)
                        node.lose(flying)
                        node.flying.remove(flying)
                    case "request lost":
                        node.lose(flying)
                        node.flying.remove(flying)
                    case "late":
                        node.lose(flying)
                        node.flying.remove(flying)
                        late.append(flying)
            node.pass_time(gap_ms)
            for flying in late:
                flying.land(node.store)
                node.check()
            late.clear()
        node.settle(3_000)
        assert node.lease.is_registered, fates


WAYS_MS = tuple(product((0, 700, 2_100), (0, 900, 1_900, None)))
"""How long a renewal is on its way there and back; None: there is no answer."""


def test_every_timing_of_three_renewals() -> None:
    for ways in product(WAYS_MS, repeat=3):
        node = registered(90)
        due: list[tuple[int, Flying, bool]] = []
        left = list(ways)
        for _ in range(60):
            node.tick()
            for flying in list(node.flying):
                node.flying.remove(flying)
                there_ms, back_ms = left.pop(0) if left and isinstance(flying.request, Renew) else (0, 0)
                due.append((node.store.now_ms + there_ms, flying, False))
                if back_ms is not None:
                    due.append((node.store.now_ms + there_ms + back_ms, flying, True))
            node.pass_time(100)
            for at_ms, flying, is_answer in sorted(due, key=lambda one: one[0]):
                if at_ms <= node.store.now_ms:
                    due.remove((at_ms, flying, is_answer))
                    flying.land(node.store)
                    if is_answer and flying.outcome is not None:
                        node.perform(node.lease.answered(flying.number, flying.outcome, node.now_ms))
                    node.check()
        assert node.lease.is_registered, ways


# -- what it does, step by step ------------------------------------------------------------------------------


def test_it_counts_from_before_the_renewal_was_asked_for() -> None:
    node = registered()
    node.pass_time(RENEW_MS)
    node.tick()
    (renewal,) = node.asked(Renew)
    asked_ms = node.now_ms
    renewal.land(node.store)
    node.pass_time(400)
    node.answer(renewal)
    assert node.counted_ms == asked_ms + 1_600


def test_a_renewal_that_is_not_answered_does_not_hold_up_the_next() -> None:
    node = registered()
    for _ in range(8):
        node.pass_time(RENEW_MS)
        node.tick()
        renewals = node.asked(Renew)
        if len(renewals) > 1:
            node.answer(renewals[-1])  # the oldest stays unanswered
    assert node.lease.is_registered
    assert node.now_ms < node.counted_ms
    assert len(node.asked(Renew)) <= 4


def test_a_lease_that_has_ended_is_dropped_at_once_and_the_next_is_another_life() -> None:
    node = registered()
    node.store.carry_out(Revoke(node.store.entries[KEY].lease or 0))
    node.counted_ms = 0  # the store broke its word; what the node makes of it is the question
    node.pass_time(RENEW_MS)
    node.tick()
    (renewal,) = node.asked(Renew)
    node.answer(renewal)
    assert node.counted_ms == 0
    assert not node.lease.is_registered
    node.settle(1_000)
    assert node.life_ms > START_MS
    assert decode_node(node.store.entries[KEY].value).started_ms == node.life_ms
    assert "its lease has ended" in node.notes[0]


def test_a_deletion_that_is_heard_of_before_the_put_is_answered_is_not_forgotten() -> None:
    node = Node()
    node.tick()
    while not node.asked(Put):
        node.answer(node.flying[0])
    (put,) = node.asked(Put)
    put.land(node.store)
    node.store.carry_out(Delete(KEY, None))
    node.hear()
    node.answer(put)
    assert node.counted_ms == 0
    node.settle(500)
    assert node.lease.is_registered
    assert KEY in node.store.entries
    assert node.life_ms > START_MS


def test_a_node_finds_out_that_its_entry_is_gone_though_nobody_tells_it() -> None:
    node = registered()
    node.store.carry_out(Delete(KEY, None))
    node.is_robbed = True
    for _ in range(LOOK_MS // 100 + 1):
        node.pass_time(100)
        node.tick()
        while node.flying:
            node.answer(node.flying[0])
    assert decode_node(node.store.entries[KEY].value).started_ms == node.life_ms > START_MS


def test_a_put_that_was_never_answered_may_have_been_seen() -> None:
    node = Node()
    node.tick()
    while not node.asked(Put):
        node.answer(node.flying[0])
    (put,) = node.asked(Put)
    put.land(node.store)
    node.lose(put)
    node.pass_time(
        LEASE_MS + 100
    )  # the entry came and went, and somebody else may lead what the node was given
    node.settle(1_000)
    assert node.lease.is_registered
    assert node.life_ms > START_MS


def test_a_put_that_was_certainly_not_done_costs_no_life() -> None:
    node = Node()
    node.tick()
    while not node.asked(Put):
        node.answer(node.flying[0])
    (put,) = node.asked(Put)
    node.pass_time(LEASE_MS)
    node.answer(put)  # its lease has ended
    node.settle(1_000)
    assert node.lease.is_registered
    assert node.life_ms == START_MS


def test_a_number_that_stands_in_the_store_is_not_used_again() -> None:
    first = registered()
    second = Node(store=first.store)  # the same name and number: its clock was set back
    second.settle(50)
    assert second.life_ms > START_MS


def test_another_process_of_the_same_name_is_noticed() -> None:
    first = registered()
    second = Node(store=first.store)
    second.settle(50)
    first.counted_ms = 0
    first.hear()
    assert not first.lease.is_registered
    assert "another process" in first.notes[0]
    assert first.lease.next_ms() == first.now_ms + RETRY_MS


def test_what_was_heard_from_before_the_registration_means_nothing() -> None:
    first = registered()
    first.perform(first.lease.leave())
    first.answer(first.flying[-1])
    second = Node(store=first.store, started_ms=START_MS + 1)
    second.settle(50)
    for place in range(len(second.store.news)):
        second.hear(place)
    assert second.lease.is_registered


def test_a_clean_stop_drops_the_lease_before_it_is_given_back() -> None:
    node = registered()
    effects = node.lease.leave()
    assert [type(effect) for effect in effects] == [CountOn, Ask]
    node.perform(effects)
    node.answer(node.asked(Revoke)[-1])
    assert KEY not in node.store.entries
    node.pass_time(1_000)
    node.tick()
    assert node.lease.next_ms() is None
    assert not node.flying


def test_a_lease_that_is_granted_after_the_node_has_left_is_given_back() -> None:
    node = Node()
    node.tick()
    node.answer(node.asked(Look)[0])
    (grant,) = node.flying
    node.perform(node.lease.leave())
    node.answer(grant)
    (revoke,) = node.asked(Revoke)
    node.answer(revoke)
    assert not node.store.ends_ms


def test_it_says_that_it_leaves_also_when_the_answer_is_lost() -> None:
    node = registered()
    node.perform(node.lease.say_leaving(node.now_ms))
    (put,) = node.asked(Put)
    put.land(node.store)
    node.lose(put)
    said = [node.lease.leaving_is_said]
    node.settle(500)
    assert [*said, node.lease.leaving_is_said] == [False, True]
    assert len([one for one in node.store.puts if one[0] == KEY]) == 2


def test_old_positions_that_land_late_do_not_replace_newer_ones() -> None:
    node = registered()
    node.perform(node.lease.say_positions({1: Position(1, 1, 5)}, node.now_ms))
    (old,) = node.asked(Put)
    node.lose(old)
    node.flying.remove(old)
    node.perform(node.lease.say_positions({1: Position(1, 1, 9)}, node.now_ms))
    node.settle(500)
    old.land(node.store)
    assert decode_positions(node.store.entries[positions_key(NAME)].value).positions[1].last == 9


def test_a_node_that_leaves_while_it_registers_gives_back_the_lease_of_its_attempt() -> None:
    """Its entry may be made all the same, and must not stay."""
    node = Node()
    effects = node.lease.tick(node.now_ms)
    for _ in range(10):
        asked = [effect for effect in effects if isinstance(effect, Ask)]
        if any(isinstance(ask.request, Put) for ask in asked):
            break
        effects = []
        for ask in asked:
            effects += node.lease.answered(ask.number, node.store.carry_out(ask.request), node.now_ms)
    assert any(isinstance(effect, Ask) and isinstance(effect.request, Put) for effect in effects)
    left = node.lease.leave()
    assert [type(effect.request) for effect in left if isinstance(effect, Ask)] == [Revoke]
