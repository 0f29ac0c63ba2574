"""The common part of commands that run until they are stopped: their configuration, first messages, and end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

import typer

from penstock.cli.exits import USAGE, CommandError
from penstock.cli.output import error_console, print_json

Config = TypeVar("Config", covariant=True)
Running = TypeVar("Running")


class Load(Protocol[Config]):
    """Reads the configuration of a role: its file, the environment, and flags over both."""

    def __call__(self, file: Path | None, *, flags: Mapping[str, str]) -> Config: ...


def configured(load: Load[Config], file: Path | None, flags: Mapping[str, str | None]) -> Config:
    """The configuration; all its errors are reported at once."""
    from penstock.config import ConfigurationError

    try:
        return load(file, flags={name: value for name, value in flags.items() if value is not None})
    except ConfigurationError as error:
        for problem in error.problems:
            error_console().print(f"error: {problem}", style="red", markup=False)
        raise typer.Exit(USAGE) from None


def run_role(
    run: Callable[[Callable[[Running], None]], int],
    facts_of: Callable[[Running], dict[str, Any]],
    show: Callable[[Running, dict[str, Any]], None],
    *,
    json: bool,
    ready_file: Path | None,
) -> NoReturn:
    """Runs it until it ends and ends with its exit code; once it listens it says where everything is."""
    from penstock.runtime.processes.listening import SettingError, StartError, StrangerError

    def announce(running: Running) -> None:
        facts = facts_of(running)
        if json:
            print_json(facts)
        else:
            show(running, facts)
        if ready_file is not None:
            write_ready_file(ready_file, facts)

    try:
        code = run(announce)
    except StrangerError as error:
        raise CommandError(f"{error}. Give it the cluster's secret and certificate.", USAGE) from None
    except SettingError as error:
        raise CommandError(str(error), USAGE) from None
    except StartError as error:
        raise CommandError(str(error)) from None
    raise typer.Exit(code)


def write_ready_file(file: Path, facts: dict[str, Any]) -> None:
    """Writes a complete file or none, because a waiting program may read it as soon as it exists."""
    import json

    temporary = file.with_name(f".{file.name}.new")
    try:
        temporary.write_text(json.dumps(facts) + "\n", encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise CommandError(f"cannot write the ready file {file}: {error.strerror or error}") from None
