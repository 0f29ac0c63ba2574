"""Penstock's programs as processes of their own, as an operator starts them, and SQS clients for them."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from tests.process.server import SMALL_FILES

START_SECONDS = 300
STOP_SECONDS = 60
PENSTOCK = (sys.executable, "-m", "penstock.cli.main")
SOON_SECONDS = 60.0
"""A change of users, limits or queues must be known everywhere by then. It takes a tenth of a second, but a test that
fails because the machine is busy tells nobody anything."""


def environment(**settings: str) -> dict[str, str]:
    """Ours, without what it may say to Penstock."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return own | SMALL_FILES | settings


def penstock(*arguments: str) -> dict[str, Any]:
    """Runs a command to its end; what it says with `--json`."""
    done = subprocess.run([*PENSTOCK, *arguments, "--json"], capture_output=True, env=environment())
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(lines[0]) if lines else {}
    return found


def refusal(*arguments: str) -> str:
    """Runs a command that must fail; what it says."""
    done = subprocess.run(
        [*PENSTOCK, *arguments], capture_output=True, env=environment(), timeout=START_SECONDS
    )
    assert done.returncode != 0
    return " ".join(done.stderr.decode().split())


def create_user(data: Path, name: str, *options: str) -> tuple[str, str]:
    """A user, and the key and secret that the command shows."""
    key = penstock("user", "create", name, *options, "--data", str(data))["access_key"]
    return key["key_id"], key["secret"]


class Program:
    """A program that serves; it must end well, unless it is killed."""

    def __init__(self, directory: Path, name: str, *arguments: str, **settings: str) -> None:
        self._asked = False
        self._log = directory / f"{name}-{time.monotonic_ns()}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*PENSTOCK, *arguments, "--json"],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(**settings),
            )
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        line = self._process.stdout.readline() if readable else b""
        assert line, f"{name} did not start: {self.log()}"
        self.facts: dict[str, Any] = json.loads(line)

    @property
    def url(self) -> str:
        """Where SQS clients connect."""
        return str(self.facts["sqs_url"])

    def log(self) -> str:
        """What it has logged so far."""
        return self._log.read_text()

    def ask_to_stop(self) -> None:
        """Returns before it has; asking twice would be an order."""
        if not self._asked and self._process.poll() is None:
            self._asked = True
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Asks it to stop; it must, and say that all is well."""
        self.ask_to_stop()
        assert self._process.wait(STOP_SECONDS) == 0, self.log()
        self._close()

    def kill(self) -> None:
        """Ends it without last words, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._close()

    def _close(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()


def server(directory: Path, *options: str, listen: str = "127.0.0.1:0", **settings: str) -> Program:
    """`penstock serve` with the directory's data."""
    fixed = (
        "--listen",
        listen,
        "--sqs-listen",
        "127.0.0.1:0",
        "--monitoring-listen",
        "127.0.0.1:0",
        "--data",
        str(directory / "data"),
    )
    return Program(directory, "serve", "serve", *fixed, *options, **settings)


def front_end(directory: Path, backend: str, data: str = "front", **settings: str) -> Program:
    """`penstock frontend`; all of one directory share their metadata."""
    fixed = ("--backend", backend, "--sqs-listen", "127.0.0.1:0", "--data", str(directory / data))
    return Program(directory, "frontend", "frontend", *fixed, **settings)


def client(url: str, key: tuple[str, str] = ("any", "thing"), *, attempts: int = 1, **options: Any) -> Any:
    """boto3, which tries so often."""
    config = Config(
        retries={"total_max_attempts": attempts, "mode": "standard"},
        connect_timeout=5,
        read_timeout=30,
        parameter_validation=False,
    )
    names = {"aws_access_key_id": key[0], "aws_secret_access_key": key[1], "region_name": "us-east-1"}
    return boto3.client("sqs", endpoint_url=url, config=config, **(names | options))


def post(url: str, action: str, **members: Any) -> tuple[int, dict[str, Any]]:
    """An unsigned call over a connection of its own: status and members."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=100)
    try:
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"}
        connection.request("POST", "/", json.dumps(members), headers)
        answer = connection.getresponse()
        body = answer.read()
        return answer.status, json.loads(body) if body else {}
    finally:
        connection.close()


def soon(holds: Callable[[], bool], seconds: float = SOON_SECONDS) -> None:
    """Asks again and again, and fails when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s"


class Raw:
    """A connection that says what it is told, and reads answers one by one."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=100)
        self._file = self.socket.makefile("rb")

    def ask(self, action: str, **members: Any) -> None:
        """Sends a call in JSON, unsigned; does not wait for the answer."""
        body = json.dumps(members).encode()
        head = (
            "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-amz-json-1.0\r\n"
            f"X-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.socket.sendall(head.encode() + body)

    def answer(self) -> tuple[int, dict[str, Any]] | None:
        """The next answer; None where the connection was closed instead, between answers."""
        try:
            line = self._file.readline()
        except ConnectionResetError:
            line = b""
        if not line:
            return None
        length = 0
        while (header := self._file.readline().strip()) != b"":
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = self._file.read(length)
        assert len(body) == length, "an answer was cut off"
        return int(line.split()[1]), json.loads(body) if body else {}

    def close(self) -> None:
        """Goes away without a word."""
        self._file.close()
        self.socket.close()
