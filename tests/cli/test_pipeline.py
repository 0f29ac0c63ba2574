"""`penstock pipeline` and `penstock audit`, as far as they go without starting Spark."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.core import context
from pyspark.errors import PySparkException

from penstock.cli.exits import CommandError
from penstock.cli.pipeline.job_command import pipeline_errors
from penstock.cli.pipeline.run import missing_text
from penstock.cli.pipeline.signals import interruptible_start
from penstock.cluster.layout.capacity import capacity_facts, warning
from penstock.cluster.layout.entries import CAPACITY, CapacityEntry, capacity_key, decode_capacity
from penstock.metadata.opening import open_metadata_store
from penstock.metadata.store.interface import Listing
from tests.cli.conftest import Penstock

JOBS = ["usage", "audit", "ledger", "dead-letters", "capacity"]
NOW = datetime.now(UTC).replace(microsecond=0)


def write(warehouse: Path, place: str, rows: list[dict[str, Any]]) -> None:
    import pyarrow.parquet as pq

    directory = warehouse / place
    directory.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), directory / "part-0.parquet")


def test_jobs_are_listed_and_shown(penstock: Penstock) -> None:
    assert [one["job"] for one in penstock("pipeline", "list", "--json").objects] == JOBS
    assert "penstock.lifecycle" in penstock("pipeline", "list").output
    shown = penstock("pipeline", "show", "usage")
    assert shown.code == 0
    assert "usage_minutes" in shown.output
    assert "latency_us_p99" in shown.output
    assert "latency_le_100 to" in shown.output


@pytest.mark.parametrize("job", JOBS)
def test_every_table_and_column_of_a_job_is_explained(penstock: Penstock, job: str) -> None:
    (facts,) = penstock("pipeline", "show", job, "--json").objects
    for table in facts["tables"]:
        assert table["meaning"].endswith((".", "!"))
        assert all(column["meaning"].endswith(".") for column in table["columns"]), table["name"]


def test_an_unknown_job_is_told_which_there_are(penstock: Penstock) -> None:
    outcome = penstock("pipeline", "show", "usages")
    assert outcome.code == 1
    assert "usage, audit, ledger, dead-letters, capacity" in outcome.errors


def test_without_the_extra_it_says_how_to_get_it(penstock: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    for command in (("pipeline", "list"), ("pipeline", "run", "usage"), ("audit", "query")):
        outcome = penstock(*command)
        assert outcome.code == 2
        assert "pip install 'penstock[spark]'" in outcome.errors


def test_a_log_that_is_not_there_is_said_before_spark_starts(penstock: Penstock) -> None:
    outcome = penstock("pipeline", "run", "ledger")
    assert outcome.code == 3
    assert "penstock queue alter QUEUE --lifecycle" in outcome.errors
    assert penstock("pipeline", "run", "usage", "--full").code == 2
    assert penstock("pipeline", "run", "usage", "--metadata", "memory:").code == 2
    assert penstock("pipeline", "run", "usage", "--queue", "no-such-queue").code == 3


def test_what_is_missing_is_said_and_nobody_blamed(penstock: Penstock) -> None:
    assert missing_text(1, "usage_gaps") == (
        "1 row never reached this job: it was lost on the way to the log, or the log removed it before it was read "
        "(table usage_gaps)"
    )
    assert missing_text(1200, "audit_gaps") == (
        "1,200 rows never reached this job: they were lost on the way to the log, or the log removed them before they were "
        "read (table audit_gaps)"
    )
    for job in JOBS:
        (facts,) = penstock("pipeline", "show", job, "--json").objects
        (gaps,) = (table for table in facts["tables"] if table["name"].endswith("_gaps"))
        assert "removed from the log before they were read" in gaps["meaning"]


def audit_row(number: int, **values: Any) -> dict[str, Any]:
    row = {
        "time": NOW - timedelta(minutes=10 - number),
        "account": "000000000000",
        "user": "ada",
        "address": "10.0.0.1",
        "action": "SendMessage",
        "queue": "arn:aws:sqs:elsewhere:000000000000:orders",
        "messages": 1,
        "bytes_in": 10,
        "bytes_out": 10,
        "outcome": "ok",
        "status": 200,
        "latency_us": 1500,
        "request_id": f"request-{number}",
        "front_end": "front-1",
        "number": number,
    }
    return {**row, **values}


def test_the_audit_trail_is_searched(penstock: Penstock, tmp_path: Path) -> None:
    rows = [
        audit_row(1),
        audit_row(2, user="bob", action="DeleteQueue"),
        audit_row(3, outcome="AccessDenied", queue=""),
        audit_row(4, time=NOW - timedelta(days=2)),
    ]
    for row in rows:
        day = row["time"].date().isoformat()
        place = f"audit/gen=g1/block=0/span=0/batch_id={row['number']}/day={day}"
        write(tmp_path, place, [row])

    def numbers(*arguments: str) -> list[int]:
        outcome = penstock("audit", "query", "--warehouse", str(tmp_path), "--json", *arguments)
        assert outcome.code == 0, outcome.errors
        return [one["number"] for one in outcome.objects]

    assert numbers() == [4, 1, 2, 3]
    assert numbers("--since", "1h") == [1, 2, 3]
    assert numbers("--until", (NOW - timedelta(days=1)).isoformat()) == [4]
    assert numbers("--user", "bob") == [2]
    assert numbers("--queue", "orders", "--action", "SendMessage") == [4, 1]
    assert numbers("--outcome", "error") == numbers("--outcome", "AccessDenied") == [3]
    assert numbers("--request-id", "request-1") == [1]
    assert numbers("--limit", "1") == [3]
    assert numbers("--limit", "0", "--address", "10.9.9.9") == []
    table = penstock("audit", "query", "--warehouse", str(tmp_path), "--user", "bob").output
    assert "DeleteQueue" in table
    assert "orders" in table


def test_an_audit_trail_that_is_not_there_is_said(penstock: Penstock, tmp_path: Path) -> None:
    outcome = penstock("audit", "query", "--warehouse", str(tmp_path))
    assert outcome.code == 1
    assert "penstock pipeline run audit" in outcome.errors
    assert penstock("audit", "query", "--since", "yesterday").code == 2


def test_capacity_is_handed_to_the_cluster(tmp_path: Path) -> None:
    from penstock.cli.pipeline.capacity import write_back

    row = {
        "queue": "orders",
        "measured": NOW,
        "messages": 5,
        "bytes": 500,
        "messages_per_hour": 1.5,
        "bytes_per_hour": 150.0,
        "limit": "max-messages",
        "fill": 0.5,
        "full_at": NOW + timedelta(hours=1),
        "peak_per_second": 2.0,
        "partitions": 1,
        "recommended_partitions": 2,
    }
    unknown = {
        "messages_per_hour": None,
        "bytes_per_hour": None,
        "recommended_partitions": None,
        "full_at": None,
    }
    write(tmp_path, "capacity/gen=g1/through=3", [row, {**row, **unknown, "queue": "quiet"}])
    url = f"sqlite:{tmp_path / 'metadata.db'}"

    async def look(*, leave_behind: str | None = None) -> Listing:
        store = await open_metadata_store(url)
        try:
            if leave_behind is not None:
                await store.put(capacity_key(leave_behind), b"{}")
            return await store.list(CAPACITY)
        finally:
            await store.close()

    asyncio.run(look(leave_behind="a-queue-that-is-gone"))
    assert write_back(str(tmp_path), url, None) == 2
    entry, quiet = asyncio.run(look()).entries
    assert entry.key == "cluster/capacity/orders"
    found: CapacityEntry = decode_capacity(entry.value)
    assert (found.queue, found.recommended_partitions) == ("orders", 2)
    assert found.full_at_ms == int((NOW + timedelta(hours=1)).timestamp() * 1000)
    assert found.growth_known
    silent: CapacityEntry = decode_capacity(quiet.value)
    assert (silent.growth_known, silent.messages_per_hour) == (False, 0.0), "earlier versions read no null"
    assert warning(silent) == ""
    assert capacity_facts(silent)["messages_per_hour"] is None


@pytest.mark.parametrize(
    ("given", "said"),
    [("spark.sql.session.timeZone=Asia/Tokyo", "those of UTC"), ("nothing", "write KEY=VALUE")],
)
def test_settings_that_would_make_wrong_tables_are_refused(
    penstock: Penstock, tmp_path: Path, given: str, said: str
) -> None:
    refused = penstock("pipeline", "run", "usage", "--conf", given, "--warehouse", str(tmp_path / "w"))
    assert refused.code == 2
    assert said in refused.output + refused.errors
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("usage", "--master", "nonsense"), "write local[*] or local[NUMBER]"),
        (("usage", "--master", "local[]"), "write local[*] or local[NUMBER]"),
        (("usage", "--master", "spark://host"), "spark://HOST:PORT"),
        (("capacity", "--secret-file", "secret"), "name the metadata servers too"),
        (("capacity", "--metadata", "nonsense"), "no URL of a metadata store"),
        (("capacity", "--metadata", "sqlite:"), "no URL of a metadata store"),
        (("capacity", "--metadata", "etcd://"), "names no host"),
        (("capacity", "--metadata", "etcd://host", "--secret-file", "no-such-file"), "cannot read"),
        (("capacity", "--metadata", "metadata://host"), "ask for the cluster's secret"),
    ],
)
def test_what_would_fail_after_spark_has_started_is_refused_before(
    penstock: Penstock, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.setitem(
        sys.modules, "penstock.pipeline.session", None
    )  # whoever starts Spark fails otherwise
    refused = penstock("pipeline", "run", *arguments)
    assert refused.code == 2
    assert said in refused.errors


@pytest.mark.parametrize(
    "master",
    [
        "local", "local[*]", "local[2]", "local[2, 2]", "local[*,3]", "local-cluster[2,1,1024]", "spark://one:7077",
        "spark://one:7077,two:7077", "yarn", "k8s://https://host:443",
    ],
)  # fmt: skip
def test_wherever_spark_can_run_is_taken(penstock: Penstock, master: str) -> None:
    refused = penstock("pipeline", "run", "usage", "--master", master, "--queue", "no-such-queue")
    assert refused.code == 3, "it came as far as to ask for the log"


STOPPING = "stopping as soon as Spark has started; press Ctrl-C again to stop at once"


def twice_told(number: int) -> None:
    """The second time Spark's Python is interrupted: it logs that with a traceback."""
    root = logging.getLogger()
    root.error("what goes wrong otherwise is said")
    signal.raise_signal(number)
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt:
        root.exception("KeyboardInterrupt while sending command.")
        raise


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_stop_while_spark_starts_is_at_once_and_without_a_traceback(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interruptible_start():
        twice_told(number)
    assert caplog.messages == ["what goes wrong otherwise is said"]
    assert capsys.readouterr().err.strip() == STOPPING
    assert signal.getsignal(number) is before


def test_what_fails_while_spark_starts_is_said_as_ever() -> None:
    with pytest.raises(ConnectionError), interruptible_start():
        raise ConnectionError


def test_a_stop_while_spark_starts_ends_the_command_once_it_can_be_ended(
    penstock: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []

    def start(*given: object) -> Any:
        vars(context)["signal"].signal(signal.SIGINT, signal.default_int_handler)  # as Spark does, half-way
        signal.raise_signal(signal.SIGINT)
        steps.append("started")
        return SimpleNamespace(stop=lambda: steps.append("stopped"))

    monkeypatch.setattr("penstock.pipeline.session.spark_session", start)
    # Another test of this process may have left a session, which the command would rightly not stop.
    no_session = SimpleNamespace(getActiveSession=lambda: None)
    monkeypatch.setattr("penstock.pipeline.session._session_class", lambda: no_session)
    penstock("queue", "create", "rows", "--consumption", "log")
    stopped = penstock("pipeline", "run", "usage", "--queue", "rows")
    assert (stopped.code, stopped.output, stopped.errors.strip()) == (130, "", STOPPING)
    assert steps == ["started", "stopped"], "nothing is left behind"
    assert vars(context)["signal"] is signal


def test_java_that_is_gone_is_said_in_a_sentence() -> None:
    with pytest.raises(CommandError, match="Spark has ended unexpectedly"), pipeline_errors():
        raise ConnectionRefusedError("what py4j raises when nobody listens any more")


def test_a_master_that_nobody_answers_at_is_said_in_a_sentence() -> None:
    said = "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."
    with (
        pytest.raises(CommandError, match="the address of --master probably does not answer"),
        pipeline_errors(),
    ):
        raise PySparkException(said)
