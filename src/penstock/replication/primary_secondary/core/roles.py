"""The roles of a node in a partition, and the table of all events that change them.

A role is never stored: it follows from what the node leads, serves, drains and follows. The steps in the table are carried
out one by one. A step that finds no room in the journal is repeated later, from the role that the node has then.
`docs/architecture.md` has the diagram, which `scripts/role_diagram.py` draws from this table.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class Role(StrEnum):
    """The role of a node in a partition."""

    ABSENT = "absent"
    """It does nothing with the partition. Data of it may be on its disk."""
    FOLLOWER = "follower"
    """It stores what a primary sends."""
    LEADING = "leading"
    """It is the primary and serves no client: its epoch begins, it hands over, the partition is closed, or its lease has ended."""
    SERVING = "serving"
    """It is the primary, and clients are served."""
    DRAINING = "draining"
    """It is the primary of a partition of a deleted queue: moves to other queues continue."""


PRIMARY = (Role.LEADING, Role.SERVING, Role.DRAINING)


class Event(StrEnum):
    """An event that may change a role. The value is the label in the diagram."""

    # the newest entry of the layout, as this node sees it
    FOREIGN = "the data here is of another queue"
    OUTDATED = "the entry is of an earlier epoch"
    LEFT_OUT = "no longer named"
    TO_DROP = "told to drop it"
    CONFIRMED = "the same epoch"
    ELECTED = "named the primary"
    NAMED = "named a replica"
    GONE = "the entry is gone"
    # what a node receives and finds
    SUPERSEDED = "a later epoch is known"
    LEASE_LOST = "the lease is lost"
    DAMAGED = "damage is found"
    # what a primary may do now
    MAY_SERVE = "may serve"
    MAY_DRAIN = "the queue is deleted"
    MAY_NEITHER = "may not act"


class Step(StrEnum):
    """A step that an event causes."""

    REFUSE = "report that the entry is not applied"
    STAND_DOWN = "stop leading it, and follow"
    HOLD_BACK = "stop serving it, until the layout names its epoch again"
    UPDATE = "apply the entry"
    LEAD = "begin the epoch"
    FOLLOW = "hold it, and follow its primary"
    UNFOLLOW = "stop following it"
    DROP = "remove everything of it"
    OPEN = "serve clients"
    TURN_AWAY = "send clients elsewhere"
    DRAIN = "move the messages that must leave"
    STOP_DRAINING = "move nothing"


class Row(NamedTuple):
    """The steps in order, and the roles that the node may have afterwards. The first role is the usual one."""

    steps: tuple[Step, ...]
    then: tuple[Role, ...]


Table = dict[tuple[Role, Event], Row]


def _rows(roles: Iterable[Role], event: Event, steps: tuple[Step, ...], *then: Role) -> Table:
    """The same row for several roles; without `then` a role stays."""
    return {(role, event): Row(steps, then or (role,)) for role in roles}


_OTHERS = (Role.ABSENT, Role.FOLLOWER)
_DOWN = (Step.STAND_DOWN,)

TRANSITIONS: Table = {
    **_rows(PRIMARY, Event.FOREIGN, (Step.REFUSE, Step.STAND_DOWN, Step.UNFOLLOW), Role.ABSENT),
    **_rows(_OTHERS, Event.FOREIGN, (Step.REFUSE, Step.UNFOLLOW), Role.ABSENT),
    **_rows(PRIMARY, Event.OUTDATED, (Step.HOLD_BACK,), Role.LEADING),
    **_rows(_OTHERS, Event.OUTDATED, ()),
    **_rows(PRIMARY, Event.LEFT_OUT, _DOWN, Role.FOLLOWER),
    **_rows(_OTHERS, Event.LEFT_OUT, ()),
    **_rows(PRIMARY, Event.TO_DROP, (*_DOWN, Step.DROP), Role.ABSENT, Role.FOLLOWER),
    **_rows((Role.FOLLOWER,), Event.TO_DROP, (Step.DROP,), Role.ABSENT, Role.FOLLOWER),
    **_rows((Role.ABSENT,), Event.TO_DROP, (Step.DROP,)),
    **_rows((Role.LEADING,), Event.CONFIRMED, (Step.UPDATE,), *PRIMARY),
    **_rows((Role.SERVING,), Event.CONFIRMED, (Step.UPDATE,), Role.SERVING, Role.LEADING, Role.DRAINING),
    **_rows((Role.DRAINING,), Event.CONFIRMED, (Step.UPDATE,), Role.DRAINING, Role.LEADING, Role.SERVING),
    # A node that cannot lead stays a follower, or becomes one where it has data.
    **_rows(PRIMARY, Event.ELECTED, (*_DOWN, Step.LEAD), Role.LEADING, Role.FOLLOWER),
    **_rows((Role.FOLLOWER,), Event.ELECTED, (Step.LEAD,), Role.LEADING, Role.FOLLOWER),
    **_rows((Role.ABSENT,), Event.ELECTED, (Step.LEAD,), Role.LEADING, Role.FOLLOWER, Role.ABSENT),
    **_rows(PRIMARY, Event.NAMED, (*_DOWN, Step.FOLLOW), Role.FOLLOWER),
    **_rows(_OTHERS, Event.NAMED, (Step.FOLLOW,), Role.FOLLOWER),
    **_rows(PRIMARY, Event.GONE, _DOWN, Role.FOLLOWER),
    **_rows(_OTHERS, Event.GONE, ()),
    **_rows(PRIMARY, Event.SUPERSEDED, _DOWN, Role.FOLLOWER),
    **_rows(_OTHERS, Event.SUPERSEDED, ()),
    **_rows(PRIMARY, Event.LEASE_LOST, _DOWN, Role.FOLLOWER),
    **_rows(_OTHERS, Event.LEASE_LOST, ()),
    **_rows(PRIMARY, Event.DAMAGED, _DOWN, Role.FOLLOWER),
    **_rows(_OTHERS, Event.DAMAGED, ()),
    **_rows((Role.LEADING,), Event.MAY_SERVE, (Step.OPEN,), Role.SERVING),
    **_rows((Role.SERVING,), Event.MAY_SERVE, ()),
    **_rows((Role.DRAINING,), Event.MAY_SERVE, (Step.OPEN, Step.STOP_DRAINING), Role.SERVING),
    **_rows((Role.LEADING,), Event.MAY_DRAIN, (Step.DRAIN,), Role.DRAINING),
    **_rows((Role.SERVING,), Event.MAY_DRAIN, (Step.TURN_AWAY, Step.DRAIN), Role.DRAINING),
    **_rows((Role.DRAINING,), Event.MAY_DRAIN, ()),
    **_rows((Role.LEADING,), Event.MAY_NEITHER, ()),
    **_rows((Role.SERVING,), Event.MAY_NEITHER, (Step.TURN_AWAY,), Role.LEADING),
    **_rows((Role.DRAINING,), Event.MAY_NEITHER, (Step.STOP_DRAINING,), Role.LEADING),
}
"""By role and event. A pair that is missing cannot happen: only a primary receives messages of its own epoch, or asks whether
it may act.
"""


def diagram() -> str:
    """The table as a Mermaid diagram: the usual ways from one role to another."""
    edges: dict[tuple[str, str], list[str]] = {}
    for (role, event), row in TRANSITIONS.items():
        target = row.then[0]
        whole = all(_usual(primary, event) is target for primary in PRIMARY)
        if role in PRIMARY and whole and target not in PRIMARY:
            if role is PRIMARY[0]:
                edges.setdefault(("primary", target), []).append(event)
        elif target is not role:
            edges.setdefault((role, target), []).append(event)
    lines = ["stateDiagram-v2", "    [*] --> absent", "    state primary {"]
    lines += [f"        {role}" for role in PRIMARY]
    lines += [
        f"    {'    ' if source in PRIMARY and target in PRIMARY else ''}{source} --> {target}: {', '.join(events)}"
        for (source, target), events in sorted(
            edges.items(), key=lambda edge: not (edge[0][0] in PRIMARY and edge[0][1] in PRIMARY)
        )
    ]
    inner = 3 + len(PRIMARY) + sum(source in PRIMARY and target in PRIMARY for source, target in edges)
    return "\n".join([*lines[:inner], "    }", *lines[inner:]])


def _usual(role: Role, event: Event) -> Role | None:
    row = TRANSITIONS.get((role, event))
    return row.then[0] if row is not None else None
