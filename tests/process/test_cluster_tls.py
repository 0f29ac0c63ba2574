"""A cluster whose processes speak TLS: everything works, strangers are refused and end at once, certificates are renewed."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.runtime.local_cluster.certificates import CertificateFiles, ThrowAwayAuthority
from penstock.runtime.local_cluster.running import Running, tell
from tests.ports import base_port
from tests.process.local_cluster import ClusterUp
from tests.process.programs import PENSTOCK, environment, soon

SECONDS = 300
"""A start that is refused ends at once; loading Python takes a while where many do so."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterUp]:
    place = tmp_path_factory.mktemp("tls")
    up = ClusterUp(
        place / "cluster",
        *("--nodes", "2", "--frontends", "1", "--metadata", "1", "--base-port", base_port(), "--tls"),
    )
    yield up
    up.kill()


def told(cluster: ClusterUp, name: str) -> Path:
    """The configuration file of a process."""
    return cluster.data / name / "penstock.toml"


def log(cluster: ClusterUp, name: str) -> str:
    return (cluster.data / name / "log").read_text()


def ports(cluster: ClusterUp, name: str) -> dict[str, int]:
    state = json.loads((cluster.data / "cluster.json").read_text())
    (found,) = [one for one in state["plan"]["processes"] if one["name"] == name]
    listening: dict[str, int] = found["ports"]
    return listening


def run(*arguments: str, **variables: str) -> tuple[int, str]:
    """A command that must not run on: its exit code, and what it complains of."""
    done = subprocess.run(
        [*PENSTOCK, *arguments], capture_output=True, env=environment(**variables), timeout=SECONDS
    )
    return done.returncode, " ".join(done.stderr.decode().split())


def options(files: CertificateFiles) -> tuple[str, ...]:
    return (
        *("--tls-certificate", str(files.certificate), "--tls-key", str(files.key)),
        *("--tls-ca", str(files.authority)),
    )


def test_messages_are_sent_replicated_and_received(cluster: ClusterUp) -> None:
    assert cluster.facts["etcd_url"].startswith("etcds://")
    # Through HAProxy, which passes on what it cannot read.
    assert cluster.facts["url"].startswith("penstocks://127.0.0.1:")
    with penstock.connect_blocking(cluster.facts["url"]) as connection:
        queue = connection.create_queue("orders", replicas=2)
        for number in range(20):
            queue.send(b"%d" % number)
        received = queue.receive(100, wait=10)
        assert received
    soon(cluster.well, SECONDS)
    row = cluster.partition()
    assert sorted(row["in_sync"]) == ["node-1", "node-2"]
    for name in (
        "node-1",
        "node-2",
        "frontend-1",
    ):  # nobody was refused, `cluster status` neither, nor HAProxy
        assert "refused" not in log(cluster, name)


def test_clients_are_spoken_to_over_tls_and_not_otherwise(cluster: ClusterUp) -> None:
    place = cluster.facts["url"].partition("://")[2].partition("?")[0]
    with pytest.raises(penstock.PenstockError, match="this server uses TLS: connect with penstocks://"):
        penstock.connect_blocking(f"penstock://{place}", timeout=SECONDS)
    with pytest.raises(penstock.PenstockError, match="is not trusted"):
        penstock.connect_blocking(f"penstocks://{place}", timeout=SECONDS)


STARTS: dict[str, tuple[str, ...]] = {
    "node-1": (
        *("node", "run", "--name", "node-9", "--listen", "127.0.0.1:0", "--peers-listen", "127.0.0.1:0"),
        *("--monitoring-listen", "off", "--reader-listen", "off"),
    ),
    "frontend-1": ("frontend", "--sqs-listen", "127.0.0.1:0", "--native-listen", "127.0.0.1:0"),
    "metadata-1": ("metadata", "--listen", "127.0.0.1:0", "--name", "metadata-9"),
}


@pytest.mark.parametrize("like", STARTS)
def test_whoever_starts_with_another_secret_or_certificate_ends_at_once(
    cluster: ClusterUp, like: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("this is not the secret of that cluster")
    start = (*STARTS[like], "--config", str(told(cluster, like)))
    elsewhere = {"PENSTOCK_STORAGE_DIRECTORY": str(tmp_path / "data")}
    code, said = run(*start, "--secret-file", str(secret), **elsewhere)
    assert code == 2, said
    by_seals = "sealed with another secret than this process has"
    assert "it does not accept our proof of the cluster's secret" in said or by_seals in said
    strange = ThrowAwayAuthority(tmp_path / "strange").files("node-9")
    code, said = run(*start, *options(strange), **elsewhere)
    assert code == 2, said
    assert "its certificate is not signed by the cluster's authority" in said
    # One who trusts the cluster and is not trusted by it.
    own = cluster.data / "tls" / "ca.pem"
    both = tmp_path / "both.pem"
    both.write_bytes(own.read_bytes() + strange.authority.read_bytes())
    code, said = run(*start, *options(strange._replace(authority=both)), **elsewhere)
    assert code == 2, said
    assert "it does not accept our certificate" in said


def test_a_command_with_another_secret_ends_at_once(cluster: ClusterUp, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("this is not the secret of that cluster")
    code, said = run(
        *("user", "list"),
        PENSTOCK_CONFIG=str(told(cluster, "frontend-1")),
        PENSTOCK_CLUSTER_SECRET_FILE=str(secret),
    )
    assert code == 2, said
    assert "the metadata servers refuse this process" in said
    ours = ThrowAwayAuthority(cluster.data / "tls").files("operator")
    code, said = run(
        *("cluster", "status", "--etcd", cluster.facts["etcd_url"], "--secret-file", str(secret)),
        *options(ours),
    )
    assert code == 2, said
    assert "the nodes of this cluster refuse this process" in said


def knock_plainly(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain:
        plain.sendall(b"\x10\0\0\0 a frame, or nearly one")
        try:
            return plain.recv(1000)
        except ConnectionError:
            return b""


def knock_without_certificate(port: int, authority: Path) -> bytes:
    context = ssl.create_default_context(cafile=str(authority))
    context.check_hostname = False
    with (
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain,
        context.wrap_socket(plain) as secure,
    ):
        try:
            return secure.recv(1000)
        except (ssl.SSLError, ConnectionError):
            return b""


@pytest.mark.parametrize(
    ("name", "port"), [("node-1", "native"), ("node-1", "peers"), ("metadata-1", "listen")]
)
def test_strangers_hear_nothing_of_the_cluster_and_the_log_names_them(
    cluster: ClusterUp, name: str, port: str
) -> None:
    number = ports(cluster, name)[port]
    # TLS answers with an alert to those who do not speak it: a record of its own kind, and nothing of ours.
    assert knock_plainly(number)[:1] in (b"", b"\x15")
    assert knock_without_certificate(number, cluster.data / "tls" / "ca.pem") == b""
    where = {
        "native": "the native protocol",
        "peers": "the streams of nodes",
        "listen": "the metadata server",
    }
    for why in ("it does not use TLS", "it has no certificate"):
        line = f"refused 127.0.0.1, which connected to {where[port]}: {why}"
        soon(partial(_is_logged, cluster, name, line), SECONDS)


def _is_logged(cluster: ClusterUp, name: str, line: str) -> bool:
    return line in log(cluster, name)


def test_a_renewed_certificate_is_taken_over_without_a_restart(cluster: ClusterUp) -> None:
    authority = ThrowAwayAuthority(cluster.data / "tls")
    before = shown_by(cluster, "node-2")
    authority.renew("node-2")
    state = json.loads((cluster.data / "cluster.json").read_text())
    node = Running(**state["running"]["node-2"])
    assert tell(node, signal.SIGHUP)
    soon(lambda: "reloaded the certificate for the cluster" in log(cluster, "node-2"), SECONDS)
    after = shown_by(cluster, "node-2")
    assert before != after
    shutil.copy(cluster.data / "tls" / "node-1.key", cluster.data / "tls" / "node-2.key")
    assert tell(node, signal.SIGHUP)
    soon(
        lambda: (
            "could not reload the certificate for the cluster; the old one stays in use"
            in log(cluster, "node-2")
        ),
        SECONDS,
    )
    assert shown_by(cluster, "node-2") == after
    authority.renew("node-2")


def shown_by(cluster: ClusterUp, name: str) -> Any:
    """The certificate that a process shows."""
    ours = ThrowAwayAuthority(cluster.data / "tls").files("operator")
    context = ssl.create_default_context(cafile=str(ours.authority))
    context.check_hostname = False
    context.load_cert_chain(ours.certificate, ours.key)
    with (
        socket.create_connection(("127.0.0.1", ports(cluster, name)["native"]), timeout=SECONDS) as plain,
        context.wrap_socket(plain) as secure,
    ):
        return secure.getpeercert(binary_form=True)


def test_a_configuration_is_checked_with_its_certificates(tmp_path: Path) -> None:
    own = ThrowAwayAuthority(tmp_path / "own").files("node-1")
    strange = ThrowAwayAuthority(tmp_path / "strange").files("node-1")
    file = tmp_path / "node.toml"

    def checked(authority: Path | None) -> tuple[int, str]:
        last = f'tls_ca = "{authority}"' if authority is not None else ""
        file.write_text(
            f'[cluster]\nname = "node-1"\ntls_certificate = "{own.certificate}"\ntls_key = "{own.key}"\n{last}\n'
        )
        return run("check-config", str(file), "--role", "node")

    assert checked(own.authority) == (0, "")
    code, said = checked(None)
    assert (code, "cluster.tls_ca: is missing; cluster.tls_certificate needs it" in said) == (1, True), said
    code, said = checked(strange.authority)
    assert code == 1
    assert "would be refused by the cluster's authority" in said
    own.key.unlink()
    code, said = checked(own.authority)
    assert (code, "does not exist" in said) == (1, True), said
