"""What tests of the pipeline share: one Spark session, and one `penstock serve` that it reads from and writes to."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

import penstock
from penstock.pipeline.session import spark_session
from tests.process.server import SMALL_FILES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SESSION_OPTIONS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    # Rows are few: to compile a plan costs more than to go through it. Jobs of the guide and of the cluster of Spark run with
    # Spark's own settings.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Tests are short: a compiler that starts fast and a collector without threads of its own suit them best.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xms640m -Xmn320m",
}
TEST_SECONDS = 900
"""Starting a session takes seconds on an idle machine and minutes on a very busy one."""
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Spark have more time: the first of them waits for the session."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session; a task that fails is tried once more. It stays within its own directory."""
    place = tmp_path_factory.mktemp("spark")
    options = SESSION_OPTIONS | {
        "spark.sql.warehouse.dir": str(place / "warehouse"),
    }
    session = spark_session("penstock tests", "local[2, 2]", options)
    yield session
    session.stop()


class Broker:
    """A server in a process of its own, and a client of it."""

    def __init__(self, url: str, client: penstock.BlockingClient) -> None:
        self.url = url
        self.client = client

    @property
    def endpoint(self) -> str:
        """As the source's option wants it."""
        return self.url.removeprefix("penstock://")

    def new_log(self, **options: object) -> penstock.BlockingQueue:
        """An empty queue with a log, of its own name."""
        settings: penstock.QueueOptions = {"consumption": "log"}
        settings.update(options)  # type: ignore[typeddict-item]  # as the caller names them
        return self.client.create_queue(f"log-{next(_numbers)}", **settings)

    def read(self, spark: SparkSession, queue: str, **options: str) -> DataFrame:
        """The queue's log as a batch."""
        return spark.read.format("penstock").options(endpoint=self.endpoint, queue=queue, **options).load()

    def follow(self, spark: SparkSession, queue: str, **options: str) -> DataFrame:
        """The queue's log as a stream."""
        return (
            spark.readStream.format("penstock").options(endpoint=self.endpoint, queue=queue, **options).load()
        )

    def bodies(self, queue: str) -> list[str]:
        """What is in the log, in order."""
        return [message.text() for message in self.client.queue(queue).log().messages()]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The server, until the tests are over."""
    directory = tmp_path_factory.mktemp("broker")
    with serving(directory) as url, penstock.connect_blocking(url, timeout=120) as client:
        yield Broker(url, client)


class serving:
    """`penstock serve` over a directory; inside the block it listens at the url."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        command = [sys.executable, "-m", "penstock.cli.main", "serve", "--json", "--listen", "127.0.0.1:0"]
        command += ["--sqs-listen", "off", "--monitoring-listen", "off", "--data", str(self._directory)]
        command += ["--durability", "os", "--log-level", "warning"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment | SMALL_FILES)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server did not start"
        url: str = msgspec.json.decode(line)["url"]
        return url

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        shutil.rmtree(self._directory, ignore_errors=True)
