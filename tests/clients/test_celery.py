"""Celery with a real worker: many tasks, retries, tasks for later, and a worker that is killed."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import pytest

from tests.clients.environments import PROGRAMS, Environments, client_variables, run_for_json
from tests.clients.server import Endpoint
from tests.clients.workers import Reports, Worker, working

pytestmark = pytest.mark.slow

TASKS = 500
WAIT_SECONDS = 300
EMPTY_SECONDS = 60


class CeleryStage:
    """An application on a queue of its own."""

    def __init__(
        self, environments: Environments, endpoint: Endpoint, directory: Path, visibility: int
    ) -> None:
        self.prefix = f"celery-{uuid.uuid4().hex[:8]}-"
        self.reports = Reports(directory / "reports")
        self._environments = environments
        self._endpoint = endpoint
        self._directory = directory
        # As Celery's documentation says: what is special in a URL must be quoted.
        key, secret = (quote(part, safe="") for part in (endpoint.access_key, endpoint.secret))
        self._variables = client_variables(endpoint) | {
            "BROKER_URL": endpoint.url.replace("http://", f"sqs://{key}:{secret}@"),
            "VISIBILITY_TIMEOUT": str(visibility),
            "QUEUE_PREFIX": self.prefix,
            "REPORTS": self.reports.path,
        }
        # Celery reads its configuration from here and from nowhere else.
        self._variables["PYTHONPATH"] = str(PROGRAMS)

    def worker(self) -> AbstractContextManager[Worker]:
        """A worker with two processes."""
        celery = str(self._environments.program("current", "celery"))
        options = ["--pool", "prefork", "--concurrency", "2", "--loglevel", "INFO"]
        return working(
            [celery, "-A", "celery_app", "worker", *options], self._variables, self._directory / "worker.log"
        )

    def send(self, kind: str, argument: object) -> list[str]:
        """Sends tasks; returns their ids."""
        python = str(self._environments.program("current", "python"))
        sent: list[str] = run_for_json(
            [python, str(PROGRAMS / "celery_send.py"), kind, str(argument)], self._variables
        )
        return sent

    def unfinished(self) -> int:
        """How many messages the queue still holds."""
        sqs = boto3.client("sqs", **self._endpoint.boto_options())
        url = sqs.get_queue_url(QueueName=f"{self.prefix}celery")["QueueUrl"]
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        sqs.close()
        kinds = ("", "NotVisible", "Delayed")
        return sum(int(found[f"ApproximateNumberOfMessages{kind}"]) for kind in kinds)

    def wait_until_done(self) -> None:
        """Waits until what ran is acknowledged too, which a worker that is asked to stop before may never do."""
        until = time.monotonic() + EMPTY_SECONDS
        while left := self.unfinished():
            assert time.monotonic() < until, f"all tasks ran, and {left} messages are still there"


@pytest.fixture
def stages(
    environments: Environments, sqs_endpoint: Endpoint, guarded_endpoint: Endpoint, tmp_path: Path
) -> Iterator[Any]:
    """Makes a stage with the visibility timeout that a test asks for."""
    made: list[CeleryStage] = []

    def make(visibility: int, guarded: bool = False) -> CeleryStage:
        endpoint = guarded_endpoint if guarded else sqs_endpoint
        stage = CeleryStage(environments, endpoint, tmp_path, visibility)
        made.append(stage)
        return stage

    yield make
    for stage in made:
        stage.reports.close()


def test_five_hundred_tasks_run_once_each(stages: Any) -> None:
    stage = stages(visibility=60, guarded=True)
    with stage.worker():
        stage.send("note", TASKS)
        events = stage.reports.until(lambda seen: len(seen) >= TASKS, WAIT_SECONDS)
        stage.wait_until_done()
    assert sorted(event["number"] for event in events) == list(range(TASKS))


def test_a_task_that_fails_is_run_again_after_its_countdown(stages: Any) -> None:
    stage = stages(visibility=60)
    with stage.worker():
        stage.send("flaky", "k")
        events = stage.reports.until(lambda seen: len(seen) >= 3, WAIT_SECONDS)
        stage.wait_until_done()
    assert [event["retries"] for event in events] == [0, 1, 2]
    gaps = [after["at"] - before["at"] for before, after in itertools.pairwise(events)]
    assert all(gap >= 0.9 for gap in gaps), gaps


def test_a_task_for_later_outlives_its_visibility_timeout(stages: Any) -> None:
    """Celery keeps such a task and holds its message; each time the timeout ends it is handed out again. SQS says
    so too, and so does Celery's documentation: it runs at least once, and never before its time.
    """
    stage = stages(visibility=2)
    with stage.worker() as worker:
        (sent,) = stage.send("later", 6)
        events = stage.reports.until(lambda seen: len(seen) >= 1, WAIT_SECONDS)
        stage.wait_until_done()
        # A polite stop would wait long for the copies that Celery still holds.
        worker.kill()
    assert {event["id"] for event in events} == {sent}
    assert all(event["late"] >= 0 for event in events)


def test_the_task_of_a_killed_worker_is_run_by_another(stages: Any, tmp_path: Path) -> None:
    stage = stages(visibility=5)
    mark = tmp_path / "mark"
    with stage.worker() as doomed:
        (sent,) = stage.send("stuck", mark)
        (first,) = stage.reports.until(lambda seen: len(seen) >= 1, WAIT_SECONDS)
        assert (first["id"], first["first"]) == (sent, True)
        doomed.kill()
    assert stage.unfinished() == 1
    with stage.worker():
        (second,) = stage.reports.until(lambda seen: len(seen) >= 1, WAIT_SECONDS)
        assert (second["id"], second["first"]) == (sent, False)
        stage.wait_until_done()
