"""The list of justified places (`unreached.toml`), and what it leaves unsaid or says in vain.

An entry stands under its file and its function: the place, and why no run reaches it, in a sentence. A sentence that
begins with `open:` says what the simulation should reach and does not; one with `rare:` is about a place that some
campaigns reach and some do not. Both are counted and printed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.simulation.coverage.places import Name, Place
from tests.simulation.coverage.reached import Measured

OPEN = "open:"
RARE = "rare:"
NOT_LOOKED_AT = "open: not looked at yet"
HEADER = """# Places that no run of the simulation reaches, each with its reason; `make simulation-coverage` holds it against a campaign.
# A reason that begins with `open:` is work to do: the simulation should get there. `rare:` may be reached or not.

"""

Justified = dict[Name, str]


class Verdict(NamedTuple):
    """A campaign beside the list."""

    unjustified: list[Place]
    stale: list[Name]
    """Justified, but reached, or not there any more."""
    justified: dict[Name, str]
    opened: dict[Name, str]
    rare: dict[Name, str]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left to say."""
        return not self.unjustified and not self.stale


def read_justified(path: Path) -> Justified:
    """Reads the list; raises ValueError where an entry gives no reason."""
    files = msgspec.convert(tomllib.loads(path.read_text()), type=dict[str, dict[str, dict[str, str]]])
    found = {
        (file, function, text): reason
        for file, functions in files.items()
        for function, places in functions.items()
        for text, reason in places.items()
    }
    for name, reason in found.items():
        if not reason.removeprefix(OPEN).removeprefix(RARE).strip():
            raise ValueError(f"{path.name} gives no reason for {' / '.join(name)}")
    return found


def judge(measured: Measured, justified: Justified) -> Verdict:
    """Compares what was not reached with what may stay so."""
    unreached = {place.name for place in measured.unreached}
    rare = {name: reason for name, reason in justified.items() if reason.startswith(RARE)}
    stale = [name for name in justified if name not in (measured.names if name in rare else unreached)]
    valid = {name: reason for name, reason in justified.items() if name not in stale and name not in rare}
    return Verdict(
        [place for place in measured.unreached if place.name not in justified],
        stale,
        {name: reason for name, reason in valid.items() if not reason.startswith(OPEN)},
        {name: reason for name, reason in valid.items() if reason.startswith(OPEN)},
        {name: reason for name, reason in rare.items() if name not in stale},
    )


def renewed(verdict: Verdict, justified: Justified) -> str:
    """The list without what is in it in vain, and with what is missing, as open."""
    kept = {name: reason for name, reason in justified.items() if name not in verdict.stale}
    kept |= {place.name: NOT_LOOKED_AT for place in verdict.unjustified}
    return HEADER + as_toml(sorted(kept.items()))


def as_toml(entries: Iterable[tuple[Name, str]]) -> str:
    """Entries as they stand in the list."""
    lines: list[str] = []
    before = None
    for (file, function, text), reason in entries:
        if (file, function) != before:
            before = file, function
            lines += ["", f"[{_quoted(file)}.{_quoted(function)}]"]
        lines.append(f"{_quoted(text)} = {_quoted(reason)}")
    return "\n".join(lines).strip() + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML, which takes the escapes of JSON."""
    return json.dumps(text, ensure_ascii=False)
