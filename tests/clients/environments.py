"""Runs programs inside the environments that `scripts/client-environments` builds."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.clients.server import Endpoint

PROGRAMS = Path(__file__).parent / "programs"
NODE_PROGRAMS = Path(__file__).parent / "node"
PROGRAM_SECONDS = 300


class Environments:
    """Where each kind of client is installed, and how a program is run there."""

    def __init__(self, root: Path) -> None:
        self._root = root / ".venv-clients"

    def program(self, environment: str, name: str) -> Path:
        """A program that a package of the environment brought, such as `aws`."""
        return self._root / environment / "bin" / name

    @property
    def node(self) -> Path:
        """The JavaScript engine."""
        return self._root / "current" / "lib" / "node" / "bin" / "node"

    @property
    def query_models(self) -> Path:
        """The service models of the boto3 that speaks the Query protocol."""
        (models,) = (self._root / "query" / "lib").glob("python3*/site-packages/botocore/data")
        return models

    def run_python(self, environment: str, program: str, endpoint: Endpoint) -> Any:
        """Runs one of our small programs; returns what it printed as JSON."""
        return run_for_json(
            [str(self.program(environment, "python")), str(PROGRAMS / program)], client_variables(endpoint)
        )

    def run_node(self, program: str, endpoint: Endpoint) -> Any:
        """Runs one of our small JavaScript programs; returns what it printed as JSON."""
        return run_for_json([str(self.node), str(NODE_PROGRAMS / program)], client_variables(endpoint))


def client_variables(endpoint: Endpoint) -> dict[str, str]:
    """The environment variables that every AWS client knows, and nothing of this machine's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
    return kept | {
        "AWS_ENDPOINT_URL_SQS": endpoint.url,
        "AWS_ACCESS_KEY_ID": endpoint.access_key,
        "AWS_SECRET_ACCESS_KEY": endpoint.secret,
        "AWS_DEFAULT_REGION": endpoint.region,
        "AWS_REGION": endpoint.region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PENSTOCK_SQS_ENDPOINT": endpoint.url,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run_for_json(command: list[str], variables: dict[str, str]) -> Any:
    """Runs a program that must succeed and print one JSON document."""
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=PROGRAM_SECONDS)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)
