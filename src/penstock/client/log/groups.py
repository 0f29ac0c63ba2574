"""Groups of readers as operators handle them: list, look, move, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator

from penstock.client.browse import resolved
from penstock.client.failure import refused
from penstock.client.log.membership import check_group
from penstock.client.log.place import Moment, Start, check_place, resolve_place, time_ms
from penstock.client.route import Route
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.log_messages import (
    DeleteGroup,
    GroupDescription,
    GroupList,
    ListGroups,
    SeekGroup,
)
from penstock.wire.messages import Done

GROUPS_PER_PAGE = 100


async def group_pages(route: Route, after: str = "") -> AsyncIterator[GroupList]:
    """All groups after a name, by name, a page at a time."""
    more = True
    while more:
        place = after
        page = await resolved(
            route,
            lambda incarnation: route.link.ask(
                ListGroups(incarnation.queue_id, place, GROUPS_PER_PAGE),  # noqa: B023 (awaited before it changes)
                GroupList,
            ),
        )
        yield page
        more = page.more and bool(page.groups)
        after = page.groups[-1].name if page.groups else ""


async def describe_group(route: Route, name: str) -> GroupDescription:
    """One group; raises where there is none of that name."""
    check_group(name)
    async for page in group_pages(route, after=name[:-1]):
        for group in page.groups:
            if group.name == name:
                return group
            if group.name > name:
                break
    raise PenstockError(ErrorCode.BAD_REQUEST, f"the log of {route.name!r} has no group {name!r}")


async def seek_group(
    route: Route, name: str, start: Start | None, from_time: Moment | None
) -> GroupDescription:
    """Moves a group; its members start again from there."""
    check_group(name)
    check_place(start, from_time)
    if start is None and from_time is None:
        raise refused("say where to: a start or a from_time")
    offset, at_ms = None, None
    if from_time is not None:
        at_ms = time_ms(from_time)
    else:
        offset, _ = await resolve_place(route, start, None)
    return await resolved(
        route,
        lambda incarnation: route.link.ask(
            SeekGroup(incarnation.queue_id, name, offset, at_ms), GroupDescription
        ),
    )


async def delete_group(route: Route, name: str) -> None:
    """Forgets a group and how far it has come; refused while it has members."""
    check_group(name)
    await resolved(route, lambda incarnation: route.link.ask(DeleteGroup(incarnation.queue_id, name), Done))
