"""Members of an etcd as children of this process: found, configured, started, waited for and stopped.

Children are not bound to an event loop; only waiting for them is.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import signal
import ssl
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PROGRAM_VARIABLE = "PENSTOCK_ETCD"
READY_SECONDS = 15.0
STOP_SECONDS = 2.0
_LOOK_SECONDS = 0.02
_PLACES = ("/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/etcd")
_SHOWN_LOG_LINES = 5
_LEADER = re.compile(rb'"leader": *"[1-9]')


class EtcdMissingError(Exception):
    """etcd is not installed on this machine."""


class EtcdFailedError(Exception):
    """etcd ended, or is not ready in time; the message has its last log lines."""


def find_etcd() -> Path:
    """The program: `PENSTOCK_ETCD`, else on the path, else where packages install it."""
    named = os.environ.get(PROGRAM_VARIABLE)
    found = (
        shutil.which(named) if named else shutil.which("etcd") or shutil.which("etcd", path=":".join(_PLACES))
    )
    if found is None:
        said = f"{PROGRAM_VARIABLE}={named} is not a program" if named else "there is no etcd on this machine"
        raise EtcdMissingError(
            f"{said}: run scripts/system-packages, or install it (Debian and Ubuntu: apt-get install etcd-server), "
            f"or name the program with {PROGRAM_VARIABLE}"
        )
    return Path(found)


@dataclass(frozen=True)
class MemberTls:
    """PEM files of a member that uses TLS, with its clients or with the other members.

    Its certificate must be valid for servers and for clients, because etcd's gateway presents it to the member itself.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """If given, clients must present a certificate that this authority signed."""

    def options(self, side: Literal["", "peer-"] = "") -> list[str]:
        """For the command line: about clients, or about the other members."""
        return [
            *(f"--{side}cert-file", str(self.certificate), f"--{side}key-file", str(self.key)),
            *(
                (f"--{side}client-cert-auth", f"--{side}trusted-ca-file", str(self.client_ca))
                if self.client_ca is not None
                else ()
            ),
        ]


@dataclass(frozen=True)
class EtcdMember:
    """The options of one member."""

    name: str
    directory: Path
    """Its data and its log are in here."""
    client_port: int
    peer_port: int
    peers: str
    """All members, as etcd's `--initial-cluster`."""
    host: str = "127.0.0.1"
    heartbeat_ms: int = 100
    election_ms: int = 1_000
    compacted_after: str = "1h"
    """For how long a disconnected watch can continue where it stopped."""
    client_tls: MemberTls | None = None
    peer_tls: MemberTls | None = None
    """TLS with the other members: a client that can act as a member can write anything."""
    more: tuple[str, ...] = ()
    """Further options of etcd."""
    before: tuple[str, ...] = ()
    """A command that runs the rest of its line in its place, as `setpriv` or `ip netns exec NAME` do."""

    @property
    def address(self) -> str:
        """The address in the URL of a store."""
        return f"{self.host}:{self.client_port}"

    def command(self, program: Path) -> list[str]:
        """The command line; a member that was started before continues with its data."""
        client = f"{'http' if self.client_tls is None else 'https'}://{self.address}"
        peer = f"{'http' if self.peer_tls is None else 'https'}://{self.host}:{self.peer_port}"
        return [
            *self.before,
            str(program),
            *("--name", self.name, "--data-dir", str(self.directory / "data")),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", self.peers, "--initial-cluster-state", "new"),
            *("--heartbeat-interval", str(self.heartbeat_ms), "--election-timeout", str(self.election_ms)),
            *("--auto-compaction-mode", "periodic", "--auto-compaction-retention", self.compacted_after),
            *("--logger", "zap", "--log-outputs", "stderr"),
            *(self.client_tls.options() if self.client_tls is not None else ()),
            *(self.peer_tls.options("peer-") if self.peer_tls is not None else ()),
            *self.more,
        ]


def _health_context(tls: MemberTls | None) -> ssl.SSLContext | None:
    """For health checks of the own child, with its own certificate; nothing secret is sent."""
    if tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(tls.certificate, tls.key)
    return context


def _environment() -> dict[str, str]:
    """The environment without etcd's own variables, which would override the defaults of missing options."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}
    # Before 3.5 etcd refuses to run on ARM without this variable.
    return {**kept, "ETCD_UNSUPPORTED_ARCH": "arm64"} if platform.machine() == "aarch64" else kept


class EtcdProcess:
    """One member as a child."""

    def __init__(self, member: EtcdMember, program: Path | None = None) -> None:
        self.member = member
        self._program = program if program is not None else find_etcd()
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def log_file(self) -> Path:
        """The path of etcd's log."""
        return self.member.directory / "etcd.log"

    @property
    def process_id(self) -> int | None:
        """None while it does not run."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    def start(self) -> int:
        """Starts it in a separate session: an interrupt from the keyboard is for this process, which then stops etcd.

        Returns the process id. The program may have ended already; its id is not given to another process before
        `process_id` or `signal` has checked it.
        """
        self.member.directory.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            self._child = subprocess.Popen(
                self.member.command(self._program),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.member.directory,
                env=_environment(),
                start_new_session=True,
            )
        return self._child.pid

    async def ready(self, seconds: float = READY_SECONDS) -> None:
        """Returns when it answers and has a leader; raises `EtcdFailedError`."""
        deadline = time.monotonic() + seconds
        while not await self.healthy():
            if self.process_id is None:
                raise EtcdFailedError(f"etcd {self.member.name} has ended: {self._last_words()}")
            if time.monotonic() > deadline:
                raise EtcdFailedError(
                    f"etcd {self.member.name} is not ready after {seconds:g} s: {self._last_words()}"
                )
            await asyncio.sleep(_LOOK_SECONDS)

    async def healthy(self) -> bool:
        """Whether it answers now and has a leader."""
        try:
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection(
                    self.member.host, self.member.client_port, ssl=_health_context(self.member.client_tls)
                )
                try:
                    # Not /health, which reads: a read before there is a leader holds up those after it.
                    head = f"POST /v3/maintenance/status HTTP/1.0\r\nHost: {self.member.address}\r\n"
                    writer.write(f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
                    return _LEADER.search(await reader.read()) is not None
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, if the child runs; after SIGKILL it is gone when this returns."""
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)
            if number == signal.SIGKILL:
                self._child.wait()

    def ask_to_stop(self) -> None:
        """Begins to end it, in order."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ends it, in order if it does so in time; waits until it is gone."""
        self.ask_to_stop()
        if self._child is not None:
            try:
                self._child.wait(max(seconds, 0))
            except subprocess.TimeoutExpired:
                # It waits for open streams of clients; everything that it has acknowledged is on its disk.
                self.signal(signal.SIGKILL)

    def _last_words(self) -> str:
        try:
            lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            return str(error)
        return " | ".join(lines[-_SHOWN_LOG_LINES:]) or "it logged nothing"
