"""The settings of a queue as options of `queue create` and `queue alter`: one for each row of the table of settings."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Concatenate, ParamSpec, get_type_hints

import typer

from penstock.cli.parameters import NO_VALUE, duration_seconds, size_bytes
from penstock.config.units import format_duration, format_size
from penstock.model.setting import Kind, SettingRow
from penstock.model.settings import SETTINGS

_PANEL = "Settings"
_METAVARS: dict[Kind, str] = {"count": "COUNT", "duration": "DURATION", "size": "SIZE", "text": "QUEUE"}

Arguments = ParamSpec("Arguments")


def takes_settings(
    *, new: bool
) -> Callable[[Callable[Concatenate[Any, Arguments], None]], Callable[Arguments, None]]:
    """Gives a command an option for each setting; the command gets the chosen settings as its first argument.

    `new`: for a command that creates a queue. Settings that are fixed at creation cannot be altered.
    """
    settings = [setting for setting in SETTINGS.values() if new or not setting.row.fixed]

    def decorate(command: Callable[Concatenate[Any, Arguments], None]) -> Callable[Arguments, None]:
        @functools.wraps(command)
        def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
            given = {setting.name: named.pop(setting.option) for setting in settings}
            command(options_of(given), *arguments, **named)

        parameters = _parameters(command, settings)
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # where Typer looks
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameters(command: Callable[..., None], settings: list[SettingRow]) -> list[inspect.Parameter]:
    """Those of the command behind its first one, with the settings behind those that have no default."""
    hints = get_type_hints(command, include_extras=True)
    own = list(inspect.signature(command).parameters.values())[1:]
    own = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
    options = [
        inspect.Parameter(
            setting.option,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=_annotation(setting),
        )
        for setting in settings
    ]
    needed = [parameter for parameter in own if parameter.default is inspect.Parameter.empty]
    return [*needed, *options, *(parameter for parameter in own if parameter not in needed)]


def _annotation(setting: SettingRow) -> Any:
    flags = f"{setting.flag}/--no-{setting.flag[2:]}" if setting.kind == "switch" else setting.flag
    option = typer.Option(
        flags,
        help=f"{setting.row.help} Default: {shown(setting, setting.default)}.",
        metavar=_metavar(setting),
        show_default=False,
        rich_help_panel=_PANEL,
    )
    kind: Any = bool if setting.kind == "switch" else str
    return Annotated[kind | None, option]


def _metavar(setting: SettingRow) -> str | None:
    return "|".join(setting.choices) or _METAVARS.get(setting.kind)


def shown(setting: SettingRow, value: Any) -> str:
    """A value as the option takes it."""
    if value is None:
        return f"{NO_VALUE} ({setting.row.none})" if setting.row.none else NO_VALUE
    match setting.kind:
        case "duration":
            return format_duration(value)
        case "size":
            return format_size(value)
        case "count":
            return f"{value:,}"
        case "switch":
            return "on" if value else "off"
        case _:
            return str(value)


def options_of(given: dict[str, Any]) -> dict[str, Any]:
    """The given settings, by the names and in the units of the client; raises `BadParameter` with the option's name."""
    return dict(_read(SETTINGS[name], value) for name, value in given.items() if value is not None)


def _read(setting: SettingRow, value: Any) -> tuple[str, Any]:
    if setting.kind == "switch" or (value == NO_VALUE and setting.optional):
        return setting.option, None if value == NO_VALUE else value
    try:
        return setting.option, _value(setting, value)
    except typer.BadParameter as error:
        raise typer.BadParameter(str(error), param_hint=setting.flag) from None


def _value(setting: SettingRow, text: str) -> object:
    match setting.kind:
        case "duration":
            return duration_seconds(text)
        case "size":
            return size_bytes(text)
        case "count":
            return _count(text)
        case "choice" if text not in setting.choices:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(setting.choices)}")
        case _:
            return text


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"{text!r} is not a whole number")
    return int(text)


def labels() -> Iterator[tuple[str, str, SettingRow]]:
    """Each setting with the words that name it: its flag without dashes."""
    for name, setting in SETTINGS.items():
        yield name, setting.flag[2:].replace("-", " ").replace("dead letter", "dead-letter"), setting
