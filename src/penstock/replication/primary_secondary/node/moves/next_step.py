"""What messages on their way do next: set out, wait, ask where they are, or find that they have nowhere to go.

A message that was sent to a partition may be in it, and may have been received and deleted there, until the source knows what became of it.
Sent to another partition, or taken back, it would come back. So there is one rule:

    A source sends messages to a partition, or takes them back, only when it knows of every other partition that they
    may have been sent to that they are not in it.

It knows that of a partition that

- has another name or ordinal than the one that the messages go to, or is of another queue than the one that they are meant for;
- they were not sent to (`sent_moves`): they left their source in this epoch, and this primary has sent them elsewhere or nowhere;
- is deleted and says so: it takes nothing in any more, so its answer is final;
- has ended: it was given up, which it is only when its sources know what has arrived, or its entry was missing for `GONE_MS`.

Of every other one the source waits to hear. An entry that is hidden, missing or too new to read, counts as it was heard of last. An entry that
was never read may have any name. A node that started a short while ago may not have heard of an entry, because it is missing; only
messages that left before may be in its partition. It counts where no target is there, or where the target may have taken its place: where
that was made later than the source. How long ago does not matter: a deleted partition waits for its sources for as long as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.move_target import MoveTarget, target_of
from penstock.replication.primary_secondary.node.layout_view import LayoutView

UNHEARD = 0
"""No partition has this id: it stands for those that this node has not heard of."""


class EarlierTarget(NamedTuple):
    """A partition that messages may have been sent to, and that is not their target now."""

    partition: int
    why: str = ""
    """Why it cannot be asked yet; empty: it is deleted, so that its answer is final."""


class SendTo(NamedTuple):
    """They set out."""

    target: PartitionEntry


class AskFirst(NamedTuple):
    """These partitions have to say what has arrived."""

    partitions: list[int]


class Wait(NamedTuple):
    """Nothing can be done for now."""

    why: str
    for_layout: bool = False
    """Whether only a change of the layout ends it."""


class NoTarget(NamedTuple):
    """There is no such queue."""

    why: str


NextStep = SendTo | AskFirst | Wait | NoTarget


def find_target(layout: LayoutView, source: int, aim: str) -> PartitionEntry | None:
    """The partition that messages of another one go to; None: there is none now."""
    wanted = target_of(aim)
    target = layout.find(wanted.name, _ordinal(layout, source))
    # Another incarnation: the queue that was meant is deleted, and what has its name now is another one.
    return target if target is not None and wanted.is_meant(target.queue_id) else None


def earlier_targets(layout: LayoutView, source: int, aim: str) -> list[EarlierTarget]:
    """All partitions but the target that messages may have been sent to, as far as a node can know that from the layout."""
    wanted, target = target_of(aim), find_target(layout, source, aim)
    found = [
        _earlier(layout, entry)
        for entry in layout.of_name(wanted.name, _ordinal(layout, source))
        if wanted.is_meant(entry.queue_id) and entry.partition != source and not _is_same(entry, target)
    ]
    found += [
        EarlierTarget(one, f"this version cannot read the entry of partition {one}")
        for one in layout.nameless()
        if one != source
    ]
    if not layout.is_whole and _may_be_unheard(layout, source, wanted, target):
        found.append(
            EarlierTarget(UNHEARD, "this node started a short while ago, and an entry may be missing")
        )
    return found


def next_step(
    layout: LayoutView,
    source: int,
    aim: str,
    may_be_in: Callable[[int], bool],
    can_ask: Callable[[int], bool],
) -> NextStep:
    """What some messages do. `may_be_in`: whether they were sent to a partition, and it has not said that they are not there."""
    left = [one for one in earlier_targets(layout, source, aim) if may_be_in(one.partition)]
    for partition, why in left:
        if why or not can_ask(partition):
            return Wait(why or _unreachable(layout, partition))
    if left:
        return AskFirst([one.partition for one in left])
    target = find_target(layout, source, aim)
    if target is not None:
        return SendTo(target)
    awaits = awaited(layout, aim)
    if awaits is not None:
        return Wait(awaits, for_layout=True)
    return NoTarget(f"there is no queue {target_of(aim).name}")


def awaited(layout: LayoutView, aim: str) -> str | None:
    """Why a target that is not found may be there all the same; None: it is not."""
    wanted = target_of(aim)
    if layout.nameless():
        return f"this version cannot read an entry, which may be the one of {wanted.name}"
    if layout.is_undecided(wanted):
        return f"{wanted.name} is being made or deleted, or an entry of it is missing or too new to read"
    return None


def _may_be_unheard(
    layout: LayoutView, source: int, wanted: MoveTarget, target: PartitionEntry | None
) -> bool:
    """Whether messages may be in a partition that this node has not heard of."""
    if wanted.queue_id is not None:  # it has one such partition
        return target is None and not layout.has_ended(wanted.name, wanted.queue_id, _ordinal(layout, source))
    if target is None:
        return True
    known = layout.last(source)
    return target.made_ms > (known.made_ms if known is not None else 0)


def _earlier(layout: LayoutView, entry: PartitionEntry) -> EarlierTarget:
    partition = entry.partition
    if partition in layout.missing:
        why = f"they may be in partition {partition} of {entry.queue}, whose entry is missing"
    elif partition in layout.unreadable:
        why = f"they may be in partition {partition} of {entry.queue}, whose entry this version cannot read"
    elif not entry.deleted:
        why = f"they may be in partition {partition}, which had the name {entry.queue} and is not deleted"
    else:
        why = ""
    return EarlierTarget(partition, why)


def _unreachable(layout: LayoutView, partition: int) -> str:
    entry = layout.last(partition)
    primary = entry.primary if entry is not None else None
    return f"it is deleted and may have them: {f'{primary} is not connected' if primary else 'it has no primary'}"


def _is_same(entry: PartitionEntry, target: PartitionEntry | None) -> bool:
    return target is not None and entry.partition == target.partition


def _ordinal(layout: LayoutView, source: int) -> int:
    entry = layout.last(source)
    return entry.ordinal if entry is not None else 0
