"""The cache of a metadata server: whatever order things happen in, it never stays behind what it was told."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.metadata.server.entry_cache import ENTRY_BYTES, EntryCache, Ticket
from penstock.metadata.store.interface import ABSENT, Change, Entry, Listing

KEYS = st.sampled_from(["a", "b", "c"])
ROOM_FOR_TWO = 2 * (ENTRY_BYTES + 10)


class CacheBesideAStore(RuleBasedStateMachine):
    """A store, a watch that is some changes behind, and reads and writes whose answers are under way."""

    limit_bytes = 1 << 20

    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self.entries: dict[str, Entry] = {}
        self.changes: list[Change] = []
        self.told = 0
        self.cache = EntryCache(self.limit_bytes)
        self.cache.load(Listing((), 0), everything=True)
        self.under_way: list[tuple[Ticket, bytes | None, int]] = []
        self.begun: list[Ticket] = []

    def change(self, key: str, deleted: bool) -> tuple[bytes | None, int]:
        if deleted and key not in self.entries:
            return None, ABSENT
        self.version += 1
        value = None if deleted else b"%d" % self.version
        if value is None:
            del self.entries[key]
        else:
            self.entries[key] = Entry(key, value, self.version)
        self.changes.append(Change(key, value, self.version))
        return value, self.version

    @rule(key=KEYS, deleted=st.booleans())
    def somebody_writes(self, key: str, deleted: bool) -> None:
        self.change(key, deleted)

    @precondition(lambda self: self.told < len(self.changes))
    @rule()
    def the_watch_tells(self) -> None:
        self.cache.apply(self.changes[self.told])
        self.told += 1

    @rule(key=KEYS)
    def a_read_or_write_begins(self, key: str) -> None:
        self.begun.append(self.cache.begin(key))

    @precondition(lambda self: self.begun)
    @rule(data=st.data(), what=st.sampled_from(["read", "put", "delete"]))
    def the_store_answers(self, data: st.DataObject, what: str) -> None:
        ticket = self.begun.pop(data.draw(st.integers(0, len(self.begun) - 1)))
        if what == "read":
            entry = self.entries.get(ticket.key)
            self.under_way.append(
                (ticket, entry.value if entry else None, entry.version if entry else ABSENT)
            )
        else:
            self.under_way.append((ticket, *self.change(ticket.key, what == "delete")))

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def the_answer_arrives(self, data: st.DataObject) -> None:
        ticket, value, version = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        self.cache.finish(ticket, value, version)

    @rule()
    def everything_is_loaded_anew(self) -> None:
        listing = Listing(tuple(self.entries.values()), self.version)
        self.cache.load(listing, everything=True)
        self.told = len(self.changes)

    @invariant()
    def what_is_there_was_once_so_and_is_not_older_than_what_the_watch_told(self) -> None:
        told = {change.key: change for change in self.changes[: self.told]}
        for key in ("a", "b", "c"):
            entry = self.cache.get(key)
            if entry is not None:
                assert Change(*entry) in self.changes
                assert key not in told or entry.version >= told[key].version
                assert key not in told or told[key].value is not None or entry.version > told[key].version

    @invariant()
    def it_keeps_to_its_room(self) -> None:
        assert self.cache.bytes <= self.limit_bytes
        kept = [entry for key in ("a", "b", "c") if (entry := self.cache.get(key)) is not None]
        assert self.cache.bytes == sum(len(one.key) + len(one.value) + ENTRY_BYTES for one in kept)

    def teardown(self) -> None:
        for ticket in self.begun:
            self.cache.abandon(ticket)
        while self.under_way:
            self.cache.finish(*self.under_way.pop())
        while self.told < len(self.changes):
            self.the_watch_tells()
        for key in ("a", "b", "c"):
            entry = self.cache.get(key)
            assert entry is None or entry == self.entries.get(key)
        listing = self.cache.list("")
        if listing is not None:
            assert {one.key: one for one in listing.entries} == self.entries


class SmallCacheBesideAStore(CacheBesideAStore):
    limit_bytes = ROOM_FOR_TWO


TestCache = CacheBesideAStore.TestCase
TestCache.settings = settings(max_examples=150, stateful_step_count=40)
TestSmallCache = SmallCacheBesideAStore.TestCase
TestSmallCache.settings = settings(max_examples=100, stateful_step_count=40)


def test_what_was_used_longest_ago_goes_first_and_then_not_everything_is_there() -> None:
    cache = EntryCache(ROOM_FOR_TWO)
    cache.load(Listing((Entry("a", b"1", 1), Entry("b", b"2", 2)), 2), everything=True)
    assert cache.list("") is not None
    assert cache.get("a") is not None
    cache.apply(Change("c", b"3", 3))
    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert cache.list("") is None


def test_what_is_not_to_be_here_is_not_kept() -> None:
    cache = EntryCache(1 << 20, keeps=lambda key: key == "a")
    cache.load(Listing((), 0), everything=False)
    cache.apply(Change("a", b"1", 1))
    cache.apply(Change("b", b"2", 2))
    assert (cache.get("a"), cache.get("b")) == (Entry("a", b"1", 1), None)
    cache.keeps = lambda key: key == "b"
    cache.keep_only_own()
    assert len(cache) == cache.bytes == 0
