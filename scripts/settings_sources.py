"""Writes what is made from the table of queue settings (`model/settings.py`): the client's options and two reference pages.

Run it with `make settings` after a change of the table. A test fails while it is not done.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

from penstock.cli.queues.settings import shown
from penstock.model.setting import EXTENSION, SettingRow
from penstock.model.settings import SETTINGS

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- settings -->", "<!-- end of settings -->"
_TYPES = {"switch": "bool", "count": "int", "size": "int", "duration": "Duration", "text": "str"}
_NATIVE = {"switch": "bool", "count": "int", "size": "int", "duration": "int", "text": "text"}


def sources() -> dict[Path, str]:
    """Every file that comes from the table, with what should be in it."""
    native = ROOT / "docs/reference/native-protocol.md"
    return {
        ROOT / "src/penstock/client/queue_options.py": _client(),
        ROOT / "docs/reference/queue-settings.md": _page(),
        native: _replaced(native.read_text(encoding="utf-8"), _native_table()),
    }


def _client() -> str:
    choices = sorted({_type_name(setting) for setting in SETTINGS.values() if setting.kind == "choice"})
    lines = [
        '"""What `create_queue` and `alter_queue` take. Made from the table of settings by `make settings`: do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import TypedDict",
        "",
        "from penstock.client.duration import Duration",
        f"from penstock.model.settings import {', '.join(choices)}",
        "",
        "",
        "class QueueOptions(TypedDict, total=False):",
        '    """The settings of a queue; None lifts a limit or removes a setting."""',
        "",
    ]
    for setting in SETTINGS.values():
        kind = _type_name(setting) if setting.kind == "choice" else _TYPES[setting.kind]
        lines.append(f"    {setting.option}: {kind}{' | None' if setting.optional else ''}")
        text = f'"""{setting.row.help} Default: {_default(setting)}.{_fixed(setting)}"""'
        lines += wrap(text, 110, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def _type_name(setting: SettingRow) -> str:
    return "".join(word.capitalize() for word in setting.name.split("_"))


def _default(setting: SettingRow) -> str:
    return shown(setting, setting.default)


def _fixed(setting: SettingRow) -> str:
    return " Fixed when the queue is created." if setting.row.fixed else ""


def _page() -> str:
    return "\n".join(_page_lines()) + "\n"


def _page_lines() -> Iterator[str]:
    yield "# Queue settings"
    yield ""
    yield "<!-- Made from the table of settings in src/penstock/model/settings.py by `make settings`: do not edit. -->"
    yield ""
    yield "What a queue can be told, wherever it is made or changed: the Python client (`create_queue`, `alter_queue`), the"
    yield "command line (`penstock queue create`, `penstock queue alter`), SQS (`CreateQueue`, `SetQueueAttributes`) and the native"
    yield "protocol. `penstock queue show` shows the settings of a queue."
    yield ""
    yield "In the Python client durations are seconds or a `timedelta`. On the command line they have a unit (`500ms`, `30s`, `4d`),"
    yield "sizes too (`64KiB`), and `none` lifts a limit. In the native protocol they are milliseconds and bytes. SQS takes texts;"
    yield "an empty text lifts a limit of an attribute named `Penstock.…`."
    yield ""
    yield "| setting | default | meaning |"
    yield "|---|---|---|"
    for setting in SETTINGS.values():
        yield f"| [`{setting.option}`](#{setting.option}) | {_default(setting)} | {setting.row.help} |"
    for setting in SETTINGS.values():
        yield ""
        yield f"## `{setting.option}`"
        yield ""
        yield setting.row.help
        yield ""
        yield "| | |"
        yield "|---|---|"
        for name, value in _facts(setting):
            yield f"| {name} | {value} |"


def _facts(setting: SettingRow) -> Iterator[tuple[str, str]]:
    row = setting.row
    yield "values", _values(setting)
    yield "default", _default(setting)
    yield "can be changed", "no, it is fixed when the queue is created" if row.fixed else "yes"
    if row.divided:
        yield "several partitions", "each partition gets an equal part, rounded up"
    if not row.for_logs:
        yield "`consumption` `log`", "not allowed"
    yield "Python client", f"`{setting.option}`"
    yield "command line", _flag(setting)
    if row.sqs is not None:
        unit = " (seconds)" if row.sqs.endswith(("Timeout", "Period")) else ""
        yield (
            "SQS attribute",
            f"`{row.sqs}`{unit}" + ("" if row.sqs.startswith(EXTENSION) else ", of SQS itself"),
        )
    yield "native protocol", f"`{setting.name}`"
    yield "since", row.since


def _flag(setting: SettingRow) -> str:
    return f"`{setting.flag}`, `--no-{setting.flag[2:]}`" if setting.kind == "switch" else f"`{setting.flag}`"


def _values(setting: SettingRow) -> str:
    if setting.kind == "choice":
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.kind == "switch":
        return "on or off"
    if setting.kind == "text":
        return "the name of a queue, or `none`"
    bounds = " to ".join(_bound(setting, bound) for bound in (setting.row.low, setting.row.high))
    return f"{bounds}, or `none`" if setting.optional else bounds


def _bound(setting: SettingRow, bound: Any) -> str:
    return shown(setting, bound)


def _native_table() -> str:
    lines = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for setting in SETTINGS.values():
        kind = " or ".join(f'`"{choice}"`' for choice in setting.choices) or _NATIVE[setting.kind]
        optional = " or nil" if setting.optional else ""
        lines.append(
            f"| `{setting.name}` | {kind}{optional} | {_native_default(setting)} | {setting.row.help}{_fixed(setting)} |"
        )
    return "\n".join(lines)


def _native_default(setting: SettingRow) -> str:
    value = setting.default
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f'`"{value}"`'


def _replaced(page: str, table: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> int:
    """Writes what is not as it should be; says what was written."""
    for path, text in sources().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
