"""Which numbers a primary may give out, over any history of elections: none is ever given out twice.

The model has no network and no disks: replicas with as many messages as they have, the entry in the store, and primaries that do what
`sequence_numbers` says. Whatever is lost, whoever leads and however often it falls, what was told stays what it was.
"""

from __future__ import annotations

from random import Random

import msgspec

from penstock.cluster.layout import sequence_numbers
from penstock.cluster.layout.elections import elected, handed_over
from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, encode
from penstock.cluster.layout.sequence_numbers import (
    ASYNC_BLOCK,
    END_OF_NUMBERS,
    SYNC_BLOCK,
    UNNOTED_SKIP,
    acts_synchronously,
    begun_densely,
    first_number,
    first_row,
    left_exactly,
    may_give_out,
    never_committed,
    noted,
    understood,
)
from penstock.model.records import KINDS, NUMBERS_SKIPPED, SPENT_MOVED
from penstock.model.settings import QueueSettings, Replication
from penstock.queue.state.chunk import CHUNK_MESSAGES

NODES = {name: NodeEntry(node=name, native="", peers="", started_ms=1, records=KINDS) for name in "abc"}


def entry_of(replication: Replication = "async", **fields: object) -> PartitionEntry:
    made = PartitionEntry(
        partition=1,
        queue_id=1,
        queue="q",
        ordinal=0,
        settings=QueueSettings(replicas=3, replication=replication),
        epoch=1,
        primary="a",
        replicas=list("abc"),
        in_sync=list("abc"),
    )
    return msgspec.structs.replace(made, **fields)


class Model:
    """Logs are lists of (number, message); messages count on for ever."""

    def __init__(self, replication: Replication) -> None:
        self.entry = entry_of(replication)
        self.logs: dict[str, list[tuple[int, int]]] = {name: [] for name in NODES}
        self.following = dict.fromkeys(NODES, 1)
        """With which number each log goes on."""
        self.messages = 0
        self.told: dict[int, int] = {}
        self.lead()

    def lead(self) -> None:
        """The primary of the entry begins."""
        name = self.entry.primary or ""
        following = self.following[name]
        first = first_number(self.entry, following, following, self.entry.settings.replication)
        assert first >= following
        self.following[name] = first

    def serve(self) -> None:
        """The store hears that it does, or that it needs more numbers, or what losing it would mean.

        A `sync` primary does once all in sync have the beginning of its epoch.
        """
        entry, primary = self.entry, self.entry.primary or ""
        if entry.serving != entry.epoch and acts_synchronously(entry, entry.epoch):
            begun = self.logs[primary], self.following[primary]
            if any((self.logs[name], self.following[name]) != begun for name in entry.in_sync):
                return
        served = msgspec.structs.replace(self.entry, serving=self.entry.epoch)
        self.entry = noted(served, self.entry.epoch, self.following[self.entry.primary or ""])

    def send(self, confirmed: list[str]) -> None:
        """A message; told once enough replicas have it, if the primary serves."""
        entry, primary = self.entry, self.entry.primary or ""
        number = self.following[primary]
        if entry.serving != entry.epoch or number >= may_give_out(entry, entry.epoch):
            return
        self.messages += 1
        log = self.logs[primary]
        for name in {primary, *confirmed} & set(entry.in_sync):
            if self.logs[name] == log:
                self.logs[name], self.following[name] = [*log, (number, self.messages)], number + 1
        everybody = all(self.logs[name] == self.logs[primary] for name in entry.in_sync)
        if everybody or not acts_synchronously(entry, entry.epoch):
            assert self.told.setdefault(number, self.messages) == self.messages, "a number for two messages"

    def drop(self, name: str) -> None:
        """A replica is no longer in sync."""
        if name != self.entry.primary:
            left = [one for one in self.entry.in_sync if one != name]
            self.entry = msgspec.structs.replace(self.entry, in_sync=left)

    def catch_up(self, name: str) -> None:
        """A replica gets what the primary has, whatever it had, and is in sync."""
        primary = self.entry.primary or ""
        self.logs[name], self.following[name] = self.logs[primary], self.following[primary]
        in_sync = [one for one in self.entry.replicas if one == name or one in self.entry.in_sync]
        self.entry = msgspec.structs.replace(self.entry, in_sync=in_sync)

    def elect(self, name: str) -> None:
        """Of those in sync; where the last primary never served, also of those that were before."""
        entry = self.entry
        before = entry.in_sync_before if entry.serving != entry.epoch else []
        if name in entry.in_sync:
            self.entry = elected(entry, NODES[name], "", in_sync=entry.in_sync)
        elif name in before:
            self.entry = elected(entry, NODES[name], "", in_sync=[name])
        else:
            return
        self.lead()

    def elect_uncleanly(self, name: str) -> None:
        self.entry = elected(self.entry, NODES[name], "", in_sync=[name], unclean=True)
        self.lead()

    def hand_over(self, name: str) -> None:
        """To one that has everything."""
        entry, primary = self.entry, self.entry.primary or ""
        if name in entry.in_sync and self.logs[name] == self.logs[primary] and entry.serving == entry.epoch:
            self.following[name] = self.following[primary]
            self.entry = handed_over(left_exactly(entry, entry.epoch, self.following[primary]), NODES[name])
            self.lead()

    def alter(self, replication: Replication) -> None:
        settings = msgspec.structs.replace(self.entry.settings, replication=replication)
        self.entry = msgspec.structs.replace(self.entry, settings=settings)


def walk(seed: int) -> None:
    """One history, from a seed."""
    dice = Random(seed)
    model = Model(dice.choice(("sync", "async")))
    for _ in range(80):
        name = dice.choice("abc")
        match dice.choices(range(8), weights=(12, 6, 3, 3, 3, 1, 1, 1))[0]:
            case 0:
                model.send(dice.choice((["a", "b", "c"], ["a", "b", "c"], [name], [])))
            case 1:
                model.serve()
            case 2:
                model.elect(name)
            case 3:
                model.catch_up(name)
            case 4:
                model.drop(name)
            case 5:
                model.hand_over(name)
            case 6:
                model.elect_uncleanly(name)
            case _:
                model.alter(dice.choice(("sync", "async")))
        primary = model.entry.primary or ""
        if model.entry.serving == model.entry.epoch:
            assert max((number for number, _ in model.logs[primary]), default=0) < model.entry.numbers_to
        assert max(model.told, default=0) < max(model.entry.numbers_to, model.following[primary])


def test_no_number_is_ever_told_for_two_messages() -> None:
    for seed in range(1_000):
        walk(seed)


def test_a_block_is_noted_with_the_word_that_a_primary_serves() -> None:
    entry = noted(entry_of(serving=1), 1, 1)
    assert (entry.numbers_to, entry.numbers_epoch, entry.lossless) == (ASYNC_BLOCK + CHUNK_MESSAGES, 1, 0)
    half = ASYNC_BLOCK // 2 + CHUNK_MESSAGES
    assert noted(entry, 1, half) == entry, "half of it is still there: nothing is written"
    assert noted(entry, 1, half + 1).numbers_to == half + ASYNC_BLOCK + CHUNK_MESSAGES
    sync = noted(entry_of("sync", serving=1), 1, 1)
    assert (sync.numbers_to, sync.lossless) == (SYNC_BLOCK + CHUNK_MESSAGES, 1)
    last = noted(entry_of(serving=1), 1, END_OF_NUMBERS - 5)
    assert last.numbers_to == END_OF_NUMBERS
    assert noted(last, 1, END_OF_NUMBERS - 1) == last


def test_what_earlier_versions_gave_out_is_not_known() -> None:
    served, skipped = entry_of(epoch=4, serving=3), UNNOTED_SKIP + CHUNK_MESSAGES
    assert first_number(served, 100, 100, "async") == skipped
    assert first_number(served, skipped, 100, "async") == skipped, "once, however often it falls"
    tight = entry_of("sync", epoch=4, serving=3)
    assert first_number(tight, 100, 100, "sync") == 100
    assert first_number(tight, 100, 100, "async") == skipped, "it was altered, and this replica has not heard"
    assert first_number(msgspec.structs.replace(tight, unclean=4), 100, 100, "sync") == skipped
    between = msgspec.structs.replace(served, numbers_to=7 + UNNOTED_SKIP * 2, numbers_epoch=2)
    assert first_number(between, 100, 100, "async") == 7 + UNNOTED_SKIP * 2, (
        "an old primary led after a new one"
    )
    assert first_number(entry_of(), 1, 1, "async") == 1, "nothing was ever given out"


def test_rows_skip_after_an_unclean_election_only() -> None:
    assert first_row(entry_of(epoch=4, serving=3)) == 0
    assert first_row(entry_of(epoch=4, serving=3, unclean=2)) == 0, "that one has served since"
    assert first_row(entry_of(epoch=5, serving=3, unclean=4)) == 5 << sequence_numbers.ROW_SHIFT


def test_replicas_that_cannot_read_it_are_asked_for() -> None:
    old = msgspec.structs.replace(NODES["c"], records=0)
    assert understood("abc", NODES, KINDS)
    assert understood("abc", {"a": NODES["a"]}, KINDS), "those that are away are not waited for"
    assert not understood("abc", {**NODES, "c": old}, KINDS)
    assert understood("ab", {**NODES, "c": old}, KINDS)
    older = msgspec.structs.replace(NODES["c"], records=NUMBERS_SKIPPED)
    assert understood("abc", {**NODES, "c": older}, NUMBERS_SKIPPED), "each kind is asked for by itself"
    assert not understood("abc", {**NODES, "c": older}, SPENT_MOVED)
    assert b"records" in encode(NODES["a"])


def test_only_what_was_written_before_a_dense_epoch_that_it_never_heard_of_is_given_up() -> None:
    entry = entry_of("sync", epoch=6, serving=5, unclean=6, in_sync=["a"], dense=[(2, 11, 8), (5, 31, 20)])
    assert never_committed(entry, 1, 9) == 10
    assert never_committed(entry, 1, 8) is None  # it wrote nothing that was given out again
    assert never_committed(entry, 2, 21) == 30
    assert never_committed(entry, 5, 40) is None
    assert never_committed(msgspec.structs.replace(entry, unclean=4), 1, 9) is None  # a clean election


def test_beginnings_are_remembered_until_all_replicas_are_in_sync() -> None:
    entry = entry_of("sync", epoch=2, serving=2, in_sync=["a", "b"])
    entry = begun_densely(entry, (2, 11, 8))
    assert entry.dense == [(2, 11, 8)]
    assert begun_densely(entry, (2, 11, 8)) is entry
    assert begun_densely(entry, None) is entry
    assert begun_densely(msgspec.structs.replace(entry, in_sync=list("abc")), (2, 11, 8)).dense == []
    for epoch in range(3, 200):
        entry = begun_densely(entry, (epoch, 10 * epoch, 9 * epoch))
    assert len(entry.dense) == sequence_numbers.DENSE_REMEMBERED
    assert entry.dense[0] == (2, 11, 8)
    assert entry.dense[-1] == (199, 1_990, 1_791)
