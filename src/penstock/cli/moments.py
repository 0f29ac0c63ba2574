"""Moments as people write them: so long ago, or a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import typer

from penstock.config.units import parse_duration_ms


def moment_of(text: str, option: str) -> datetime:
    """`1h` for so long ago, or a time; one without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            return datetime.now(UTC) - timedelta(milliseconds=parse_duration_ms(text))
        except ValueError:
            raise typer.BadParameter(
                f"{text!r} is no time; write 1h for so long ago, or 2026-05-01T12:00Z", param_hint=option
            ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
