"""The server that tests of the pipeline read from and write to, in a process of its own."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import penstock
from tests.process.server import SMALL_FILES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count(1)


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
        # Other tests may go elsewhere meanwhile, to where soon nothing is.
        here = Path(__file__).parent
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, cwd=here, env=environment | SMALL_FILES
        )
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
