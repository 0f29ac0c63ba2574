"""How the server's log looks: one line a message, for people or for collectors. Secrets never get here."""

from __future__ import annotations

import json
import logging
import sys
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
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, str] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(level: LogLevel, style: LogFormat, stream: TextIO | None = None) -> None:
    """Sends everything Penstock logs to the error output, and nothing twice."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logger = logging.getLogger("penstock")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
