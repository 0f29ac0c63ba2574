"""`penstock user` and `penstock limit`, on a data directory without a server."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.metadata.store.sqlite import open_sqlite_store
from tests.cli.conftest import Outcome

POLICY = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}],
    }
)
Run = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("PENSTOCK_CONFIG", raising=False)

    def invoke(*arguments: str, stdin: str | None = None) -> Outcome:
        result = CliRunner().invoke(app, [*arguments, "--data", str(tmp_path / "data")], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return invoke


def test_users_are_created_listed_disabled_and_deleted(run: Run) -> None:
    assert run("user", "list").output.startswith("there are no users")
    refused = run("user", "create", "alice")
    assert (refused.code, "--root" in refused.errors) == (1, True)
    created = run("user", "create", "admin", "--root")
    assert created.code == 0, created.errors
    lines = created.output.splitlines()
    assert lines[0] == "created user admin of account 000000000000, a root"
    assert "shown this once" in lines[1]
    assert lines[2].startswith("export AWS_ACCESS_KEY_ID=AKIA")
    assert lines[3].startswith("export AWS_SECRET_ACCESS_KEY=")
    alice = run(
        "user", "create", "alice", "--account", "123456789012", "--policy", "-", "--json", stdin=POLICY
    )
    (described,) = alice.objects
    assert (described["account"], described["policies"]) == ("123456789012", ["default"])
    assert len(described["access_key"]["secret"]) == 40
    assert [one["name"] for one in run("user", "list", "--json").objects] == ["admin", "alice"]
    assert run("user", "disable", "alice").output == "user alice is disabled\n"
    assert "disabled" in run("user", "show", "alice").output
    assert run("user", "enable", "alice").code == 0
    assert "no root could sign" in run("user", "disable", "admin").errors
    assert "last root" in run("user", "delete", "admin", "--yes").errors
    assert "add --yes" in run("user", "delete", "alice").errors
    assert run("user", "delete", "alice", "--yes").output == "user alice is deleted\n"
    assert run("user", "show", "alice").code == 3
    assert run("user", "delete", "admin", "--yes").code == 0


def test_a_key_is_rotated(run: Run) -> None:
    (admin,) = run("user", "create", "admin", "--root", "--json").objects
    old = admin["access_key"]["key_id"]
    assert "no root could sign" in run("user", "key", "delete", old, "--yes").errors
    (new,) = run("user", "key", "create", "admin", "--json").objects
    assert run("user", "key", "disable", old).code == 0
    assert run("user", "key", "enable", old).code == 0
    assert run("user", "key", "delete", old, "--yes").code == 0
    (left,) = run("user", "key", "list", "admin", "--json").objects
    assert left["key_id"] == new["key_id"]
    assert "secret" not in left
    assert run("user", "key", "disable", old).code == 3


def test_policies_are_checked_put_shown_and_deleted(run: Run, tmp_path: Path) -> None:
    run("user", "create", "admin", "--root")
    run("user", "create", "alice")
    file = tmp_path / "policy.json"
    file.write_text('{"Statement": []}')
    bad = run("user", "policy", "put", "alice", "send", str(file))
    assert (bad.code, "is not a policy of a user" in bad.errors) == (2, True)
    file.write_text(POLICY)
    assert run("user", "policy", "put", "alice", "send", str(file)).code == 0
    assert run("user", "policy", "show", "alice", "send").output == POLICY + "\n"
    assert run("user", "policy", "delete", "alice", "send").code == 0
    assert run("user", "policy", "show", "alice", "send").code == 3
    assert run("user", "policy", "put", "alice", "send", str(tmp_path / "none")).code == 2


def test_limits_are_set_listed_and_cleared(run: Run) -> None:
    run("user", "create", "admin", "--root")
    assert run("limit", "list").output == "there are no limits\n"
    assert run("limit", "set", "--user", "admin", "--rate", "100", "--burst", "200").code == 0
    assert run("limit", "set", "--every-queue", "--rate", "0.5").code == 0
    assert run("limit", "set", "--user", "nobody", "--rate", "1").code == 3
    assert run("limit", "set", "--rate", "1").code == 2
    assert run("limit", "set", "--every-user", "--rate", "-1").code == 2
    assert run("limit", "list", "--json").objects == [
        {"kind": "queue", "name": None, "rate": 0.5, "burst": 1},
        {"kind": "user", "name": "admin", "rate": 100.0, "burst": 200},
    ]
    assert run("limit", "clear", "--user", "admin").code == 0
    assert run("limit", "clear", "--user", "admin").code == 3


def test_a_lost_master_key_is_not_made_anew(run: Run, tmp_path: Path) -> None:
    run("user", "create", "admin", "--root")
    (tmp_path / "data" / "metadata.key").unlink()
    assert "put the file back" in run("user", "key", "create", "admin").errors


def test_the_reference_names_the_commands_below_user() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "command-line.md").read_text()
    (user,) = [group.typer_instance for group in app.registered_groups if group.name == "user"]
    assert user is not None
    for group in user.registered_groups:
        assert group.typer_instance is not None
        for command in group.typer_instance.registered_commands:
            assert f"## `penstock user {group.name} {command.name}" in text


def in_file(data: Path, change: Callable[[dict[str, bytes]], dict[str, bytes | None]]) -> None:
    """Writes into the file of metadata as somebody does who has no master key: new values, or None for what goes."""

    async def work() -> None:
        store = await open_sqlite_store(data / "metadata.sqlite")
        found = {entry.key: entry.value for entry in (await store.list("")).entries}
        for key, value in change(found).items():
            if value is None:
                await store.delete(key)
            else:
                await store.put(key, value)
        await store.close()

    asyncio.run(work())


def test_records_without_a_right_seal_are_named_and_can_be_removed(run: Run, tmp_path: Path) -> None:
    run("user", "create", "admin", "--root")
    run("user", "create", "alice")
    assert run("user", "seal", "--check").code == 0
    in_file(
        tmp_path / "data",
        lambda found: {
            "users/alice": found["users/alice"].replace(b'"root":false', b'"root":true'),
            "users/eve": found["users/admin"],
        },
    )
    listed = run("user", "list")
    assert "give no access: users/alice, users/eve" in listed.errors
    assert "alice" not in listed.output
    assert run("user", "seal", "--check").code == 1
    assert "has no valid seal" in run("user", "show", "alice").errors
    assert run("user", "delete", "eve", "--yes").code == 0
    assert run("user", "delete", "alice", "--yes").code == 0
    assert run("user", "seal", "--check").code == 0


def test_a_backup_that_was_put_back_needs_somebody_who_vouches_for_it(run: Run, tmp_path: Path) -> None:
    run("user", "create", "admin", "--root")
    backup: dict[str, bytes | None] = {}

    def keep(found: dict[str, bytes]) -> dict[str, bytes | None]:
        backup.update(found)
        return {}

    in_file(tmp_path / "data", keep)
    run("user", "create", "alice")
    in_file(tmp_path / "data", lambda found: {**dict.fromkeys(found, None), **backup})
    refused = run("user", "list")
    assert refused.code == 1
    assert "If you restored a backup" in refused.errors
    assert "add --yes" in run("user", "seal").errors
    sealed = run("user", "seal", "--yes")
    assert sealed.code == 0, sealed.errors
    assert "1 users, 1 access keys" in sealed.output
    assert [one["name"] for one in run("user", "list", "--json").objects] == ["admin"]
    assert run("user", "create", "alice").code == 0


def test_without_the_master_key_no_other_is_made(run: Run, tmp_path: Path) -> None:
    run("user", "create", "admin", "--root")
    (tmp_path / "data" / "metadata.key").unlink()
    for command in (("user", "list"), ("user", "create", "eve", "--root"), ("user", "seal", "--yes")):
        assert "put the file back" in run(*command).errors
    assert not (tmp_path / "data" / "metadata.key").exists()
    assert run("limit", "list").code == 0


def test_what_cannot_be_written_down_loses_no_secret(run: Run, tmp_path: Path) -> None:
    """The key may lie in a directory where nothing can be written."""
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "metadata.key.seen").mkdir()
    created = run("user", "create", "admin", "--root")
    assert created.code == 1  # it cannot be read either
    (tmp_path / "data" / "metadata.key.seen").rmdir()
    (tmp_path / "data" / f".metadata.key.seen.{os.getpid()}").mkdir()
    created = run("user", "create", "admin", "--root")
    assert created.code == 0, created.errors
    assert "AWS_SECRET_ACCESS_KEY=" in created.output
    assert "are not detected here" in created.errors
