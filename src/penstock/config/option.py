"""An option: the place of a field in the configuration file, its kind, and its help."""

from __future__ import annotations

from dataclasses import dataclass, fields

from penstock.config.kinds import Kind


@dataclass(frozen=True)
class Option:
    """The place of a field in the file, its kind, and its help."""

    key: str
    """`table.key` in the TOML file."""
    kind: Kind
    meaning: str
    flag: str | None = None

    @property
    def variable(self) -> str:
        """The environment variable that sets it: `storage.cache_size` is `PENSTOCK_STORAGE_CACHE_SIZE`."""
        return "PENSTOCK_" + self.key.replace(".", "_").upper()


Options = dict[str, tuple[str, Option]]
"""By key in the file: the attribute of the configuration, and its option."""


def option(key: str, kind: Kind, meaning: str, flag: str | None = None) -> dict[str, Option]:
    """The metadata of a dataclass field that can be set."""
    return {"option": Option(key, kind, meaning, flag)}


def options_of(config: type) -> Options:
    """All options of a configuration, those of its parts included."""
    return {entry.metadata["option"].key: (entry.name, entry.metadata["option"]) for entry in fields(config)}
