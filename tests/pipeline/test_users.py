"""Spark as a user: with a key it reads and writes, without permission it is told so, and nothing shows the secret."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

import penstock
from penstock.pipeline.errors import reason_of
from penstock.pipeline.local_rows import local_rows
from tests.pipeline.broker import serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUEUE = "clicks"
MAY_READ = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Action": ["sqs:GetQueueAttributes", "sqs:ReceiveMessage"],
            "Resource": f"arn:aws:sqs:us-east-1:000000000000:{QUEUE}",
        }
    ],
}


class Guarded(NamedTuple):
    """A server with users: keys and secrets of a root and of somebody who may only read."""

    endpoint: str
    root: tuple[str, str]
    reader: tuple[str, str]

    def options(self, who: tuple[str, str]) -> dict[str, str]:
        return {"endpoint": self.endpoint, "queue": QUEUE, "accessKey": who[0], "secretKey": who[1]}


def create_user(data: Path, name: str, *options: str) -> tuple[str, str]:
    command = [sys.executable, "-m", "penstock.cli.main", "user", "create", name, *options]
    done = subprocess.run([*command, "--data", str(data), "--json"], capture_output=True, check=True)
    key = msgspec.json.decode(done.stdout)["access_key"]
    return key["key_id"], key["secret"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    data = tmp_path_factory.mktemp("guarded")
    policy = tmp_path_factory.mktemp("policy") / "read.json"
    policy.write_bytes(msgspec.json.encode(MAY_READ))
    root = create_user(data, "ada", "--root")
    reader = create_user(data, "ray", "--policy", str(policy))
    with serving(data) as url:
        with penstock.connect_blocking(url, access_key=root[0], secret_key=root[1]) as client:
            client.create_queue(QUEUE, consumption="log").send_batch(["1", "2", "3"])
        yield Guarded(url.removeprefix("penstock://"), root, reader)


def test_a_user_reads_what_it_may_and_nothing_shows_its_secret(
    spark: SparkSession, guarded: Guarded, capfd: pytest.CaptureFixture[str]
) -> None:
    frame = spark.read.format("penstock").options(**guarded.options(guarded.reader)).load()
    assert sorted(bytes(row["body"]) for row in frame.collect()) == [b"1", b"2", b"3"]
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        frame.explain(True)
        frame.explain(mode="formatted")
    output = capfd.readouterr()
    for text in (shown.getvalue(), output.out, output.err, str(frame)):
        assert guarded.reader[1] not in text
    assert "penstock" in shown.getvalue()


def test_who_may_not_is_told_what_is_missing_before_any_task_starts(
    spark: SparkSession, guarded: Guarded
) -> None:
    options = guarded.options(guarded.reader) | {"queue": "salaries"}
    with pytest.raises(Exception, match="PipelineError") as refused:
        spark.read.format("penstock").options(**options).load().collect()
    said = reason_of(refused.value) or ""
    assert "no permission for queue 'salaries'" in said
    assert "sqs:GetQueueAttributes" in said
    assert guarded.reader[1] not in str(refused.value)
    rows = local_rows(spark, [("4",)], "body string")
    with pytest.raises(Exception, match="PipelineError") as unsent:
        rows.write.format("penstock").options(**guarded.options(guarded.reader)).mode("append").save()
    assert "sqs:SendMessage" in (reason_of(unsent.value) or "")


def test_who_is_nobody_or_has_another_secret_is_told_so(spark: SparkSession, guarded: Guarded) -> None:
    nobody = {"endpoint": guarded.endpoint, "queue": QUEUE}
    with pytest.raises(Exception, match="PipelineError") as unknown:
        spark.read.format("penstock").options(**nobody).load().collect()
    assert "Set the options accessKey and secretKey" in (reason_of(unknown.value) or "")
    wrong = guarded.options((guarded.reader[0], "not-the-secret"))
    with pytest.raises(Exception, match="PipelineError") as refused:
        spark.read.format("penstock").options(**wrong).load().collect()
    assert "its secret is wrong" in (reason_of(refused.value) or "")
    assert "not-the-secret" not in str(refused.value)


def test_a_user_writes_what_it_may(spark: SparkSession, guarded: Guarded) -> None:
    rows = local_rows(spark, [("4",), ("5",)], "body string")
    rows.write.format("penstock").options(**guarded.options(guarded.root)).mode("append").save()
    frame = spark.read.format("penstock").options(**guarded.options(guarded.root)).load()
    assert {bytes(row["body"]) for row in frame.collect()} == {b"1", b"2", b"3", b"4", b"5"}
