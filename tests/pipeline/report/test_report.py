"""The report: figures add up, text is escaped, what is missing is said, and the columns it reads are the jobs' own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.jobs import capacity, dead_letters, ledger_tables, usage
from penstock.pipeline.report.message_sections import MOST
from penstock.pipeline.report.page import number, text_table
from penstock.pipeline.report.plot import Series, line_plot, nice_ceiling
from penstock.pipeline.report.report import report
from penstock.pipeline.report.usage_section import percentile
from penstock.pipeline.warehouse.arrow_files import arrow_uri
from tests.pipeline.report.warehouse_files import write_table

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SINCE, UNTIL = NOON - timedelta(hours=2), NOON + timedelta(hours=2)
ARN = "arn:aws:sqs:us-east-1:000000000000:"


def usage_row(minute: int, action: str, requests: int, latency_us: int, **more: Any) -> dict[str, Any]:
    counts = {
        name: requests if bound >= latency_us else 0
        for name, bound in zip(usage.LATENCY.names, usage.LATENCY.bounds, strict=True)
    }
    known = {
        "minute": NOON + timedelta(minutes=minute),
        "account": "000000000000",
        "user": "ada",
        "queue": f"{ARN}orders",
        "action": action,
        "requests": requests,
        "messages": requests,
        "latency_us_max": latency_us,
    }
    return known | counts | more


def page_of(warehouse: Path) -> str:
    return report(str(warehouse), SINCE, UNTIL)


def test_an_empty_warehouse_says_what_to_run(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    for job in ("usage", "ledger", "dead-letters", "capacity"):
        assert f"penstock pipeline run {job} --once" in page


def test_no_warehouse_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="there is no warehouse"):
        page_of(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("s3a://bucket/path", "s3://bucket/path"),
        ("s3n://bucket", "s3://bucket"),
        ("gs://bucket", "gs://bucket"),
    ],
)
def test_a_store_has_one_name_for_spark_and_one_for_everybody_else(given: str, known: str) -> None:
    assert arrow_uri(given) == known


def test_a_store_that_only_spark_reads_is_a_sentence() -> None:
    with pytest.raises(PipelineError, match="cannot be read without Spark"):
        report("wasb://container/warehouse", SINCE, UNTIL)


def test_requests_add_up_over_batches_and_only_within_the_time(tmp_path: Path) -> None:
    write_table(
        tmp_path, usage.PARTS, [usage_row(0, "SendMessage", 1_200, 400)], "gen=a/block=0/span=0/batch_id=0"
    )
    more = [
        usage_row(0, "SendMessage", 34, 900, user="<bob>"),
        usage_row(1, "ReceiveMessage", 100, 2_000, errors=25),
        usage_row(-3000, "SendMessage", 55_555, 100),
    ]
    write_table(tmp_path, usage.PARTS, more, "gen=a/block=0/span=0/batch_id=1")
    write_table(tmp_path, usage.GAPS, [], "gen=a/through=1")
    page = page_of(tmp_path)
    assert "<b>1,334</b><span>requests</span>" in page
    assert "<b>1.87 %</b><span>errors</span>" in page
    assert "&lt;bob&gt;" in page
    assert "<bob>" not in page
    assert "55.6 k" not in page
    assert "No request is missing" in page


def test_what_is_missing_is_said_and_nobody_blamed(tmp_path: Path) -> None:
    write_table(tmp_path, usage.PARTS, [usage_row(0, "SendMessage", 1, 400)])
    write_table(tmp_path, usage.GAPS, [{"front_end": "a", "missing": 12}, {"front_end": "b", "missing": 30}])
    page = page_of(tmp_path)
    assert "Requests that are not counted here: 42." in page
    assert "the log removed them before they were read" in page, "who lost them cannot be told"


def test_findings_of_the_ledger_come_first(tmp_path: Path) -> None:
    hours = {"hour": NOON, "queue": "orders", "began": 10, "ended": 9, "deleted": 9}
    write_table(tmp_path, ledger_tables.HOURS, [hours])
    write_table(tmp_path, ledger_tables.OPEN, [{"queue": "orders", "state": "waiting"}])
    write_table(tmp_path, ledger_tables.FINDINGS, [])
    assert "no findings" in page_of(tmp_path)
    found = {
        "kind": "lost",
        "queue": "orders",
        "partition": 0,
        "sequence": 77,
        "explanation": "it is gone",
        "time": NOON,
    }
    write_table(tmp_path, ledger_tables.FINDINGS, [found])
    page = page_of(tmp_path)
    assert "Promises that were broken" in page
    assert "<td>77</td>" in page
    assert "it is gone" in page


def test_of_many_findings_and_causes_the_first_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    write_table(tmp_path, ledger_tables.HOURS, [{"hour": NOON, "queue": "orders", "began": 10}])
    for place in range(3):
        found = [
            {
                "kind": "lost",
                "queue": "orders",
                "sequence": 1000 * place + one,
                "time": NOON + timedelta(minutes=one),
            }
            for one in range(500)
        ]
        write_table(tmp_path, ledger_tables.FINDINGS, found, f"gen=a/block=0/span=0/batch_id={place}")
    unknown = {"kind": "gap", "queue": "orders", "explanation": "when is not known"}
    write_table(tmp_path, ledger_tables.FINDINGS, [unknown], "gen=a/block=0/span=0/batch_id=3")
    causes = [{"queue": "orders", "reason": f"cause-{one}", "messages": one} for one in range(1, 31)]
    write_table(tmp_path, dead_letters.CAUSES, causes, "gen=a/through=1")
    page = page_of(tmp_path)
    assert "<b>1,501</b><span>findings</span>" in page
    assert page.count("<td>lost</td>") == MOST
    assert "<td>2499</td>" in page
    assert "<td>2000</td>" not in page
    assert "and 1,481 earlier ones" in page
    assert "cause-30<" in page
    assert "cause-10<" not in page
    assert "and 10 of fewer messages" in page


def test_causes_of_death_and_queues_that_fill_up(tmp_path: Path) -> None:
    cause = {"queue": "orders", "reason": "max-receives", "consumer": "till", "fingerprint": "KeyError: <>"}
    write_table(tmp_path, dead_letters.CAUSES, [cause | {"messages": 30, "last_day": 20, "day_before": 10}])
    write_table(tmp_path, dead_letters.HOURS, [{"hour": NOON, "queue": "orders", "messages": 30}])
    queues: list[dict[str, Any]] = [
        {"queue": "calm", "fill": 0.1, "partitions": 1, "recommended_partitions": 1},
        {
            "queue": "busy",
            "limit": "max-bytes",
            "fill": 0.7,
            "full_at": NOON,
            "partitions": 1,
            "recommended_partitions": 4,
        },
        {"queue": "unknown", "messages_per_hour": None, "partitions": 3, "recommended_partitions": None},
    ]
    write_table(tmp_path, capacity.CAPACITY, queues)
    page = page_of(tmp_path)
    assert "20 (+100 %)" in page
    assert "KeyError: &lt;&gt;" in page
    assert page.index("busy") < page.index("calm")
    assert "1 → 4" in page
    assert page.index("busy") < page.index("<td>max-bytes</td>") < page.index("calm")
    assert page.count("not in sight") == page.count("not known: not followed") == 1
    assert "3 → 3" in page


def test_percentiles_lie_between_the_bounds_of_their_bucket() -> None:
    row = {
        "requests": 100,
        "latency_us_max": 350,
        "latency_le_100": 50,
        "latency_le_200": 90,
        "latency_le_400": 100,
    }
    names = ["latency_le_100", "latency_le_200", "latency_le_400"]
    assert percentile(row, names, 0.5) == 100
    assert 100 < percentile(row, names, 0.7) < 200
    assert 200 < percentile(row, names, 0.99) <= 350


@pytest.mark.parametrize(
    ("value", "ceiling"), [(0, 1), (1, 1), (3, 4), (9, 10), (1_234, 2_000), (0.07, 0.08)]
)
def test_ceilings_are_round(value: float, ceiling: float) -> None:
    assert nice_ceiling(value) == pytest.approx(ceiling)


def test_a_line_breaks_where_nothing_was_measured() -> None:
    minutes = [0, 1, 2, 10, 11, 30]
    plot = line_plot([Series("a", [(NOON + timedelta(minutes=m), 1.0) for m in minutes])], str, 60)
    drawing = ET.fromstring(plot)
    assert len(drawing.findall("polyline")) == 2
    assert len(drawing.findall("circle")) == 1


@pytest.mark.parametrize("minutes", [1, 2, 5, 6])
def test_every_label_of_a_short_time_names_another_minute(minutes: int) -> None:
    points = [(NOON + timedelta(minutes=minute), 1.0) for minute in range(minutes)]
    drawing = ET.fromstring(line_plot([Series("a", points)], str, 60))
    labels = [text.text for text in drawing.findall("text")][-6:]
    assert len(set(labels)) == 6
    assert "12:00" in labels


def test_heads_stand_over_their_figures() -> None:
    table = text_table(["who", "requests"], [["ada", number("3")]])
    assert "<th>who</th><th class=n>requests</th>" in table


def test_messages_that_are_still_there_are_counted(tmp_path: Path) -> None:
    write_table(tmp_path, ledger_tables.HOURS, [{"hour": NOON, "queue": "orders", "began": 3}])
    assert "<b>0</b><span>still there</span>" in page_of(tmp_path)
    still = [{"queue": "orders", "sequence": sequence, "state": "waiting"} for sequence in range(3)]
    write_table(tmp_path, ledger_tables.OPEN, still, "gen=a/through=1")
    assert "<b>3</b><span>still there</span>" in page_of(tmp_path)
