"""Flags of commands that run a role come from its options, and the reference names all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup, TyperOption

from penstock.cli.main import app
from penstock.config import ROLES, load_metadata_server_config
from penstock.config.problems import ConfigurationError
from penstock.config.roles import FRONTEND, METADATA, NODE, SERVE

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
COMMANDS = {SERVE: "serve", FRONTEND: "frontend", METADATA: "metadata", NODE: "node run"}
NOT_OFFERED = {METADATA: {"--data"}}
"""It keeps nothing on disk."""
EVERYWHERE = {"--json", "--url", "--help", "--yes", "--config", "--ready-file"}
"""What the page says of all commands at its top, or of the first that has it."""


def commands() -> Iterator[tuple[str, Any]]:
    def below(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        if isinstance(command, TyperGroup):
            for one, inner in command.commands.items():
                yield from below(inner, f"{name} {one}".strip())
        else:
            yield name, command

    yield from below(typer.main.get_command(app), "")


def flags_of(command: Any) -> dict[str, TyperOption]:
    return {one.opts[0]: one for one in command.params if isinstance(one, TyperOption)}


@pytest.mark.parametrize("role", COMMANDS)
def test_a_role_has_a_flag_for_each_option_that_names_one(role: str) -> None:
    flags = flags_of(dict(commands())[COMMANDS[role]])
    for _, option in ROLES[role].values():
        if option.flag is None or option.flag in NOT_OFFERED.get(role, ()):
            continue
        assert (flags[option.flag].help or "").startswith(option.meaning), option.flag
        assert flags[option.flag].metavar == option.kind.metavar


def test_a_mistake_in_the_metadata_of_a_metadata_server_is_named_by_its_own_flag() -> None:
    with pytest.raises(ConfigurationError, match=r"^--etcd: cluster\.metadata"):
        load_metadata_server_config(None, {}, {"cluster_metadata": "nonsense"})


def test_the_reference_of_the_configuration_names_no_option_that_does_not_exist() -> None:
    named = re.findall(r"^### `([a-z_]+\.[a-z_]+)`$", (REFERENCE / "configuration.md").read_text(), re.M)
    assert set(named) == {key for options in ROLES.values() for key in options}
    assert len(named) == len(set(named))


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_the_reference_of_the_command_line_names_every_flag(name: str) -> None:
    text = (REFERENCE / "command-line.md").read_text()
    before, section = text.split(f"## `penstock {name}", 1)
    chapter = before.rsplit("\n# ", 1)[-1].split("\n## ", 1)[0]
    said = chapter + section.split("\n## ", 1)[0]
    if "queue-settings.md" in said:
        said += (REFERENCE / "queue-settings.md").read_text()
    flags = {flag for flag in flags_of(dict(commands())[name]) if flag.startswith("--")} - EVERYWHERE
    missing = {flag for flag in flags if not re.search(rf"{flag}(?![a-z-])", said)}
    assert not missing, f"penstock {name}: {sorted(missing)}"
