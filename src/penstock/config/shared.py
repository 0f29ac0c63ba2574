"""What every role can be told: where its data lives, and how it logs."""

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
            "Where all data lives. One server owns it at a time; it is made if it does not exist.",
            "--data",
        ),
    )
    processors: Processors = field(
        default="auto",
        metadata=option(
            "process.cpus",
            kinds.processors(),
            "Which processors to use. `auto`: the two busiest threads share one while that is good for them, and the "
            "kernel chooses which. `all`: the kernel alone decides. Numbers: these and no others.",
            "--cpus",
        ),
    )
    log_level: LogLevel = field(
        default="info",
        metadata=option(
            "log.level",
            kinds.choice("debug", "info", "warning", "error"),
            "The least important messages to log.",
            "--log-level",
        ),
    )
    log_format: LogFormat = field(
        default="text",
        metadata=option(
            "log.format",
            kinds.choice("text", "json"),
            "`text` for people, `json` (one object a line) for log collectors.",
            "--log-format",
        ),
    )

    def path(self, text: str) -> str:
        """A path with the data directory put in."""
        return text.replace(DATA, self.data_directory, 1) if text.startswith(DATA) else text
