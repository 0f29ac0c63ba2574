"""A server process to be fuzzed: `penstock serve` with two users, and what the kernel says of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from benchmarks.processes import Child
from tests.fuzz.in_process import READER_POLICY
from tests.fuzz.signing import Credentials

_START_SECONDS = 60.0


@dataclass(frozen=True)
class FuzzedServer:
    """Where it listens, and who may ask."""

    child: Child
    host: str
    port: int
    signers: list[Credentials]
    log: Path

    @property
    def defects(self) -> str:
        """What it logged of its own defects."""
        text = self.log.read_text(errors="replace")
        return text if "defect" in text or "Traceback" in text else ""


@contextmanager
def fuzzed_server(directory: Path) -> Iterator[FuzzedServer]:
    """A server over an empty directory."""
    data, policy, log = directory / "data", directory / "policy.json", directory / "log"
    policy.write_text(READER_POLICY)
    settings = directory / "penstock.toml"
    settings.write_text(
        'sqs.failed_signatures = "off"\n'
    )  # most of what is sent fails, and is to be looked at
    signers = [
        _user(data, "admin", "--root"),
        _user(data, "reader", "--policy", str(policy)),
    ]
    command = [sys.executable, "-m", "penstock.cli.main", "serve", "--data", str(data), "--json"]
    command += [
        "--listen",
        "127.0.0.1:0",
        "--sqs-listen",
        "127.0.0.1:0",
        "--monitoring-listen",
        "off",
        "--log-level",
        "warning",
    ]
    command += ["--config", str(settings)]
    with Child(command, log=log) as child:
        address = urlsplit(msgspec.json.decode(child.line(_START_SECONDS))["sqs_url"])
        assert address.hostname is not None
        assert address.port is not None
        yield FuzzedServer(child, address.hostname, address.port, signers, log)


def _user(data: Path, name: str, *arguments: str) -> Credentials:
    command = [
        sys.executable,
        "-m",
        "penstock.cli.main",
        "user",
        "create",
        name,
        "--data",
        str(data),
        "--json",
    ]
    made = subprocess.run([*command, *arguments], check=True, capture_output=True)
    key = msgspec.json.decode(made.stdout)["access_key"]
    return Credentials(key["key_id"], key["secret"])
