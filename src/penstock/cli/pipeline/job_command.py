"""What commands of the data pipeline share: their options, and the errors of Spark as sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exits import USAGE, CommandError
from penstock.cli.parameters import duration_seconds

if TYPE_CHECKING:
    from penstock.pipeline.jobs.job import Job
    from penstock.pipeline.warehouse.expiry import Keep

_S3_CONNECTOR = "org.apache.hadoop.fs.s3a.S3AFileSystem not found"
_S3_CLIENT = re.compile(
    r"(NoClassDefFoundError|ClassNotFoundException): (software[./]amazon|com[./]amazonaws)[./]"
)
_NO_BUCKET = "NoSuchBucketException"
_NO_JAVA = "JAVA_GATEWAY_EXITED"
_STOPPED = "on a stopped SparkContext"
_LEAST_KEPT = timedelta(days=1)
DEFAULT_WAREHOUSE = "penstock-warehouse"

JobName = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="The job: usage, audit, ledger, dead-letters or capacity.", show_default=False
    ),
]
WarehousePath = Annotated[
    str,
    typer.Option(
        "--warehouse",
        envvar="PENSTOCK_WAREHOUSE",
        help="The directory of all tables, or a path that Spark can write, such as s3a://bucket/path.",
        metavar="PATH",
        show_envvar=True,
        rich_help_panel="Common",
    ),
]
Master = Annotated[
    str,
    typer.Option(
        "--master", help="Where Spark runs: local[*] (in this process) or spark://HOST:PORT.", metavar="URL"
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        help="A Spark setting, KEY=VALUE; may be repeated.",
        metavar="KEY=VALUE",
        show_default=False,
    ),
]

KeptFor = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        help="Remove rows older than this: 90d, or TABLE=365d for one table. May be repeated "
        "(default: keep all rows).",
        metavar="[TABLE=]TIME",
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

    from penstock.pipeline.errors import PipelineError, in_short, reason_of

    try:
        yield
    except PipelineError as error:
        raise CommandError(str(error)) from None
    except (Py4JNetworkError, ConnectionError) as error:  # the one while Java ends, the other afterwards
        raise CommandError(f"Spark has ended unexpectedly: {error}") from None
    except OSError as error:
        if error.filename is None:  # not useful to a user
            raise
        raise CommandError(
            f"{error.filename} cannot be read or written: {error.strerror}. Nothing is lost: repair that, or name another place "
            "(--warehouse, --checkpoint), and run the same command again"
        ) from None
    except (PySparkException, Py4JError) as error:
        if _S3_CONNECTOR in str(error):
            raise CommandError(_without_connector(), USAGE) from None
        if _S3_CLIENT.search(str(error)):
            raise CommandError(
                "Spark has its connector for S3, but not the AWS SDK that it needs. Name the SDK's file (the package "
                "software.amazon.awssdk:bundle) as well: --conf spark.jars=FILE,FILE",
                USAGE,
            ) from None
        if _NO_BUCKET in str(error):
            raise CommandError(
                "there is no such bucket: create it, or name another with --warehouse"
            ) from None
        if _NO_JAVA in str(error):
            raise CommandError(
                "Java ended before Spark started; see the reason above. If it could not fetch packages (spark.jars.packages), "
                "name files that are here instead: --conf spark.jars=FILE,FILE"
            ) from None
        if _STOPPED in str(error):
            raise CommandError(
                "Spark has stopped; see the reason above. With a cluster, the address of --master probably does not answer, or the "
                "cluster has ended this run. Nothing is lost: run the same command again"
            ) from None
        raise CommandError(f"Spark: {reason_of(error) or in_short(str(error))}") from None


def _without_connector() -> str:
    """The missing package for S3, in the version that this Spark needs."""
    import pyspark

    jars = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    version = next((jar.stem.rpartition("-")[2] for jar in jars), "VERSION")
    return (
        "Spark comes without its connector for S3. Have it fetched: --conf "
        f"spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}; or, where Maven's repository cannot be reached, name "
        "the files of that package and of all that it needs: --conf spark.jars=FILE,FILE"
    )


def settings_of(given: list[str] | None) -> dict[str, str]:
    """`KEY=VALUE`, any number of times."""
    settings: dict[str, str] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not a setting; write KEY=VALUE", param_hint="--conf")
        if name.strip() == "spark.sql.session.timeZone":
            raise typer.BadParameter(
                "hours and days of the tables are those of UTC: in another time zone rows would be counted twice",
                param_hint="--conf",
            )
        settings[name.strip()] = value.strip()
    return settings


def counted(count: int, one: str, many: str) -> str:
    """`1 batch`, `2 batches`."""
    return f"{count:,} {one if count == 1 else many}"


def keep_of(given: list[str] | None, jobs: Iterable[Job]) -> Keep:
    """`90d` for all tables of these jobs, `TABLE=365d` for one of them."""
    from penstock.pipeline.warehouse.expiry import Keep

    tables = {table.name: table for job in jobs for table in job.tables}
    everything: timedelta | None = None
    named: list[tuple[str, timedelta]] = []
    for text in given or []:
        name, equals, time = text.rpartition("=")
        try:
            kept = timedelta(seconds=duration_seconds(time))
            datetime.now(UTC) - kept  # the first moment that is kept
        except OverflowError:
            raise typer.BadParameter(
                f"{time} is too long; without the option rows are kept for ever",
                param_hint="--keep",
            ) from None
        if kept < _LEAST_KEPT:
            raise typer.BadParameter("whole days are removed: keep rows for at least 1d", param_hint="--keep")
        if not equals:
            everything = kept
            continue
        if name not in tables:
            raise typer.BadParameter(
                f"there is no table {name} here; there are {', '.join(sorted(tables))}", param_hint="--keep"
            )
        if tables[name].filling == "whole" or tables[name].ages == "never":
            raise typer.BadParameter(
                f"{name} cannot be shortened: later rows depend on all of its rows",
                param_hint="--keep",
            )
        named.append((name, kept))
    return Keep(everything, tuple(named))
