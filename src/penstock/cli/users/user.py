"""`penstock user`: create, list, show, delete, enable and disable the users that may sign requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exits import reported
from penstock.cli.output import (
    moment,
    print_facts,
    print_hint,
    print_json,
    print_line,
    print_table,
    state_word,
)
from penstock.cli.parameters import Data, Json, UserName, Yes
from penstock.cli.users import key as user_key
from penstock.cli.users import policy as user_policy
from penstock.cli.users.seal import seal, warn_of_strange

if TYPE_CHECKING:
    from penstock.cli.processes.metadata_store import OpenMetadata
    from penstock.metadata.users.users import AccessKey, User

app = typer.Typer(no_args_is_help=True, help="Users, their access keys and their policies.")
app.add_typer(user_key.app, name="key")
app.add_typer(user_policy.app, name="policy")
app.command("seal")(seal)

FIRST_POLICY = "default"


@app.command("create")
@reported
def create(
    name: UserName,
    account: Annotated[
        str,
        typer.Option(
            "--account", help="The account whose queues the user works with: 12 digits.", metavar="DIGITS"
        ),
    ] = "000000000000",
    root: Annotated[
        bool, typer.Option("--root", help="Create a root: it may do everything, and no policy can forbid it.")
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option("--policy", help="File with the user's policy; `-` reads the input.", metavar="FILE"),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Create a user with a first access key. The secret is shown only once."""
    from penstock.cli.processes.metadata_store import with_metadata

    policies = {} if policy is None else {FIRST_POLICY: user_policy.read_policy(policy)}

    async def work(metadata: OpenMetadata) -> tuple[User, AccessKey, str]:
        return await metadata.users.create_user(name, account, root, policies, metadata.master_key())

    user, key, secret = with_metadata(data, work)
    if json:
        print_json({**user_json(user), "access_key": user_key.key_json(key, secret)})
        return
    print_line(f"created user {name} of account {account}{', a root' if root else ''}", "green")
    user_key.show_secret(key, secret)
    if not root and policy is None:
        print_hint(f"It has no permissions yet. Next: penstock user policy put {name} default FILE")


@app.command("list")
@reported
def list_users(data: Data = None, json: Json = False) -> None:
    """List the users."""
    from penstock.cli.processes.metadata_store import with_metadata

    async def work(metadata: OpenMetadata) -> tuple[list[User], list[AccessKey], list[str]]:
        return await metadata.users.users(), await metadata.users.keys(), await metadata.users.strange()

    users, keys, strange = with_metadata(data, work)
    warn_of_strange(strange)
    if json:
        for user in users:
            print_json(user_json(user))
    elif users or strange:
        rows = [
            (
                user.name,
                user.account,
                "yes" if user.root else "no",
                state_word(user.enabled),
                str(sum(key.user_id == user.user_id for key in keys)),
                str(len(user.policies)),
                moment(user.created_ms),
            )
            for user in users
        ]
        print_table(("user", "account", "root", "state", "keys", "policies", "created"), rows, right=(4, 5))
    else:
        print_line("there are no users: the server accepts any credentials, on loopback only")
        print_hint("Next: penstock user create admin --root")


@app.command("show")
@reported
def show(name: UserName, data: Data = None, json: Json = False) -> None:
    """Show a user, its keys and its policies."""
    from penstock.cli.processes.metadata_store import with_metadata

    async def work(metadata: OpenMetadata) -> tuple[User, list[AccessKey]]:
        return await metadata.users.user(name), await metadata.users.keys(name)

    user, keys = with_metadata(data, work)
    if json:
        print_json({**user_json(user), "keys": [user_key.key_json(key) for key in keys]})
        return
    facts = {
        "account": user.account,
        "arn": f"arn:aws:iam::{user.account}:user/{user.name}",
        "user id": user.user_id,
        "root": "yes" if user.root else "no",
        "state": state_word(user.enabled),
        "created": moment(user.created_ms),
        "policies": ", ".join(user.policies) or "none",
    }
    for key in keys:
        facts[f"key {key.key_id}"] = f"{state_word(key.enabled)}, created {moment(key.created_ms)}"
    print_facts(f"user {user.name}", facts)


@app.command("delete")
@reported
def delete(name: UserName, yes: Yes = False, data: Data = None, json: Json = False) -> None:
    """Delete a user with its keys and policies."""
    from penstock.cli.confirmation import confirm_loss
    from penstock.cli.processes.metadata_store import with_metadata

    async def work(metadata: OpenMetadata) -> None:
        if f"users/{name}" not in await metadata.users.strange():
            await metadata.users.user(name)
        if not yes:
            confirm_loss(f"Delete user {name} with its keys and policies?")
        await metadata.users.delete_user(name)

    with_metadata(data, work)
    if json:
        print_json({"deleted": name})
    else:
        print_line(f"user {name} is deleted", "green")


@app.command("enable")
@reported
def enable(name: UserName, data: Data = None, json: Json = False) -> None:
    """Enable a disabled user."""
    _set_enabled(name, True, data, json)


@app.command("disable")
@reported
def disable(name: UserName, data: Data = None, json: Json = False) -> None:
    """Disable a user without deleting anything."""
    _set_enabled(name, False, data, json)


def _set_enabled(name: str, enabled: bool, data: str | None, json: bool) -> None:
    from penstock.cli.processes.metadata_store import with_metadata

    user = with_metadata(data, lambda metadata: metadata.users.set_user_enabled(name, enabled))
    if json:
        print_json(user_json(user))
    else:
        print_line(f"user {name} is {state_word(enabled)}", "green")


def user_json(user: User) -> dict[str, object]:
    """A user for programs."""
    from penstock.cli.output import moment_json

    return {
        "name": user.name,
        "account": user.account,
        "arn": f"arn:aws:iam::{user.account}:user/{user.name}",
        "user_id": user.user_id,
        "root": user.root,
        "enabled": user.enabled,
        "policies": list(user.policies),
        "created": moment_json(user.created_ms),
    }
