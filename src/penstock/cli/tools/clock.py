"""`penstock clock` and `penstock id`: the server's time as known here, and ids by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.exits import reported
from penstock.cli.output import print_facts, print_json, print_line
from penstock.cli.parameters import DEFAULT_URL, Json, Url

if TYPE_CHECKING:
    from penstock.client.produce.clock import ClockStatus
    from penstock.ordering.timestamp_id import TimestampId

IDS_AT_ONCE = 100_000


@reported
def clock(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show the server's time and the offset of this computer's clock."""
    from penstock.cli.asking import ask

    status = ask(url, lambda client: client.clock())
    if json:
        print_json(_facts(status))
        return
    side = "behind" if status.offset_us > 0 else "ahead"
    print_facts(
        f"{moment_text((status.earliest_us + status.latest_us) // 2)} by the server's clock",
        {
            "its time is from": _source(status),
            "this computer": f"{milliseconds_text(abs(status.offset_us))} {side} of it",
            "known to": f"± {milliseconds_text(status.uncertainty_us)}",
            "round trip": milliseconds_text(status.round_trip_us),
            "drift": f"up to {status.drift_ppm} millionths: ± {status.drift_ppm / 1000:g} ms more a second",
        },
    )


@reported
def identifiers(
    count: Annotated[int, typer.Option("--count", help="How many ids to print.", min=1, max=IDS_AT_ONCE)] = 1,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Print unique, time-sorted ids from the server's sequencer."""
    from penstock.cli.asking import ask

    for taken in ask(url, lambda client: client.take_ids(count)):
        if json:
            print_json(_id_facts(taken))
        else:
            print_line(taken.to_text())


def _facts(status: ClockStatus) -> dict[str, Any]:
    return {
        "time": moment_text((status.earliest_us + status.latest_us) // 2),
        "earliest_us": status.earliest_us,
        "latest_us": status.latest_us,
        "source": status.source,
        "server_uncertainty_us": status.server_uncertainty_us,
        "offset_us": status.offset_us,
        "uncertainty_us": status.uncertainty_us,
        "round_trip_us": status.round_trip_us,
        "drift_ppm": status.drift_ppm,
    }


def _id_facts(taken: TimestampId) -> dict[str, Any]:
    return {
        "id": taken.to_text(),
        "time": moment_text(taken.time_us),
        "time_us": taken.time_us,
        "process": taken.process,
        "counter": taken.counter,
    }


def _source(status: ClockStatus) -> str:
    if status.source == "own":
        return "its own clock, which defines it"
    return f"{status.source}, ± {milliseconds_text(status.server_uncertainty_us)}"


def milliseconds_text(microseconds: int) -> str:
    """`1.234 ms`."""
    return f"{microseconds / 1000:,.3f} ms"


def moment_text(stamp_us: int) -> str:
    """Microseconds since 1970 in RFC 3339, in UTC."""
    from penstock.client.duration import moment_us

    return moment_us(stamp_us).isoformat(timespec="microseconds").replace("+00:00", "Z")
