"""`penstock user seal`: an operator confirms the users of an earlier version, or of a restored backup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exits import CommandError, reported
from penstock.cli.output import error_console, print_json, print_line, print_table, printable, state_word
from penstock.cli.parameters import Data, Json, Yes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.cli.processes.metadata_store import OpenMetadata
    from penstock.metadata.seals.sealing import FoundUsers

NAMED = 5


@reported
def seal(
    check: Annotated[
        bool, typer.Option("--check", help="Only check. The exit code is 0 if everything is sealed.")
    ] = False,
    yes: Yes = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Seal the users, keys and queue policies that are in the store now, after you have reviewed them.

    A seal shows that somebody with the master key wrote a record; records without a seal give no access. Needed once after
    an upgrade from a version without seals (a single server does it itself), and after a backup was restored.
    """
    from penstock.cli.confirmation import confirm_loss
    from penstock.cli.processes.metadata_store import with_metadata

    async def work(metadata: OpenMetadata) -> tuple[FoundUsers, bool, int | None]:
        from penstock.cli.processes.metadata_store import now_ms
        from penstock.metadata.seals import sealing
        from penstock.metadata.seals.seals import QUEUE_KINDS, front_end_sealers
        from penstock.metadata.store.interface import VersionConflictError

        key = metadata.master_key()
        found = await sealing.look(metadata.store, key)
        number = found.register.number if found.register is not None else 0
        done = found.sealed and number >= metadata.seen.load()
        if done or check:
            return found, done, None
        if not json:
            _show(found)
        if not yes:
            confirm_loss("Do you confirm these users, keys and queues, and seal them?")
        try:
            await sealing.seal_users(metadata.store, key, found, now_ms, metadata.seen)
        except VersionConflictError:
            raise CommandError("a user was changed meanwhile: review the users and seal again") from None
        return found, True, await sealing.seal_kinds(metadata.store, front_end_sealers(key), QUEUE_KINDS)

    found, done, queues = with_metadata(data, work)
    if json:
        print_json({"sealed": done, "users": sorted(found.users), "unsealed": sorted(found.unsealed)})
    elif check:
        _show(found)
        print_line("everything is sealed" if done else "not everything is sealed: `penstock user seal`")
    elif queues is None:
        print_line("everything is sealed", "green")
    else:
        count = f"{len(found.users)} users, {len(found.keys)} access keys"
        print_line(f"{count} and {queues} entries of queues are sealed", "green")
    if check and not done:
        raise typer.Exit(1)


def _show(found: FoundUsers) -> None:
    unsealed = set(found.unsealed)
    rows = [
        (
            user.name,
            user.account,
            "yes" if user.root else "no",
            state_word(user.enabled),
            str(sum(one.user_id == user.user_id for one, _ in found.keys.values())),
            ", ".join(user.policies) or "none",
            "no" if key in unsealed else "yes",
        )
        for key, (user, _) in found.users.items()
    ]
    if rows:
        print_table(("user", "account", "root", "state", "keys", "policies", "sealed"), rows, right=(4,))
    keys = [
        (one.key_id, one.user, state_word(one.enabled), "no" if place in unsealed else "yes")
        for place, (one, _) in found.keys.items()
    ]
    if keys:  # one that was given to another user would not be noticed by its number
        print_table(("access key", "user", "state", "sealed"), keys)
    known = {*found.users, *found.keys, *found.unreadable}
    _name("entries of queues are not sealed", [place for place in found.unsealed if place not in known])
    _name("entries are no records of users or keys, and stay as they are", found.unreadable)


def _name(what: str, places: Sequence[str]) -> None:
    if places:
        shown = printable(", ".join(places[:NAMED])) + (" …" if len(places) > NAMED else "")
        print_line(f"{len(places)} {what}: {shown}")


def warn_of_strange(strange: Sequence[str]) -> None:
    """Reports the records that are ignored, if there are any."""
    if strange:
        error_console().print(
            f"these records have no valid seal, or are older than those in the register of users, and give no access: "
            f"{printable(', '.join(strange))}. `penstock user delete` and `penstock user key delete` remove them; `penstock user seal` "
            "seals what an earlier version wrote",
            style="yellow",
            markup=False,
        )
