"""`penstock user policy`: put, show and delete the policies of a user."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exits import USAGE, CommandError, reported
from penstock.cli.output import print_json, print_line, printable
from penstock.cli.parameters import Data, Json, UserName

if TYPE_CHECKING:
    from penstock.cli.processes.metadata_store import OpenMetadata

app = typer.Typer(no_args_is_help=True, help="The policies of a user.")

PolicyName = Annotated[
    str, typer.Argument(metavar="POLICYNAME", help="The policy's name.", show_default=False)
]


@app.command("put")
@reported
def put(
    name: UserName,
    policy_name: PolicyName,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The JSON document; `-` reads the input.", show_default=False),
    ],
    data: Data = None,
    json: Json = False,
) -> None:
    """Add or replace a policy of a user."""
    from penstock.cli.processes.metadata_store import with_metadata

    text = read_policy(file)
    with_metadata(data, lambda metadata: metadata.users.put_policy(name, policy_name, text))
    if json:
        print_json({"user": name, "policy": policy_name})
    else:
        print_line(f"user {name} has the policy {policy_name}", "green")


@app.command("show")
@reported
def show(name: UserName, policy_name: PolicyName, data: Data = None, json: Json = False) -> None:
    """Print a policy."""
    from penstock.cli.processes.metadata_store import with_metadata

    async def work(metadata: OpenMetadata) -> str:
        return metadata.users.policy_of(await metadata.users.user(name), policy_name)

    text = with_metadata(data, work)
    if json:
        print_json({"user": name, "policy": policy_name, "document": text})
    else:
        print_line(printable(text.rstrip("\n")))


@app.command("delete")
@reported
def delete(name: UserName, policy_name: PolicyName, data: Data = None, json: Json = False) -> None:
    """Remove a policy from a user."""
    from penstock.cli.processes.metadata_store import with_metadata

    with_metadata(data, lambda metadata: metadata.users.delete_policy(name, policy_name))
    if json:
        print_json({"user": name, "deleted": policy_name})
    else:
        print_line(f"user {name} no longer has the policy {policy_name}", "green")


def read_policy(file: str) -> str:
    """The document in a file or the input, checked as the server will read it."""
    from penstock.sqs.errors import SqsError
    from penstock.sqs.policies.policy import IDENTITY_POLICY_BYTES, parse_identity_policy

    try:
        if file == "-":
            text = sys.stdin.read(IDENTITY_POLICY_BYTES + 1)
        else:
            with Path(file).open(encoding="utf-8") as stream:
                text = stream.read(IDENTITY_POLICY_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"cannot read {file}: {error}", USAGE) from None
    if len(text.encode()) > IDENTITY_POLICY_BYTES:
        raise CommandError(f"{file} is too long: a policy has at most {IDENTITY_POLICY_BYTES} bytes", USAGE)
    try:
        parse_identity_policy(text)
    except SqsError:
        raise CommandError(
            f"{file} is not a policy of a user: it is a JSON object with Version and Statement; each statement has "
            "Effect (Allow or Deny), Action (sqs:…), Resource, perhaps Condition, and no Principal",
            USAGE,
        ) from None
    return text
