"""Consumer groups for operators: list, describe, move, delete, in every partition of the log.

A partition only knows its own groups; here they are combined by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from penstock.client.connection.failure import refused
from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.route import Route
from penstock.client.consume.browse import resolved
from penstock.client.log.group_description import GroupDescription, together
from penstock.client.log.membership import check_group
from penstock.client.log.start import (
    Moment,
    PartitionStart,
    Start,
    check_start,
    partitions_of,
    resolve_place,
    time_ms,
)
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import partition_of
from penstock.wire.log_messages import (
    CommitOffset,
    DeleteGroup,
    GroupList,
    ListGroups,
    SeekGroup,
)
from penstock.wire.log_messages import GroupDescription as PartitionDescription
from penstock.wire.messages import Done

GROUPS_PER_PAGE = 100


async def list_groups(route: Route) -> list[GroupDescription]:
    """All groups, by name."""
    partitions = await partitions_of(route, look=True)
    lists = await asyncio.gather(*(_groups_of(route, partition) for partition in partitions))
    by_name: dict[str, list[tuple[int, PartitionDescription]]] = {}
    for partition, groups in zip(partitions, lists, strict=True):
        for group in groups:
            by_name.setdefault(group.name, []).append((partition, group))
    return [together(by_name[name]) for name in sorted(by_name)]


async def describe_group(route: Route, name: str) -> GroupDescription:
    """One group; raises where there is none of that name."""
    found = await places_of(route, name)
    if not found:
        raise _no_group(route, name)
    return together(list(found.items()))


async def places_of(route: Route, name: str) -> dict[int, PartitionDescription]:
    """The descriptions of a group by the partitions that know it."""
    check_group(name)
    partitions = await partitions_of(route, look=True)
    found = await asyncio.gather(*(_find(route, name, partition) for partition in partitions))
    return {partition: group for partition, group in zip(partitions, found, strict=True) if group is not None}


async def seek_group(
    route: Route, name: str, start: Start | None, from_time: Moment | None
) -> dict[int, PartitionDescription]:
    """Moves a group; its members start again from there. Returns it as it is now, where it was moved."""
    check_group(name)
    check_start(start, from_time)
    if start is None and from_time is None:
        raise refused("give a start or a from_time")
    known = await places_of(route, name)
    if not known:
        raise _no_group(route, name)
    places: dict[int, PartitionStart | None]
    if isinstance(start, Mapping):
        places = dict(start)
    elif isinstance(start, int):
        places = {partition_of(start): start}
    else:
        places = dict.fromkeys(await partitions_of(route), start)
    moved = await asyncio.gather(
        *(_seek(route, name, partition, places[partition], from_time, known) for partition in places)
    )
    return dict(zip(places, moved, strict=True))


async def commit_offsets(route: Route, name: str, offsets: Mapping[int, int]) -> None:
    """Commits for a group without members; creates it if it does not exist."""
    check_group(name)
    check_start(offsets, None)
    await asyncio.gather(*(_commit(route, name, offset) for offset in offsets.values()))


async def delete_group(route: Route, name: str) -> None:
    """Forgets a group and how far it has come; refused while it has members."""
    known = await places_of(route, name)
    if not known:
        raise _no_group(route, name)
    _refuse_members(name, known.values())
    for partition in known:
        await resolved(
            route,
            lambda incarnation: route.link.ask(
                DeleteGroup(incarnation.queue_id, name, partition),  # noqa: B023 (awaited before it changes)
                Done,
            ),
        )


async def _groups_of(route: Route, partition: int, after: str = "") -> list[PartitionDescription]:
    """All groups of one partition after a name, by name."""
    groups: list[PartitionDescription] = []
    more = True
    while more:
        page = await _page(route, partition, after, GROUPS_PER_PAGE)
        groups += page.groups
        more = page.more and bool(page.groups)
        after = page.groups[-1].name if page.groups else ""
    return groups


async def _find(route: Route, name: str, partition: int) -> PartitionDescription | None:
    after, more = name[:-1], True
    while more:
        page = await _page(route, partition, after, GROUPS_PER_PAGE)
        for group in page.groups:
            if group.name >= name:
                return group if group.name == name else None
        more = page.more and bool(page.groups)
        after = page.groups[-1].name if page.groups else ""
    return None


async def _page(route: Route, partition: int, after: str, limit: int) -> GroupList:
    return await resolved(
        route,
        lambda incarnation: route.link.ask(
            ListGroups(incarnation.queue_id, after, limit, partition), GroupList
        ),
    )


async def _seek(
    route: Route,
    name: str,
    partition: int,
    start: PartitionStart | None,
    from_time: Moment | None,
    known: Mapping[int, PartitionDescription],
) -> PartitionDescription:
    offset, at_ms = None, None
    if from_time is not None:
        at_ms = time_ms(from_time)
    if at_ms is None or partition not in known:
        offset, _ = await resolve_place(route, start, from_time, partition)
        at_ms = None
    if partition not in known:  # it has not begun there: then that is where it begins
        await _commit(route, name, offset or 0)

    async def ask(incarnation: Incarnation) -> PartitionDescription:
        request = SeekGroup(incarnation.queue_id, name, offset, at_ms, partition)
        return await route.link.ask(request, PartitionDescription)

    return await resolved(route, ask)


async def _commit(route: Route, name: str, offset: int) -> None:
    await resolved(
        route,
        lambda incarnation: route.link.ask(CommitOffset(incarnation.queue_id, name, offset), Done),
    )


def _refuse_members(name: str, known: Iterable[PartitionDescription]) -> None:
    """Before anything is forgotten anywhere: each partition sees its own members only."""
    for one in known:
        if one.members:
            raise PenstockError(
                ErrorCode.BAD_REQUEST,
                f"group {name!r} has {len(one.members)} members ({one.members[0]!r} is one); it can be deleted when "
                "they have left",
            )


def _no_group(route: Route, name: str) -> PenstockError:
    return PenstockError(ErrorCode.BAD_REQUEST, f"the log of {route.name!r} has no group {name!r}")
