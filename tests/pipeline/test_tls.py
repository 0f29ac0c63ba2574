"""Spark and a server that speaks TLS: rows in and out, what the driver knows travels to tasks, and clear words otherwise."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.cli.pipeline.run import _unread_bytes
from penstock.model.errors import PenstockError
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.server_facts import server_facts_of
from penstock.pipeline.source.connection import Connection
from penstock.pipeline.source.options import Target, read_options
from penstock.runtime.local_cluster.certificates import CertificateFiles, ThrowAwayAuthority
from tests.process.programs import server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Secure:
    """A server with a certificate, and whom to trust."""

    def __init__(self, directory: Path) -> None:
        self.files: CertificateFiles = ThrowAwayAuthority(directory / "authority").files("server")
        self.program = server(
            directory,
            *("--native-tls-certificate", str(self.files.certificate)),
            *("--native-tls-key", str(self.files.key)),
        )
        self.url = str(self.program.facts["url"])
        self.endpoint = f"{self.url}?ca={self.files.authority}"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    found = Secure(tmp_path_factory.mktemp("secure"))
    with Connection(target_of(found, "clicks")) as connection:
        connection.client.create_queue("clicks", consumption="log").send_batch([b"1", b"2", b"3"])
    yield found
    found.program.stop()


def target_of(secure: Secure, queue: str, **options: str) -> Target:
    given = {"endpoint": secure.url, "ca": str(secure.files.authority), "queue": queue} | options
    return read_options(given, "read").target


def test_rows_are_written_and_read_over_tls(secure: Secure, spark: SparkSession) -> None:
    options = {"endpoint": secure.url, "ca": str(secure.files.authority), "queue": "clicks"}
    rows = spark.createDataFrame([("4",), ("5",)], "body string").selectExpr("cast(body as binary) body")
    rows.write.format("penstock").options(**options).mode("append").save()
    found = spark.read.format("penstock").options(**options).load().selectExpr("cast(body as string) body")
    assert sorted(row.body for row in found.collect()) == ["1", "2", "3", "4", "5"]


def test_tasks_trust_whom_the_driver_trusts_and_need_no_file(secure: Secure, tmp_path: Path) -> None:
    moved = tmp_path / "ca.pem"
    moved.write_bytes(secure.files.authority.read_bytes())
    targets = [
        target_of(secure, "clicks", ca=str(moved)),
        target_of(secure, "clicks", endpoint=f"{secure.url}?ca={moved}", ca=""),
    ]
    moved.unlink()  # as on a machine that is not the driver's
    for target in targets:
        with Connection(pickle.loads(pickle.dumps(target))) as connection:
            assert connection.description().name == "clicks"


def test_what_commands_and_jobs_ask_is_asked_over_tls(secure: Secure) -> None:
    _unread_bytes(secure.endpoint, "clicks", None)
    assert [queue["name"] for queue in server_facts_of(secure.endpoint).queues] == ["clicks"]
    with pytest.raises(PenstockError, match="is not trusted"):
        _unread_bytes(secure.url, "clicks", None)


def test_what_is_wrong_is_said_in_words_for_users_of_spark(secure: Secure, tmp_path: Path) -> None:
    strange = ThrowAwayAuthority(tmp_path / "strange").files("server").authority

    def said(**options: str) -> str:
        with (
            pytest.raises(PipelineError) as raised,
            Connection(target_of(secure, "clicks", **options)) as one,
        ):
            one.description()
        return str(raised.value)

    wrong = said(ca=str(strange))
    assert "is not trusted" in wrong
    assert wrong.endswith("for Spark, the option ca")
    plain = secure.url.replace("penstocks", "penstock")
    assert "this server uses TLS" in said(endpoint=plain, ca="")
    assert "option ca needs TLS" in said(endpoint=plain)
    assert "cannot be read" in said(ca=str(tmp_path / "none.pem"))
