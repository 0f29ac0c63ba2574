"""The rule of moves, in every small world: two queues of one name, one message, and a source that hears of the layout in any order.

The world deletes the first queue and makes the second one, takes entries out of the store and puts them back, hides them from the
node of the source, ends it, and lets ten minutes pass. The message is consumed wherever it arrives, so that it must arrive once, and is not
taken back then. From every world the message also gets somewhere when all is well again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from penstock.cluster.layout.deletion import given_up, marked
from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.settings import QueueSettings
from penstock.replication.primary_secondary.node.layout_view import GONE_MS, STEP_MS, LayoutView
from penstock.replication.primary_secondary.node.moves.next_step import (
    AskFirst,
    NoTarget,
    SendTo,
    Wait,
    next_step,
)

NAME, SOURCE = "dead", 9
FIRST, SECOND = 1, 2
NAMED = 0
"""The key of the entry of the queue; the others are those of its partitions."""
FOREVER_MS = 1 << 60
UNHEARD_AT_MOST = 2
"""The node of the source hears of something before more than this happens."""


def entry(partition: int, name: str = NAME) -> PartitionEntry:
    return PartitionEntry(
        partition=partition,
        queue_id=partition,
        queue=name,
        ordinal=0,
        settings=QueueSettings(),
        epoch=1,
        primary="b",
        replicas=["b"],
        in_sync=["b"],
        made_ms=2 if partition == SECOND else 1,
    )


LIVING = {one: entry(one) for one in (FIRST, SECOND)}
DELETED = {one: marked(LIVING[one]) for one in LIVING}
ENDED = {one: given_up(DELETED[one], "") for one in LIVING}

Change = tuple[int, PartitionEntry | int | None]
"""A key and its value; the version is the place in the log."""


@dataclass
class World:
    """The store, and what the node of the source has heard of it."""

    aim: str
    partitions: dict[int, PartitionEntry | None] = field(default_factory=dict)
    """What the store has."""
    lost: dict[int, PartitionEntry] = field(default_factory=dict)
    """What somebody took out of it, and may put back."""
    named: int | None = None
    unnamed: int | None = None
    """The queue whose entry somebody took out of the store."""
    too_new: frozenset[int] = frozenset()
    """Partitions whose entries the node of the source cannot read."""
    log: tuple[Change, ...] = ()
    """News that the node has not heard of."""
    version: int = 0
    view: LayoutView = field(default_factory=LayoutView)
    now_ms: int = 0
    before: bool = False
    """Whether the message was on its way when the epoch of the source began."""
    sent: frozenset[int] = frozenset()
    said: frozenset[int] = frozenset()
    """Targets that have said that they have not taken it in."""
    arrived: frozenset[int] = frozenset()
    is_over: bool = False
    faults: int = 0
    """So many more may happen."""
    story: tuple[str, ...] = ()

    def key(self) -> Any:
        view = self.view
        return (
            frozenset((one, _state(found)) for one, found in self.partitions.items()),
            frozenset((one, _state(found)) for one, found in self.lost.items()),
            self.named,
            self.unnamed,
            self.too_new,
            tuple((key, _state(value) if key else value) for key, value in self.log),
            frozenset((known.entry.partition, _state(known.entry)) for known in view),
            frozenset((one, _state(missing.entry)) for one, missing in view.missing.items()),
            frozenset((one, _state(found)) for one, found in view._unread.items()),
            frozenset(view.unreadable),
            frozenset(view.ended),
            tuple(view._named.items()),
            view.is_whole,
            self.before,
            self.sent,
            self.said,
            self.arrived,
            self.faults,
        )

    # -- what is done ----------------------------------------------------------------------------------------

    def copy(self, act: str, **changes: Any) -> World:
        view = LayoutView()
        view.__dict__ = {name: _copied(value) for name, value in self.view.__dict__.items()}
        return replace(self, story=(*self.story, act), view=view, **changes)

    def harm(self, act: str, **changes: Any) -> World:
        return self.copy(act, faults=self.faults - 1, **changes)

    def write(self, *changes: Change) -> World:
        """The store has these now, and the node will hear of it."""
        for key, value in changes:
            if key == NAMED:
                assert value is None or isinstance(value, int)
                self.named = value
            else:
                assert not isinstance(value, int)
                self.partitions = {**self.partitions, key: value}
        self.log = (*self.log, *changes)
        return self

    def hear(self, place: int) -> None:
        key, value = self.log[place]
        self.log = self.log[:place] + self.log[place + 1 :]
        self.tell(key, value)

    def tell(self, key: int, value: PartitionEntry | int | None) -> None:
        self.version += 1
        if isinstance(value, int) or key == NAMED:
            assert not isinstance(value, PartitionEntry)
            self.view.name(NAME, value)
        elif value is None:
            self.view.gone(key, self.now_ms)
        elif key in self.too_new:
            self.view.gone(key, self.now_ms, unreadable=True)
        else:
            self.view.put(value, self.version)

    def start(self) -> None:
        """A node that heard of nothing before leads the source."""
        self.view, self.log = LayoutView(), ()
        self.view.followed_until_ms = FOREVER_MS
        self.view.pass_time(self.now_ms)
        self.tell(SOURCE, entry(SOURCE, "orders"))
        for partition, found in self.partitions.items():
            if found is not None:
                self.tell(partition, found)
        self.tell(NAMED, self.named)

    def pass_time(self) -> None:
        """What is missing does not come back, and whoever consumed from it is forgotten."""
        for _ in range(GONE_MS // STEP_MS + 1):
            self.now_ms += STEP_MS
            self.view.pass_time(self.now_ms)
        self.view.take_lost()
        self.arrived -= frozenset(self.lost)
        self.lost, self.unnamed = {}, None

    def step(self) -> SendTo | AskFirst | Wait | NoTarget:
        return next_step(
            self.view,
            SOURCE,
            self.aim,
            lambda one: one not in self.said and (self.before or one in self.sent),
            lambda one: self.view.get(one) is not None,
        )

    # -- what may happen -------------------------------------------------------------------------------------

    def following(self) -> Iterator[World]:
        yield from self._heard()
        yield from self._moved()
        if len(self.log) < UNHEARD_AT_MOST:
            yield from self._changed()
            yield from self._mended()
            if self.faults:
                yield from self._harmed()

    def _heard(self) -> Iterator[World]:
        heard = set()
        for place, (key, _) in enumerate(self.log):
            # News of one entry comes in order, and a name when all that is older was heard.
            if key not in heard and (key != NAMED or place == 0):
                world = self.copy(f"hears {_told(self.log[place])}")
                world.hear(place)
                yield world
            heard.add(key)

    def _moved(self) -> Iterator[World]:
        match self.step():
            case SendTo(target):
                one = target.partition
                found = self.partitions.get(one)
                yield self.copy(f"sends to {one} in vain", sent=self.sent | {one})
                if found is not None and not found.deleted:
                    assert self.arrived <= {one}, self.tell_story(f"sends to {one}")
                    yield self.copy(f"sends to {one}", sent=self.sent | {one}, arrived=self.arrived | {one})
            case AskFirst(partitions):
                world = self.copy(f"asks {partitions}")
                for one in partitions:
                    world.answer(one)
                yield world
            case NoTarget():
                assert not self.arrived, self.tell_story("takes it back")
                yield self.copy("takes it back", is_over=True)
            case Wait():
                pass

    def answer(self, one: int) -> None:
        found = self.partitions.get(one)
        if found is not None and found.deleted:
            if one in self.arrived:
                self.is_over = True
            else:
                self.said = self.said | {one}

    def _changed(self) -> Iterator[World]:
        found = self.partitions[FIRST]
        if found is LIVING[FIRST] and self.named == FIRST:
            yield self.copy("1 is deleted").write((NAMED, None), (FIRST, DELETED[FIRST]))
        if found is DELETED[FIRST] and FIRST not in self.arrived:
            yield self.copy("1 ends").write((FIRST, ENDED[FIRST]), (FIRST, None))
        if SECOND not in self.partitions and self.named is None:
            yield self.copy("2 is made").write((SECOND, LIVING[SECOND]), (NAMED, SECOND))

    def _mended(self) -> Iterator[World]:
        for one in self.too_new:
            world = self.copy(f"{one} can be read", too_new=self.too_new - {one})
            yield world.write((one, world.partitions[one]))
        for one, found in self.lost.items():
            yield self.copy(f"{one} is put back", lost=_without(self.lost, one)).write((one, found))
        if self.unnamed is not None and self.named is None:
            yield self.copy("the queue's entry is put back", unnamed=None).write((NAMED, self.unnamed))

    def _harmed(self) -> Iterator[World]:
        for one, found in self.partitions.items():
            if found is None:
                continue
            if found is not ENDED[one]:
                world = self.harm(f"{one} is missing", lost={**self.lost, one: found})
                yield world.write((one, None))
            if one not in self.too_new:
                yield self.harm(f"{one} is too new", too_new=self.too_new | {one}).write((one, found))
        for one, found in self.lost.items():
            if one not in self.too_new:
                lost, too_new = _without(self.lost, one), self.too_new | {one}
                world = self.harm(f"{one} is put back, too new", lost=lost, too_new=too_new)
                yield world.write((one, found))
        if self.named is not None and self.unnamed is None:
            world = self.harm("the queue's entry is missing", unnamed=self.named)
            yield world.write((NAMED, None))
        if not self.log:
            world = self.harm("ten minutes pass")
            world.pass_time()
            yield world
        yield self.harm("another node leads", before=True, sent=frozenset(), said=frozenset())
        world = self.harm("another node starts", before=True, sent=frozenset(), said=frozenset())
        world.start()
        yield world

    def tell_story(self, last: str) -> str:
        return "; ".join((*self.story, last))

    # -- when all is well ------------------------------------------------------------------------------------

    def heal(self) -> World:
        """Everything is there, can be read and answers."""
        world = self.copy("all is well")
        for one, found in world.lost.items():
            world.write((one, found))
        world.lost = {}
        for one in world.too_new:
            world.too_new = world.too_new - {one}
            world.write((one, world.partitions[one]))
        if world.unnamed is not None and world.named is None:
            world.write((NAMED, world.unnamed))
        if world.named is not None and world.partitions[world.named] is None:
            world.write((NAMED, None))  # a queue without its partition is of no use: somebody deletes it
        for one in list(world.partitions):
            if world.partitions[one] is LIVING[one] and world.named != one:
                world.write((one, DELETED[one]))  # so is a partition without its queue
        while world.log:
            world.hear(0)
        for _ in range(2):  # in the second one nothing is new
            world.pass_time()
        return world

    def ends(self) -> bool:
        """Whether the message gets somewhere."""
        for _ in range(4):
            match self.step():
                case SendTo(target):
                    return target is self.partitions[target.partition]
                case NoTarget():
                    return True
                case AskFirst(partitions):
                    for one in partitions:
                        self.answer(one)
                case Wait():
                    return False
            if self.is_over:
                return True
        return False


def _without(entries: dict[int, PartitionEntry], partition: int) -> dict[int, PartitionEntry]:
    return {one: found for one, found in entries.items() if one != partition}


def _state(found: PartitionEntry | int | None) -> object:
    return (found.deleted, found.retired) if isinstance(found, PartitionEntry) else found


def _told(change: Change) -> str:
    key, value = change
    return f"that the name means {value}" if key == NAMED else f"of {key} {_state(value)}"


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return set(value) if isinstance(value, set) else value


BEGUN_BY_ANOTHER = ("sends to 1", "1 is too new", "another node starts", "ten minutes pass")
OPENINGS: list[tuple[int, tuple[str, ...]]] = [
    (2, ()),
    (1, ("sends to 1", "1 is missing", "hears of 1 None", "1 is put back, too new")),
    (1, BEGUN_BY_ANOTHER),
    (1, (*BEGUN_BY_ANOTHER, "1 is missing", "hears of 1 None")),
]
"""How many faults happen after what has happened already. Three in every world took 100,952 worlds and ten times as long."""


def opened(aim: str, opening: tuple[str, ...], faults: int) -> World:
    """The world after some of what may happen in it."""
    world = World(aim, {FIRST: LIVING[FIRST]}, named=FIRST, faults=len(opening) + faults)
    world.start()
    for act in opening:
        world = next(one for one in world.following() if one.story[-1] == act)
    world.faults = faults
    return world


@pytest.mark.parametrize("aim", [NAME, f"{NAME}#{FIRST}"])
@pytest.mark.parametrize(("faults", "opening"), OPENINGS)
def test_a_message_is_in_one_place_in_every_small_world(
    aim: str, faults: int, opening: tuple[str, ...]
) -> None:
    worlds = [opened(aim, opening, faults)]
    seen = {worlds[0].key()}
    while worlds:
        world = worlds.pop()
        if not world.log:  # every other world comes to one of these
            assert world.heal().ends(), world.tell_story("waits for ever")
        for following in world.following():
            if not following.is_over and (key := following.key()) not in seen:
                seen.add(key)
                worlds.append(following)
