"""`docs/guide/sqs.md` does what it says: every snippet on the page is run against a real server."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from tests.clients.environments import NODE_PROGRAMS, Environments, client_variables
from tests.clients.server import Endpoint, served

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "sqs.md"
ADDRESS = "127.0.0.1:9324"
SECONDS = 300


@pytest.fixture(scope="module")
def fresh_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A server of its own, because the page has names of its own."""
    with served(tmp_path_factory.mktemp("guide")) as url:
        yield Endpoint(url)


def snippets(kind: str, endpoint: Endpoint) -> list[str]:
    """The snippets of one kind, with the address of the server under test."""
    text = GUIDE.read_text(encoding="utf-8")
    found = re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, kind
    return [snippet.replace(ADDRESS, endpoint.url.removeprefix("http://")) for snippet in found]


def run(command: list[str], directory: Path, variables: dict[str, str], text: str = "") -> str:
    done = subprocess.run(
        command, cwd=directory, env=variables, input=text, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def waiting(endpoint: Endpoint, name: str) -> str:
    sqs = boto3.client("sqs", **endpoint.boto_options())
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    count = "ApproximateNumberOfMessages"
    found = str(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[count])["Attributes"][count])
    sqs.close()
    return found


def test_the_boto3_snippets_run_from_top_to_bottom(
    fresh_endpoint: Endpoint, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in client_variables(fresh_endpoint).items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it remembers the keys it found first
    namespace: dict[str, object] = {}
    for snippet in snippets("python", fresh_endpoint):
        exec(compile(snippet, str(GUIDE), "exec"), namespace)
    assert capsys.readouterr().out.splitlines() == ["one espresso 7", "The specified queue does not exist."]
    assert waiting(fresh_endpoint, "payments.fifo") == "2"
    assert waiting(fresh_endpoint, "urgent") == "1"


@pytest.mark.slow
def test_the_shell_snippets_run(environments: Environments, fresh_endpoint: Endpoint, tmp_path: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    bin_directory = environments.program("current", "aws").parent
    variables["PATH"] = f"{bin_directory}:{variables['PATH']}"
    variables["AWS_CONFIG_FILE"] = variables["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
    script = "\n".join(["set -euo pipefail", *snippets("sh", fresh_endpoint)])
    assert "number 1" in run(["bash", "-s"], tmp_path, variables, script)


@pytest.mark.slow
def test_the_celery_application_sends_its_task(
    environments: Environments, fresh_endpoint: Endpoint, tmp_path: Path
) -> None:
    (tmp_path / "tasks.py").write_text(*snippets("python tasks", fresh_endpoint))
    python = str(environments.program("current", "python"))
    send = "from tasks import add; add.delay(2, 3)"
    run([python, "-c", send], tmp_path, client_variables(fresh_endpoint))
    assert waiting(fresh_endpoint, "celery") == "1"


@pytest.mark.slow
def test_the_dramatiq_actor_sends_its_message(
    environments: Environments, fresh_endpoint: Endpoint, tmp_path: Path
) -> None:
    (tmp_path / "actors.py").write_text(*snippets("python dramatiq", fresh_endpoint))
    run(
        [str(environments.program("current", "python")), "actors.py"],
        tmp_path,
        client_variables(fresh_endpoint),
    )
    assert waiting(fresh_endpoint, "default") == "1"


@pytest.mark.slow
def test_the_javascript_snippet_runs(environments: Environments, fresh_endpoint: Endpoint) -> None:
    (snippet,) = snippets("javascript", fresh_endpoint)
    command = [str(environments.node), "--input-type=module"]
    # Modules are looked for from the directory in which Node runs.
    assert "hello" in run(command, NODE_PROGRAMS, client_variables(fresh_endpoint), snippet)
