"""What commands of the data pipeline share: their options, and the errors of Spark as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from penstock.cli.exits import USAGE, CommandError

DEFAULT_WAREHOUSE = "penstock-warehouse"

JobName = Annotated[
    str,
    typer.Argument(metavar="JOB", help="usage, audit, ledger, dead-letters or capacity.", show_default=False),
]
WarehousePath = Annotated[
    str,
    typer.Option(
        "--warehouse",
        envvar="PENSTOCK_WAREHOUSE",
        help="The directory of all tables, or any path that Spark can write, such as s3a://bucket/path.",
        metavar="PATH",
        show_envvar=True,
        rich_help_panel="Common",
    ),
]
Master = Annotated[
    str,
    typer.Option(
        "--master", help="Where Spark runs: local[*] in this process, or spark://HOST:PORT.", metavar="URL"
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        help="A setting of Spark's, KEY=VALUE; any number of times.",
        metavar="KEY=VALUE",
        show_default=False,
    ),
]


@contextmanager
def pipeline_errors() -> Iterator[None]:
    """Turns what may go wrong with Spark into a sentence and an exit code."""
    try:
        import pyarrow as pa  # noqa: F401  # whether they are there is all that counts
        import pyspark  # noqa: F401
    except ImportError as error:
        raise CommandError(
            f"the data pipeline needs PySpark and PyArrow, and {error.name or 'one of them'} is not installed. Install "
            "them with: pip install 'penstock[spark]'",
            USAGE,
        ) from None
    from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # it ships no types
    from pyspark.errors import PySparkException

    from penstock.pipeline.trouble import PipelineError, reason_of

    try:
        yield
    except PipelineError as error:
        raise CommandError(str(error)) from None
    except Py4JNetworkError as error:
        raise CommandError(f"Spark has ended by itself: {error}") from None
    except (PySparkException, Py4JError) as error:
        reason = reason_of(error) or str(error).strip().partition("\n")[0]
        raise CommandError(f"Spark: {reason}") from None


def settings_of(given: list[str] | None) -> dict[str, str]:
    """`KEY=VALUE`, any number of times."""
    settings: dict[str, str] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is no setting; write KEY=VALUE", param_hint="--conf")
        if name.strip() == "spark.sql.session.timeZone":
            raise typer.BadParameter(
                "hours and days of the tables are those of UTC: in another zone they would be counted twice",
                param_hint="--conf",
            )
        settings[name.strip()] = value.strip()
    return settings
