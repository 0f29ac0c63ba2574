"""The format of the server's log: one line for each message, as text or as JSON. Secrets are never logged.

Messages name their values, `log.warning("lost node %(node)s", {"node": name})`, and the JSON format has each of them as a
field too. So a collector can search by node, queue or partition without parsing sentences.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO

from penstock.config.serve import LogFormat, LogLevel


class TextFormatter(logging.Formatter):
    """`2025-01-31 12:00:00.123 INFO  listening on …`."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).astimezone()
        line = (
            f"{moment:%Y-%m-%d %H:%M:%S}.{int(record.msecs):03d} {record.levelname:<7} {record.getMessage()}"
        )
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the named values of the message."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, str | float | None] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if isinstance(record.args, Mapping):
            for name, value in record.args.items():
                line.setdefault(name, value if isinstance(value, str | int | float | None) else str(value))
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(level: LogLevel, style: LogFormat, stream: TextIO | None = None) -> None:
    """Sends all log messages of Penstock to the error output, each once."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logger = logging.getLogger("penstock")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
