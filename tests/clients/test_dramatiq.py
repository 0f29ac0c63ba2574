"""dramatiq-sqs with a real worker: messages, a retry, a delayed message."""

from __future__ import annotations

import uuid
from pathlib import Path

import boto3
import pytest

from tests.clients.environments import PROGRAMS, Environments, client_variables, run_for_json
from tests.clients.server import Endpoint
from tests.clients.workers import Reports, working

MESSAGES = 50
DELAYED = 1000
EVENTS = MESSAGES + 1 + 2
WAIT_SECONDS = 300


@pytest.mark.slow
def test_actors_run_fail_and_run_again(
    environments: Environments, sqs_endpoint: Endpoint, tmp_path: Path
) -> None:
    prefix = f"dramatiq-{uuid.uuid4().hex[:8]}"
    reports = Reports(tmp_path / "reports")
    variables = client_variables(sqs_endpoint) | {
        "QUEUE_PREFIX": prefix,
        "REPORTS": reports.path,
        "PYTHONPATH": str(PROGRAMS),
    }
    program = str(environments.program("current", "dramatiq"))
    python = str(environments.program("current", "python"))
    command = [program, "dramatiq_app", "--processes", "1", "--threads", "2"]
    with working(command, variables, tmp_path / "worker.log"):
        application = [python, str(PROGRAMS / "dramatiq_app.py"), str(MESSAGES), str(tmp_path / "mark")]
        run_for_json(application, variables)
        events = reports.until(lambda seen: len(seen) >= EVENTS, WAIT_SECONDS)
    reports.close()
    numbers = sorted(event["number"] for event in events if event["actor"] == "count")
    assert numbers == [*range(MESSAGES), DELAYED]
    assert [event["first"] for event in events if event["actor"] == "stumble"] == [True, False]

    sqs = boto3.client("sqs", **sqs_endpoint.boto_options())
    urls = sqs.list_queues(QueueNamePrefix=prefix)["QueueUrls"]
    for url in urls:
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        kinds = ("", "NotVisible", "Delayed")
        assert sum(int(found[f"ApproximateNumberOfMessages{kind}"]) for kind in kinds) == 0, url
    assert any("dlq" in url for url in urls)
    sqs.close()
