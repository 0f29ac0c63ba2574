"""`penstock simulate`: runs the engine over simulated disks, clocks and networks, seed by seed."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.exits import CommandError, reported
from penstock.cli.parameters import Json


@reported
def simulate(
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds to run.", min=1)] = 100,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="The first seed; alone it runs just this one, with its trace."),
    ] = None,
    json: Json = False,
) -> None:
    """Look for defects: random work, crashes, torn and damaged disks, with every promise checked."""
    try:
        from penstock.simulation import command
    except ImportError as error:
        if not (error.name or "").startswith("penstock.simulation"):
            raise
        raise CommandError(
            "this build of Penstock has no simulation (penstock.simulation.command is missing)"
        ) from None
    code = command.run(seeds=seeds, seed=seed, json=json)
    raise typer.Exit(code)
