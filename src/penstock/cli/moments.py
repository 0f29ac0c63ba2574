"""Points in time as users write them: a duration ago, or a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import typer

from penstock.config.units import parse_duration_ms


def moment_of(text: str, option: str) -> datetime:
    """`1h` for so long ago, or a time; one without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        moment.astimezone(UTC)  # in the usual form, for comparison
        return moment
    except OverflowError:
        raise _too_far(text, option) from None
    except ValueError:
        try:
            return datetime.now(UTC) - timedelta(milliseconds=parse_duration_ms(text))
        except OverflowError:
            raise _too_far(text, option) from None
        except ValueError:
            raise typer.BadParameter(
                f"{text!r} is not a time; write 1h (one hour ago) or 2026-05-01T12:00Z", param_hint=option
            ) from None


def _too_far(text: str, option: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"{text!r} is before the year 1 or after 9999; write 1h (one hour ago) or 2026-05-01T12:00Z",
        param_hint=option,
    )
