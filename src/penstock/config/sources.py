"""Reads a configuration: the TOML file, overridden by the environment, overridden by the flags.

All problems are collected before any is reported, with their lines, so that a person corrects a file once. Never prints
and never exits.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from penstock.config.contradictions import contradictions
from penstock.config.frontend import OPTIONS as FRONTEND_OPTIONS
from penstock.config.frontend import FrontendConfig
from penstock.config.metadata_server import OPTIONS as METADATA_SERVER_OPTIONS
from penstock.config.metadata_server import MetadataServerConfig
from penstock.config.node import OPTIONS as NODE_OPTIONS
from penstock.config.node import NodeConfig
from penstock.config.option import Option, Options, options_of
from penstock.config.problems import ConfigurationError, Problem
from penstock.config.serve import OPTIONS as SERVE_OPTIONS
from penstock.config.serve import ServeConfig

OPTIONS = {**SERVE_OPTIONS, **FRONTEND_OPTIONS, **METADATA_SERVER_OPTIONS, **NODE_OPTIONS}
TABLES = sorted({key.rpartition(".")[0] for key in OPTIONS})
Role = TypeVar("Role", ServeConfig, FrontendConfig, MetadataServerConfig, NodeConfig)

FILE_BYTES = 1 << 20
_TABLE = re.compile(r"\s*\[\s*([A-Za-z0-9_.\"'\s-]+?)\s*\]\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"'-]+(?:\s*\.\s*[A-Za-z0-9_\"'-]+)*)\s*=")
_AT_LINE = re.compile(r"^(.*) \(at line (\d+), column (\d+)\)$")


def load_serve_config(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> ServeConfig:
    """The configuration of `penstock serve`; raises `ConfigurationError` with everything that is wrong.

    `environment` is the process's own unless given; `flags` are by attribute of `ServeConfig`.
    """
    return _load(ServeConfig, file, environment, flags)


def load_frontend_config(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> FrontendConfig:
    """The configuration of `penstock frontend`, in the same way."""
    return _load(FrontendConfig, file, environment, flags)


def load_metadata_server_config(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> MetadataServerConfig:
    """The configuration of `penstock metadata`, in the same way."""
    return _load(MetadataServerConfig, file, environment, flags)


def load_node_config(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> NodeConfig:
    """The configuration of `penstock node run`, in the same way."""
    return _load(NodeConfig, file, environment, flags)


def given_attributes(
    file: Path | None = None, environment: Mapping[str, str] | None = None
) -> frozenset[str]:
    """The attributes, of any role, that the file and the environment set to a readable value."""
    values: dict[str, Any] = {}
    if file is not None:
        _take_file(file, values, [])
    _take_environment(os.environ if environment is None else environment, values, [])
    return frozenset(OPTIONS[key][0] for key in values)


def _load(
    role: type[Role],
    file: Path | None,
    environment: Mapping[str, str] | None,
    flags: Mapping[str, str] | None,
) -> Role:
    """Reads the options of all roles, so that one file and one environment serve all, and returns the role's own."""
    problems: list[Problem] = []
    values: dict[
        str, Any
    ] = {}  # by key, because roles may have different keys for one attribute; read by the key's kind
    if file is not None:
        _take_file(file, values, problems)
    _take_environment(os.environ if environment is None else environment, values, problems)
    own = options_of(role)
    _take_flags(flags or {}, own, values, problems)
    if not problems:
        config = role(**{attribute: values[key] for key, (attribute, _) in own.items() if key in values})
        source = str(file) if file else "the configuration"
        problems += [Problem(source, key, why) for key, why in contradictions(config)]
        if not problems:
            return config
    raise ConfigurationError(problems)


def _take_file(file: Path, values: dict[str, Any], problems: list[Problem]) -> None:
    source = str(file)
    try:
        with file.open("rb") as stream:
            data = stream.read(FILE_BYTES + 1)
    except OSError as error:
        problems.append(Problem(source, "", f"cannot be read: {error.strerror or error}"))
        return
    if len(data) > FILE_BYTES:
        problems.append(
            Problem(source, "", f"is longer than {FILE_BYTES} bytes; is it a configuration file?")
        )
        return
    try:
        text = data.decode("utf-8")
        document = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.append(Problem(source, "", "is not UTF-8 text; is it a configuration file?", line))
        return
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.match(str(error))
        message, line_number = (found[1], int(found[2])) if found else (str(error), None)
        problems.append(Problem(source, "", f"is not TOML: {message}", line_number))
        return
    lines = _lines_of_keys(text)
    for key, value in _flattened(document, ""):
        _take(key, value, Problem(source, key, "", _line_of(key, lines)), values, problems)


def _take(key: str, value: object, place: Problem, values: dict[str, Any], problems: list[Problem]) -> None:
    if key not in OPTIONS:
        message = _unknown(key, TABLES, "table") if isinstance(value, Mapping) else _unknown(key, OPTIONS)
        problems.append(Problem(place.source, key, message, place.line))
        return
    _read(OPTIONS[key][1], value, place, values, problems)


def _read(
    option: Option,
    value: object,
    place: Problem,
    values: dict[str, Any],
    problems: list[Problem],
) -> None:
    try:
        values[option.key] = option.kind.read(value)
    except ValueError as error:
        problems.append(Problem(place.source, option.key, str(error), place.line))


def _take_environment(
    environment: Mapping[str, str], values: dict[str, Any], problems: list[Problem]
) -> None:
    variables = {option.variable: option for _, option in OPTIONS.values()}
    tables = tuple({"PENSTOCK_" + key.partition(".")[0].upper() + "_" for key in OPTIONS})
    for name in sorted(environment):
        if name in variables:
            option = variables[name]
            _read(option, environment[name], Problem(name, option.key, ""), values, problems)
        elif name.startswith(tables):
            # Other variables may begin with PENSTOCK_ (a client's address, say); these can only be typing errors.
            problems.append(Problem(name, "", _unknown(name, variables, "variable")))


def _take_flags(
    flags: Mapping[str, str], own: Options, values: dict[str, Any], problems: list[Problem]
) -> None:
    by_attribute = dict(own.values())
    for attribute, value in flags.items():
        option = by_attribute[attribute]
        place = Problem(option.flag or option.key, option.key, "")
        _read(option, value, place, values, problems)


def _unknown(name: str, known: Iterable[str], noun: str = "key") -> str:
    """Compares the names after the table, so that the right key in the wrong table is found too."""
    by_last_part: dict[str, list[str]] = {}
    for other in sorted(known):
        by_last_part.setdefault(other.rpartition(".")[2], []).append(other)
    # At 0.6 "port" would be near "format".
    near = difflib.get_close_matches(name.rpartition(".")[2], list(by_last_part), n=1, cutoff=0.65)
    if near:
        found = by_last_part[near[0]]
        # In its own table it is only misspelt; other tables with such a key are not suggested.
        here = [other for other in found if other.rpartition(".")[0] == name.rpartition(".")[0]]
        return f"unknown {noun}; did you mean {' or '.join(here or found)}?"
    return f"unknown {noun}; known are {', '.join(sorted(known))}"


def _flattened(table: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, object]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        # A table in place of a value is a value of the wrong kind; an unknown empty table is a typing error.
        if isinstance(value, Mapping) and name not in OPTIONS and (value or name in TABLES):
            yield from _flattened(value, f"{name}.")
        else:
            yield name, value


def _lines_of_keys(text: str) -> dict[str, int]:
    """The line of each table and key, for messages; the values come from the TOML parser."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _TABLE.match(line):
            table = _plain(found[1]) + "."
            lines.setdefault(table[:-1], number)
        elif found := _KEY.match(line):
            lines.setdefault(table + _plain(found[1]), number)
    return lines


def _plain(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _line_of(key: str, lines: Mapping[str, int]) -> int | None:
    """The line of a key, or of the inline table that holds it."""
    while key:
        if key in lines:
            return lines[key]
        key = key.rpartition(".")[0]
    return None
