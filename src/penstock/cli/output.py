"""The output of commands: with rich on a terminal, plain elsewhere, one JSON object a line with `--json`.

Bodies, names and attributes may come from anyone: none of them may reach a terminal as a control sequence.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 10_000
"""Output that no terminal shows is never wrapped."""


def console() -> Console:
    """The output for results; plain text if it is not a terminal."""
    return _console(stderr=False)


def error_console() -> Console:
    """The output for errors, progress and hints."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=not stream.isatty())


def print_json(value: object) -> None:
    """One object, one line, flushed at once, so that the reader of a pipe need not wait."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def print_line(text: str, style: str | None = None) -> None:
    """One sentence of result."""
    console().print(text, style=style, markup=False)


def print_hint(text: str) -> None:
    """Suggests the next command; only on a terminal."""
    if sys.stderr.isatty():
        error_console().print(text, style="dim", markup=False)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Rows under headings; `right` names the columns that hold numbers."""
    target = console()
    if not target.is_terminal:
        _print_columns([tuple(headings), *(tuple(row) for row in rows)], right)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    target.print(table)


def print_facts(title: str, facts: Mapping[str, str]) -> None:
    """Names and values under a title."""
    target = console()
    target.print(printable(title), style="bold", markup=False)
    if not target.is_terminal:
        _print_columns([(f"  {name}", value) for name, value in facts.items()], ())
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(f"  {name}", Text(printable(value)))
    target.print(table)


def _print_columns(rows: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    """Aligned columns without lines round them, for pipes and files."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
    sys.stdout.flush()


# -- values --------------------------------------------------------------------------------------------------


def messages_text(count: int) -> str:
    """`1 message`, `2 messages`."""
    return "1 message" if count == 1 else f"{count:,} messages"


def printable(text: str) -> str:
    """The text without anything that would move a terminal's cursor; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in "\n\t" else _escaped(character)
        for character in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def body_text(body: bytes) -> tuple[str, bool]:
    """A body as text, and whether it had to be base64 because it is not UTF-8."""
    try:
        return body.decode("utf-8"), False
    except UnicodeDecodeError:
        return base64.b64encode(body).decode("ascii"), True


def body_json(body: bytes) -> dict[str, str]:
    """A body as fields of a JSON object: `body`, or `body_base64` where it is not UTF-8."""
    text, encoded = body_text(body)
    return {"body_base64": text} if encoded else {"body": text}


def attribute_json(value: Any) -> Any:
    """An attribute's value as JSON knows it; bytes become an object that says so."""
    return {"base64": base64.b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def attribute_text(value: Any) -> str:
    """An attribute's value for people."""
    return f"base64:{base64.b64encode(value).decode('ascii')}" if isinstance(value, bytes) else str(value)


def moment(milliseconds: int | None) -> str:
    """A time stamp in the reader's own time zone."""
    if milliseconds is None:
        return "–"
    stamp = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone()
    return f"{stamp:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d}"


def age(milliseconds: int | None) -> str:
    """How long ago a time stamp was, in its largest unit."""
    if milliseconds is None:
        return "–"
    seconds = max(0, int(time.time() - milliseconds / 1000))
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def moment_json(milliseconds: int | None) -> str | None:
    """A time stamp in RFC 3339, in UTC."""
    if milliseconds is None:
        return None
    stamp = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def state_word(enabled: bool) -> str:
    """How a user's or a key's state is shown."""
    return "enabled" if enabled else "disabled"
