"""The flags of commands that run a role: one for each option of its configuration with a flag, with the option's help."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from penstock.config.option import Option, Options

Flags = dict[str, str | None]
"""The given flags, by attribute of the configuration; None: it was not given."""
Result = TypeVar("Result")

_LAST = ("process", "log")
"""Tables of the configuration that every role has, and that help shows at the end."""


def with_flags(
    options: Options, config: type, *, without: str = ""
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """A command that takes `flags` gets every option of its configuration as a flag, but for the attribute `without`."""
    chosen = {
        attribute: _parameter(attribute, option, getattr(config(), attribute))
        for attribute, option in _in_order(options)
        if option.flag is not None and attribute != without
    }

    def decorated(command: Callable[..., Result]) -> Callable[..., Result]:
        types = get_type_hints(command, include_extras=True)
        others = [
            one.replace(annotation=types[one.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for one in inspect.signature(command).parameters.values()
            if one.name != "flags"
        ]

        @functools.wraps(command)
        def run(**given: Any) -> Result:
            flags = {attribute: given.pop(attribute) for attribute in chosen}
            return command(flags=flags, **given)

        parameters = [*chosen.values(), *others]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        del run.__wrapped__  # it has other parameters
        return run

    return decorated


def _in_order(options: Options) -> Iterator[tuple[str, Option]]:
    yield from sorted(options.values(), key=lambda one: one[1].key.partition(".")[0] in _LAST)


def _parameter(attribute: str, option: Option, default: object) -> inspect.Parameter:
    assert option.flag is not None  # those without one are left out
    written = option.kind.write(default)
    help_text = f"{option.meaning} Default: {written}." if written else option.meaning
    shown = typer.Option(option.flag, help=help_text, metavar=option.kind.metavar, show_default=False)
    return inspect.Parameter(
        attribute,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, shown],
    )
