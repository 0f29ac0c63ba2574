"""`penstock user key`: create, list, disable, enable and delete access keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exits import reported
from penstock.cli.output import (
    moment,
    moment_json,
    print_hint,
    print_json,
    print_line,
    print_table,
    state_word,
)
from penstock.cli.parameters import Data, Json, UserName, Yes

if TYPE_CHECKING:
    from penstock.cli.processes.metadata_store import OpenMetadata
    from penstock.metadata.users.users import AccessKey

app = typer.Typer(no_args_is_help=True, help="A user's access keys.")

KeyId = Annotated[str, typer.Argument(metavar="KEYID", help="The access key id: AKIA….", show_default=False)]


@app.command("create")
@reported
def create(name: UserName, data: Data = None, json: Json = False) -> None:
    """Create another access key. The secret is shown only once."""
    from penstock.cli.processes.metadata_store import with_metadata

    async def work(metadata: OpenMetadata) -> tuple[AccessKey, str]:
        return await metadata.users.create_key(name, metadata.master_key())

    key, secret = with_metadata(data, work)
    if json:
        print_json(key_json(key, secret))
    else:
        print_line(f"user {name} has a new access key", "green")
        show_secret(key, secret)


@app.command("list")
@reported
def list_keys(name: UserName, data: Data = None, json: Json = False) -> None:
    """List a user's access keys, without their secrets."""
    from penstock.cli.processes.metadata_store import with_metadata

    async def work(metadata: OpenMetadata) -> list[AccessKey]:
        await metadata.users.user(name)
        return await metadata.users.keys(name)

    keys = with_metadata(data, work)
    if json:
        for key in keys:
            print_json(key_json(key))
    elif keys:
        rows = [(key.key_id, state_word(key.enabled), moment(key.created_ms)) for key in keys]
        print_table(("access key", "state", "created"), rows)
    else:
        print_line(f"user {name} has no access key")
        print_hint(f"Next: penstock user key create {name}")


@app.command("enable")
@reported
def enable(key_id: KeyId, data: Data = None, json: Json = False) -> None:
    """Enable a disabled key."""
    _set_enabled(key_id, True, data, json)


@app.command("disable")
@reported
def disable(key_id: KeyId, data: Data = None, json: Json = False) -> None:
    """Disable a key. It can be enabled again."""
    _set_enabled(key_id, False, data, json)


@app.command("delete")
@reported
def delete(key_id: KeyId, yes: Yes = False, data: Data = None, json: Json = False) -> None:
    """Delete an access key permanently."""
    from penstock.cli.confirmation import confirm_loss
    from penstock.cli.processes.metadata_store import with_metadata

    if not yes:
        confirm_loss(f"Delete access key {key_id}?")
    with_metadata(data, lambda metadata: metadata.users.delete_key(key_id))
    if json:
        print_json({"deleted": key_id})
    else:
        print_line(f"access key {key_id} is deleted", "green")


def _set_enabled(key_id: str, enabled: bool, data: str | None, json: bool) -> None:
    from penstock.cli.processes.metadata_store import with_metadata

    key = with_metadata(data, lambda metadata: metadata.users.set_key_enabled(key_id, enabled))
    if json:
        print_json(key_json(key))
    else:
        print_line(f"access key {key_id} is {state_word(enabled)}", "green")


def show_secret(key: AccessKey, secret: str) -> None:
    """How to use a new key; its secret cannot be shown again."""
    print_line("The secret is shown this once; keep it:")
    print_line(f"export AWS_ACCESS_KEY_ID={key.key_id}")
    print_line(f"export AWS_SECRET_ACCESS_KEY={secret}")


def key_json(key: AccessKey, secret: str | None = None) -> dict[str, object]:
    """A key for programs; the secret only when it is new."""
    facts: dict[str, object] = {
        "key_id": key.key_id,
        "user": key.user,
        "enabled": key.enabled,
        "created": moment_json(key.created_ms),
    }
    return facts if secret is None else {**facts, "secret": secret}
