"""The AWS command line: a session at the shell as AWS's own guide has it."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.clients.environments import Environments, client_variables
from tests.clients.server import Endpoint

pytestmark = pytest.mark.slow

COMMAND_SECONDS = 300


class Shell:
    """Runs `aws sqs ...` commands."""

    def __init__(self, environments: Environments, endpoint: Endpoint) -> None:
        self._program = str(environments.program("current", "aws"))
        self._endpoint = endpoint

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command, whatever comes of it."""
        return subprocess.run(
            [self._program, "--endpoint-url", self._endpoint.url, "sqs", *arguments],
            env=client_variables(self._endpoint) | {"AWS_PAGER": "", "AWS_MAX_ATTEMPTS": "1"},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )

    def __call__(self, *arguments: str) -> Any:
        """Runs a command that must succeed; returns what it printed as JSON."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"aws sqs {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout) if done.stdout.strip() else None


@pytest.fixture
def aws(environments: Environments, guarded_endpoint: Endpoint) -> Shell:
    return Shell(environments, guarded_endpoint)


def test_a_session_at_the_shell(aws: Shell, tmp_path: Path) -> None:
    name = f"shell-{uuid.uuid4().hex[:12]}"
    url = aws("create-queue", "--queue-name", name, "--attributes", "DelaySeconds=0")["QueueUrl"]
    here = ("--queue-url", url)
    assert aws("list-queues", "--queue-name-prefix", name) == {"QueueUrls": [url]}
    assert aws("get-queue-url", "--queue-name", name) == {"QueueUrl": url}

    attributes = tmp_path / "attributes.json"
    attributes.write_text(json.dumps({"City": {"DataType": "String", "StringValue": "Any City"}}))
    sent = aws(
        "send-message", *here, "--message-body", "hello", "--message-attributes", f"file://{attributes}"
    )
    assert sent["MD5OfMessageBody"] == "5d41402abc4b2a76b9719d911017c592"
    (message,) = aws(
        *("receive-message", *here, "--attribute-names", "All", "--message-attribute-names", "All"),
        *("--max-number-of-messages", "10", "--wait-time-seconds", "5"),
    )["Messages"]
    assert (message["MessageId"], message["Body"]) == (sent["MessageId"], "hello")
    assert message["MessageAttributes"]["City"]["StringValue"] == "Any City"
    handle = ("--receipt-handle", message["ReceiptHandle"])
    assert aws("change-message-visibility", *here, *handle, "--visibility-timeout", "60") is None
    assert aws("delete-message", *here, *handle) is None

    entries = json.dumps([{"Id": str(number), "MessageBody": f"body {number}"} for number in range(3)])
    assert len(aws("send-message-batch", *here, "--entries", entries)["Successful"]) == 3
    assert aws("set-queue-attributes", *here, "--attributes", "VisibilityTimeout=90") is None
    found = aws("get-queue-attributes", *here, "--attribute-names", "All")["Attributes"]
    assert (found["VisibilityTimeout"], found["ApproximateNumberOfMessages"]) == ("90", "3")
    assert aws("tag-queue", *here, "--tags", "Stage=Test,Team=Coffee") is None
    assert aws("list-queue-tags", *here) == {"Tags": {"Stage": "Test", "Team": "Coffee"}}
    assert aws("purge-queue", *here) is None
    assert aws("receive-message", *here) is None
    assert aws("delete-queue", *here) is None


def test_errors_reach_the_person(aws: Shell) -> None:
    done = aws.run("get-queue-url", "--queue-name", "never-made")
    assert done.returncode != 0
    assert "AWS.SimpleQueueService.NonExistentQueue" in done.stderr
    assert "The specified queue does not exist" in done.stderr
    assert "GetQueueUrl" in done.stderr
