"""`penstock serve` with a certificate for native clients, as a process of its own, and everybody who connects to it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.runtime.local_cluster.certificates import CertificateFiles, ThrowAwayAuthority
from tests.process.programs import PENSTOCK, Program, client, environment, server, soon

SECONDS = 300


class Served:
    """The server, and what clients need to know of it."""

    def __init__(self, directory: Path) -> None:
        self.authority = ThrowAwayAuthority(directory / "authority")
        self.files: CertificateFiles = self.authority.files("server")
        self.directory = directory
        self.program: Program = server(
            directory,
            *("--native-tls-certificate", str(self.files.certificate)),
            *("--native-tls-key", str(self.files.key)),
        )
        self.bare_url = str(self.program.facts["url"])
        self.url = f"{self.bare_url}?ca={self.files.authority}"

    def command(self, *arguments: str, url: str | None = None, **variables: str) -> tuple[int, str, str]:
        """A command for the server: its exit code, what it prints, and what it complains of."""
        done = subprocess.run(
            [*PENSTOCK, *arguments],
            capture_output=True,
            env=environment(PENSTOCK_URL=url or self.url, **variables),
            timeout=SECONDS,
        )
        return done.returncode, done.stdout.decode(), " ".join(done.stderr.decode().split())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(tmp_path_factory.mktemp("native-tls"))
    yield found
    found.program.stop()


def test_both_clients_and_the_commands_use_it(served: Served) -> None:
    assert served.bare_url.startswith("penstocks://127.0.0.1:")

    async def talk() -> None:
        async with penstock.connect(served.url) as connection:
            queue = await connection.create_queue("orders")
            await queue.send(b"from the async client")

    asyncio.run(talk())
    with penstock.connect_blocking(served.bare_url, ca=served.files.authority) as connection:
        connection.queue("orders").send(b"from the blocking client")
    assert served.command("send", "orders", "from the command line")[0] == 0
    only_named = {"url": served.bare_url, "PENSTOCK_CA": str(served.files.authority)}
    code, printed, complaint = served.command("receive", "orders", "--max", "3", "--json", **only_named)
    assert code == 0, complaint
    found = [json.loads(line)["body"] for line in printed.splitlines()]
    assert found == ["from the async client", "from the blocking client", "from the command line"]
    assert "refused" not in served.program.log()  # commands do not knock and run away


def test_commands_say_what_is_wrong(served: Served, tmp_path: Path) -> None:
    code, _, said = served.command("queue", "list", url=served.bare_url)
    assert (code, "is not trusted" in said) == (1, True), said
    code, _, said = served.command("queue", "list", url=served.bare_url.replace("penstocks", "penstock"))
    assert (code, "connect with penstocks://" in said) == (2, True), said
    code, _, said = served.command("queue", "list", url=f"{served.bare_url}?ca={tmp_path / 'none'}")
    assert (code, "cannot be read: No such file" in said) == (2, True), said
    nobody = f"penstocks://127.0.0.1:1?ca={served.files.authority}"
    code, _, said = served.command("queue", "list", url=nobody)
    assert (code, "could not reach a server at 127.0.0.1:1" in said) == (5, True), said


def test_a_subscription_of_a_command_is_served(served: Served) -> None:
    assert served.command("queue", "create", "news", "--consumption", "log")[0] == 0
    with penstock.connect_blocking(served.url) as connection:
        connection.queue("news").send_batch([b"%d" % number for number in range(500)])
    code, printed, complaint = served.command(
        "tail", "news", "--from", "beginning", "--limit", "500", "--json"
    )
    assert code == 0, complaint
    assert [json.loads(line)["body"] for line in printed.splitlines()] == [str(n) for n in range(500)]


def test_a_front_end_of_its_own_asks_it_over_tls(served: Served) -> None:
    front = Program(
        served.directory,
        "frontend",
        *("frontend", "--backend", served.bare_url.partition("://")[2]),
        *("--backend-ca", str(served.files.authority)),
        *("--sqs-listen", "127.0.0.1:0", "--data", str(served.directory / "data")),
    )
    try:
        assert front.facts["backend_connected"]
        sqs = client(front.url)
        url = sqs.create_queue(QueueName="letters")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody="hello")
        assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "hello"
        front.stop()
    finally:
        front.kill()


def test_a_renewed_certificate_is_taken_over_without_a_restart(served: Served) -> None:
    served.authority.renew("server")
    os.kill(int(served.program.facts["process"]), signal.SIGHUP)
    soon(lambda: "reloaded the certificate for native clients" in served.program.log(), SECONDS)
    assert served.command("queue", "list")[0] == 0
    served.files.key.write_text("no key")
    os.kill(int(served.program.facts["process"]), signal.SIGHUP)
    soon(
        lambda: (
            "could not reload the certificate for native clients; the old one stays in use"
            in served.program.log()
        ),
        SECONDS,
    )
    assert served.command("queue", "list")[0] == 0
    served.authority.renew("server")


def test_a_configuration_is_checked_with_its_certificate(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    files = ThrowAwayAuthority(tmp_path / "own").files("server")
    file.write_text(f'[native]\ntls_certificate = "{files.certificate}"\ntls_key = "{files.key}"\n')
    assert served.command("check-config", str(file))[0] == 0
    files.key.unlink()
    code, _, said = served.command("check-config", str(file))
    assert (code, "native.tls_certificate: the key file" in said, "does not exist" in said) == (1, True, True)
    file.write_text(f'[frontend]\nbackend_ca = "{tmp_path / "none.pem"}"\n')
    code, _, said = served.command("check-config", str(file), "--role", "frontend")
    assert (code, "frontend.backend_ca: the authority file" in said) == (1, True), said
