"""The directory of a local cluster: its state file, by which every command finds the processes, and a place for each.

DIR/cluster.json      the plan, and the running processes
DIR/secret            the secret that the processes of the cluster share
DIR/tls/              a temporary authority and certificates, if the processes use TLS
DIR/etcd-tls/         the same for etcd alone, if they do not
DIR/node-1/           penstock.toml, log, ready.json, data/
DIR/etcd/             etcd's data and log
DIR/balancer/         haproxy.cfg, log
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from penstock.cluster.local.local_plan import ClusterPlan
from penstock.model.document import Document, DocumentReader, TooOldError
from penstock.runtime.local_cluster.full_disk import why_not_written
from penstock.runtime.local_cluster.running import Running, is_alive

STATE_VERSION = 1
SECRET_BYTES = 32
_PRIVATE = 0o600


class DirectoryError(Exception):
    """The directory cannot be used; the message says why and what to do."""


class ClusterState(Document, frozen=True, kw_only=True):
    """The contents of the state file."""

    version: int = STATE_VERSION
    plan: ClusterPlan
    running: dict[str, Running] = msgspec.field(default_factory=dict)
    """Every process that was started and not stopped; it may have died."""
    sealed: bool = False
    """Whether everything in its own etcd was written under seals, or sealed when it was brought up."""
    watcher: Running | None = None
    """The `cluster up` that stays in the foreground."""

    def is_up(self, name: str) -> bool:
        """Whether a process runs right now."""
        return name in self.running and is_alive(self.running[name])

    @property
    def up(self) -> list[str]:
        """The names of all that run right now, in the order of the plan."""
        return [one.name for one in self.plan.processes if self.is_up(one.name)]

    @property
    def is_watched(self) -> bool:
        """Whether a `cluster up` is in the foreground somewhere."""
        return self.watcher is not None and is_alive(self.watcher)


_states: DocumentReader[ClusterState] = DocumentReader(ClusterState)


class ClusterDirectory:
    """The directory of a local cluster, or of one to be created."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def state_file(self) -> Path:
        """The plan, and who runs."""
        return self.path / "cluster.json"

    @property
    def secret_file(self) -> Path:
        """The file of the cluster's secret."""
        return self.path / "secret"

    @property
    def certificates(self) -> Path:
        """The temporary authority of a cluster whose processes use TLS."""
        return self.path / "tls"

    @property
    def etcd_certificates(self) -> Path:
        """The temporary authority of an etcd whose cluster does not use TLS otherwise."""
        return self.path / "etcd-tls"

    @property
    def master_key_file(self) -> Path:
        """The file of the master key for all front ends."""
        return self.path / "master-key"

    def place(self, name: str) -> Path:
        """The directory of a process."""
        return self.path / name

    def log(self, name: str) -> Path:
        """The path of a process's log."""
        return self.place(name) / "log"

    def ready_file(self, name: str) -> Path:
        """Written by a process once it listens."""
        return self.place(name) / "ready.json"

    def load(self) -> ClusterState | None:
        """The state; None where no cluster ever was. Raises `DirectoryError`."""
        try:
            data = self.state_file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DirectoryError(f"cannot read {self.state_file}: {error.strerror or error}") from None
        try:
            return _states.decode(data)
        except TooOldError as error:
            raise DirectoryError(f"{self.state_file}: {error.message}") from None
        except msgspec.DecodeError as error:
            raise DirectoryError(
                f"{self.state_file} is not the state of a cluster: {error}. Name another directory with --data."
            ) from None

    def make(self) -> None:
        """Makes the directory and the cluster's secret, where they are not there; raises `DirectoryError`."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                if not self.secret_file.exists():
                    self._write(self.secret_file, f"{secrets.token_hex(SECRET_BYTES)}\n".encode())
        except OSError as error:
            raise DirectoryError(self._cannot("use", self.path, error)) from None

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Held while a cluster is started here; raises `DirectoryError` if another command is starting it.

        Two at once would each start an etcd, and the one that fails would remove the other's processes from the state.
        """
        self.make()
        with self._lock_file(".starting") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DirectoryError(
                    f"another process is starting a cluster in {self.path}; `penstock cluster status` shows it soon"
                ) from None
            yield

    def save(self, state: ClusterState) -> None:
        """Writes the state, replacing any earlier one."""
        with self._locked():
            self._save(state)

    def change(self, changed: Callable[[ClusterState], ClusterState]) -> ClusterState:
        """Reads, changes and writes the state under a lock; returns the new one."""
        with self._locked():
            state = self.load()
            if state is None:
                raise DirectoryError(f"{self.state_file} is gone")
            new = changed(state)
            self._save(new)
            return new

    def forget(self) -> None:
        """There is no cluster here any more; secret, logs and data stay."""
        self.state_file.unlink(missing_ok=True)

    def note_started(self, name: str, running: Running) -> None:
        """A process runs now."""
        self.change(lambda state: msgspec.structs.replace(state, running={**state.running, name: running}))

    def note_stopped(self, *names: str) -> None:
        """Processes were stopped on request."""
        self.change(
            lambda state: msgspec.structs.replace(
                state, running={name: one for name, one in state.running.items() if name not in names}
            )
        )

    def _save(self, state: ClusterState) -> None:
        self._write(self.state_file, msgspec.json.format(msgspec.json.encode(state)))

    def _write(self, file: Path, data: bytes) -> None:
        """Writes a complete file for its owner only; raises `DirectoryError`."""
        temporary = file.with_name(f".{file.name}.new")
        try:
            temporary.unlink(missing_ok=True)
            with os.fdopen(
                os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb"
            ) as stream:
                stream.write(data)
            temporary.replace(file)
        except OSError as error:
            raise DirectoryError(self._cannot("write", file, error)) from None

    def _cannot(self, do: str, what: Path, error: OSError) -> str:
        place = next(one for one in (self.path, *self.path.parents) if one.exists())
        why = why_not_written(error, place) or error.strerror or str(error)
        return f"cannot {do} {what}: {why}"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock_file(".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _lock_file(self, name: str) -> BinaryIO:
        """For the owner only: a user who can read a file can lock it, and block everyone."""
        descriptor = os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _PRIVATE)
        stream = os.fdopen(descriptor, "ab")
        with suppress(PermissionError):  # another user owns it and decides
            os.fchmod(stream.fileno(), _PRIVATE)  # earlier versions let others read it
        return stream
