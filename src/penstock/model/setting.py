"""One setting of a queue, as a row: its bounds, where users set it and what it means.

`QueueSettings` has one row for each of its fields. Checks, the client's options, flags of the command line, SQS attributes
and the reference page come from these rows.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from penstock.model.limits import SECOND_MS

Kind = Literal["choice", "switch", "count", "duration", "size", "text"]

EXTENSION = "Penstock."
"""How the names of SQS attributes begin that SQS itself does not have."""
_WORD = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The declaration of a setting besides its type and its default."""

    help: str
    """One sentence for people who choose a value."""
    low: int | None = None
    high: int | None = None
    """The bounds of a number, both allowed."""
    none: str = ""
    """The meaning of `None`, if that is not "no limit" or "none"."""
    fixed: bool = False
    """Whether it is chosen when the queue is made, and never changed."""
    divided: bool = False
    """Whether it is a limit of the whole queue, of which each partition gets an equal part."""
    for_logs: bool = True
    """Whether it means something where messages are not received, but only read from the log."""
    flag: str | None = None
    """The flag on the command line; None: the name with dashes."""
    sqs: str | None = None
    """The queue attribute of SQS that sets it; None: there is none."""
    sqs_field: str | None = None
    """The field of `QueueAttributes`; None: the attribute's name in small letters."""
    applies: Callable[[Any], bool] | None = None
    """For which settings of a queue it means something; None: for all."""
    since: str = "0.1.0"
    """The first version that has it."""


class ExtendedAttribute(NamedTuple):
    """An attribute of SQS queues that Penstock adds."""

    name: str
    field: str
    """The field of `QueueAttributes`."""
    scale: int
    """How many of the engine's units one of its units is."""


class SettingRow(NamedTuple):
    """A setting with all its properties."""

    name: str
    """The field of `QueueSettings`, and the name in the native protocol."""
    type: Any
    """Without `None`."""
    optional: bool
    """Whether it may be `None`: no limit, or none."""
    default: Any
    row: Setting

    @property
    def declared(self) -> Any:
        """The type of its field."""
        return self.type | None if self.optional else self.type

    @property
    def kind(self) -> Kind:
        """The kind of its values."""
        if get_origin(self.type) is Literal:
            return "choice"
        if self.type is bool:
            return "switch"
        if self.type is str:
            return "text"
        if self.name.endswith("_ms"):
            return "duration"
        return "size" if self.name.endswith("_bytes") else "count"

    @property
    def choices(self) -> tuple[str, ...]:
        """The words to choose from."""
        return get_args(self.type) if self.kind == "choice" else ()

    @property
    def option(self) -> str:
        """The name in the Python client, where durations are seconds."""
        return self.name.removesuffix("_ms")

    @property
    def flag(self) -> str:
        """The flag on the command line."""
        return self.row.flag or "--" + self.option.replace("_", "-")

    @property
    def extended(self) -> ExtendedAttribute | None:
        """The attribute that Penstock adds to SQS for it, if it does."""
        if self.row.sqs is None or not self.row.sqs.startswith(EXTENSION):
            return None
        field = self.row.sqs_field or _WORD.sub("_", self.row.sqs.removeprefix(EXTENSION)).lower()
        in_seconds = self.kind == "duration" and field.endswith("_seconds")
        return ExtendedAttribute(self.row.sqs, field, SECOND_MS if in_seconds else 1)


def row_of(name: str, annotation: Any, default: Any) -> SettingRow:
    """The row of a field, from its annotation `Annotated[type, Setting(...)]`."""
    if get_origin(annotation) is not Annotated:
        raise TypeError(f"the setting {name} has no row: annotate it with a Setting")
    declared, row = get_args(annotation)[:2]
    parts = get_args(declared) if get_origin(declared) in (Union, types.UnionType) else (declared,)
    (kind,) = (part for part in parts if part is not types.NoneType)
    return SettingRow(name, kind, types.NoneType in parts, default, row)
