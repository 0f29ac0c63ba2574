"""The options of every role: the data directory, and logging."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.config import kinds
from penstock.config.option import option
from penstock.config.processors import Processors

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]

DATA = "{data}"
"""Stands for the data directory at the beginning of a path."""


@dataclass(frozen=True, kw_only=True)
class SharedOptions:
    """The part of a configuration that all roles have."""

    data_directory: str = field(
        default="penstock-data",
        metadata=option(
            "storage.directory",
            kinds.directory(),
            "Directory for all data. One server uses it at a time. It is created if it does not exist.",
            "--data",
        ),
    )
    processors: Processors = field(
        default="auto",
        metadata=option(
            "process.cpus",
            kinds.processors(),
            "Processors to use. `auto`: the two busiest threads share one processor while that helps, and "
            "the kernel chooses which. `all`: the kernel decides alone. Numbers: only these processors.",
            "--cpus",
        ),
    )
    log_level: LogLevel = field(
        default="info",
        metadata=option(
            "log.level",
            kinds.choice("debug", "info", "warning", "error"),
            "The least severe level that is logged.",
            "--log-level",
        ),
    )
    log_format: LogFormat = field(
        default="text",
        metadata=option(
            "log.format",
            kinds.choice("text", "json"),
            "`text` for people; `json` (one object a line, with the values of each message as fields) for "
            "log collectors.",
            "--log-format",
        ),
    )

    def path(self, text: str) -> str:
        """A path with the data directory put in."""
        return text.replace(DATA, self.data_directory, 1) if text.startswith(DATA) else text
