"""The boto3 tests once more, inside the environment of a boto3 that speaks the Query protocol with XML answers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.clients.environments import Environments, client_variables
from tests.clients.server import Endpoint

TESTS = Path(__file__).parent / "python_sdk"
SECONDS = 600


@pytest.mark.slow
def test_an_old_boto3_can_do_everything_over_the_query_protocol(
    environments: Environments, guarded_endpoint: Endpoint
) -> None:
    python = str(environments.program("query", "python"))
    variables = client_variables(guarded_endpoint)
    asked = "import boto3; print(boto3.client('sqs').meta.service_model.metadata['protocol'])"
    protocol = subprocess.run(
        [python, "-c", asked], env=variables, capture_output=True, text=True, check=True
    )
    assert protocol.stdout.strip() == "query"
    # Apart from the rest of the suite: no configuration and no conftest of ours but the folder's own.
    options = ["-q", "-c", "/dev/null", "--rootdir", str(TESTS), "--confcutdir", str(TESTS)]
    options += ["--import-mode=importlib", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [python, "-m", "pytest", *options, str(TESTS)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
