"""The session: Java is found or asked for, packages that are missing are named, and nothing secret is shown."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.pipeline import session
from penstock.pipeline.errors import PipelineError, reason_of
from penstock.pipeline.java import find_java, java_release
from tests.pipeline.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java(home: Path, release: str) -> Path:
    """A program that says it is Java of that release."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{release}\" 2026' >&2\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return home


def test_java_is_that_of_java_home_or_of_the_path_or_an_installed_one(tmp_path: Path) -> None:
    new, old = java(tmp_path / "new", "21.0.2"), java(tmp_path / "old", "1.8.0_402")
    system = tmp_path / "jvm"
    java(system / "java-17", "17.0.15")
    nowhere = tmp_path / "nowhere"
    assert java_release(old / "bin" / "java") == 8
    assert find_java({"JAVA_HOME": str(new), "PATH": str(old / "bin")}, nowhere) == new
    assert find_java({"PATH": str(new / "bin")}, nowhere) == new
    assert find_java({"PATH": str(old / "bin")}, system) == system / "java-17"


def test_without_java_it_says_what_to_install(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(PipelineError, match=r"no Java was found.*apt install openjdk-17-jre-headless"):
        find_java({"PATH": ""}, nowhere)
    old = java(tmp_path / "old", "11.0.1")
    with pytest.raises(PipelineError, match=r"only .*java \(Java 11\) was found.*Java 17 or newer"):
        find_java({"PATH": str(old / "bin")}, nowhere)
    with pytest.raises(PipelineError, match="which is Java 11"):
        find_java({"JAVA_HOME": str(old)}, nowhere)
    with pytest.raises(PipelineError, match="is no Java that runs"):
        find_java({"JAVA_HOME": str(nowhere)}, nowhere)


def test_without_pyspark_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyspark" else found(name))
    with pytest.raises(PipelineError, match=r"needs pyspark.*pip install 'penstock\[spark\]'"):
        session.spark_session("no spark")


def test_the_session_works_in_utc_with_this_python(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert os.environ["PYSPARK_PYTHON"]
    assert session.spark_session("again") is spark or session.spark_session("again") == spark


def test_python_and_java_have_patience_with_each_other(spark: SparkSession) -> None:
    assert os.environ["SPARK_AUTH_SOCKET_TIMEOUT"] == "120", "what Spark tells Python of its setting"


def test_workers_are_forked_from_a_process_that_has_imported_what_they_need(spark: SparkSession) -> None:
    def imported(_: int) -> bool:
        import sys

        return "penstock.pipeline.source.data_source" in sys.modules

    assert spark.sparkContext.parallelize([1], 1).map(imported).collect() == [True]


def test_plans_show_no_option_and_errors_no_secret(
    spark: SparkSession, broker: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    queue = broker.new_log()
    queue.send_batch(["1"])
    frame = broker.read(spark, queue.name, group="hidden-group")
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        frame.explain(mode="extended")
        frame.explain(mode="formatted")
    assert "penstock" in shown.getvalue()
    assert "hidden-group" not in shown.getvalue()
    assert broker.endpoint not in shown.getvalue()
    given = {"endpoint": f"penstock://me:hunter2@{broker.endpoint}", "queue": queue.name}
    with pytest.raises(Exception, match="PipelineError") as caught:
        spark.read.format("penstock").options(**given).load().collect()
    assert "give the credentials with accessKey and secretKey" in (reason_of(caught.value) or "")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(Exception, match="PipelineError") as refused:
        broker.read(spark, queue.name, password="hunter2").collect()
    assert "hunter2" not in str(refused.value)
    output = capfd.readouterr()
    assert "hunter2" not in output.out + output.err
