"""A cluster on this machine: starts and stops its processes, in order, for any user of its directory.

No state is kept in this process: the cluster's processes run in their own sessions, and the state file lists them.
"""

from __future__ import annotations

import asyncio
import http.client
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from penstock.cluster.local.local_plan import (
    ROLES,
    ClusterPlan,
    Planned,
    Role,
    with_another,
    with_guarded_etcd,
    without,
)
from penstock.runtime.local_cluster import process_config as told
from penstock.runtime.local_cluster import running
from penstock.runtime.local_cluster.balancer import (
    balancer_command,
    find_haproxy,
    reload_balancer,
    write_configuration,
)
from penstock.runtime.local_cluster.directory import ClusterDirectory, ClusterState, DirectoryError
from penstock.runtime.local_cluster.etcd_process import EtcdMember, EtcdProcess, find_etcd
from penstock.runtime.local_cluster.full_disk import why_full, why_not_written
from penstock.runtime.local_cluster.ports import ports_of, taken_ports
from penstock.runtime.local_cluster.running import Running
from penstock.runtime.local_cluster.sealing import TROUBLES, seal_from_before

READY_SECONDS = 60.0
STOP_SECONDS: dict[Role, float] = {
    "etcd": 2.0,
    "metadata": 10.0,
    "node": 20.0,
    "frontend": 15.0,
    "balancer": 5.0,
}
_LOOK_SECONDS = 0.02
_SHOWN_LOG_LINES = 8

Progress = Callable[[str, str], None]
"""Called with the name of a process, and what happens to it."""
Before = Callable[[Planned], tuple[str, ...]]
"""A command that runs the rest of its line in its place, as `ip netns exec NAME` does; empty for none."""


class StartFailedError(Exception):
    """A process did not start; the message gives the reason."""


class UnknownProcessError(Exception):
    """There is no process of that name; the message lists the names."""


class LocalCluster:
    """The cluster of a directory that has a plan."""

    def __init__(
        self,
        directory: ClusterDirectory,
        progress: Progress | None = None,
        before: Before = lambda planned: (),
        ready_seconds: float = READY_SECONDS,
    ) -> None:
        self.directory = directory
        self._told = progress
        self._before = before
        self._ready_seconds = ready_seconds
        self._etcds: list[EtcdProcess] = []
        self._logged_before: dict[str, int] = {}
        """The length of each log when its process was started: earlier lines are ignored."""

    def _progress(self, name: str, what: str) -> None:
        """The caller may be gone; this must not prevent processes from being stopped."""
        if self._told is not None:
            with suppress(OSError):
                self._told(name, what)

    @property
    def state(self) -> ClusterState:
        """As it is in the file now."""
        state = self.directory.load()
        if state is None:
            raise DirectoryError(
                f"{self.directory.state_file} is missing: it was deleted while the cluster was in use"
            )
        return state

    @property
    def plan(self) -> ClusterPlan:
        """All processes there should be."""
        return self.state.plan

    def planned(self, name: str) -> Planned:
        """A process by its name; raises `UnknownProcessError`."""
        found = self.plan.find(name)
        if found is None:
            there = ", ".join(one.name for one in self.plan.processes)
            raise UnknownProcessError(f"there is no {name} in this cluster; there are {there}")
        return found

    # -- starting --------------------------------------------------------------------------------------------

    def bring_up(self, *, seal_users: bool = False) -> None:
        """Starts every process that does not run, role after role; raises `StartFailedError` and errors of missing programs.

        `seal_users`: the caller confirms the users that an earlier version has written.
        """
        self._guard_etcd()
        self._check_ports([one for one in self.plan.processes if not self.state.is_up(one.name)])
        is_beginning = not self.state.up
        for role in ROLES:
            self.start(*(one.name for one in self.plan.of_role(role) if not self.state.is_up(one.name)))
            if role == "etcd" and is_beginning:
                self._seal_from_before(seal_users=seal_users)

    def _guard_etcd(self) -> None:
        """Makes an own etcd refuse clients without a certificate; running processes know its address already."""
        if not self.state.up:
            certificates = str(self.directory.etcd_certificates)
            self.directory.change(
                lambda state: msgspec.structs.replace(state, plan=with_guarded_etcd(state.plan, certificates))
            )

    def _seal_from_before(self, *, seal_users: bool) -> None:
        """Seals the entries of an earlier version in the cluster's own etcd before they are read."""
        if self.state.sealed or not self.plan.of_role("etcd"):
            return
        try:
            seal_from_before(self.directory, self.plan.etcd_url, users=seal_users)
        except TROUBLES as error:
            raise StartFailedError(str(error)) from None

    def start(self, *names: str) -> None:
        """Starts processes together and waits until they are ready; raises `StartFailedError`."""
        processes = [self.planned(name) for name in names]
        self._check_ports(processes)
        began = time.monotonic()
        started = []
        for one in processes:
            self._progress(one.name, "starting")
            self._logged_before[one.name] = _size(self.log_of(one))
            try:
                started.append((one, self._start(one)))
            except OSError as error:
                why = why_not_written(error, self.directory.path)
                if why is None:
                    raise
                raise StartFailedError(f"{one.name} cannot be started: {why}") from None
        for one, process in started:
            self._wait_until_ready(one, process, began + self._ready_seconds)
            self._progress(one.name, f"ready after {time.monotonic() - began:.1f} s")

    def _check_ports(self, processes: Iterable[Planned]) -> None:
        taken = taken_ports(processes)
        if taken:
            name, port = taken[0]
            raise StartFailedError(
                f"port {port}, planned for {name}, is used by another program (is a `penstock serve` running?); stop "
                "it, or begin a cluster elsewhere with --data and --base-port"
            )

    def _start(self, planned: Planned) -> Running:
        place = self.directory.place(planned.name)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if planned.role == "etcd":
            etcd = EtcdProcess(self._etcd_member(planned), find_etcd())
            process = running.identified(etcd.start())
            self._etcds.append(etcd)
        elif planned.role == "balancer":
            program = find_haproxy()
            file = write_configuration(self.plan, place, program)
            process = self._run(planned, balancer_command(file, program))
        else:
            (place / told.CONFIGURATION).write_text(
                told.configuration(planned, self.plan, self.directory), encoding="utf-8"
            )
            self.directory.ready_file(planned.name).unlink(missing_ok=True)
            process = self._run(planned, told.command(planned, self.directory))
        try:
            self.directory.note_started(planned.name, process)
        except BaseException:
            running.kill(process)  # otherwise the process would be running without an entry
            raise
        return process

    def _run(self, planned: Planned, command: list[str]) -> Running:
        return running.start(
            [*self._before(planned), *command],
            self.directory.log(planned.name),
            directory=self.directory.place(planned.name),
            environment=told.environment(),
        )

    def _wait_until_ready(self, planned: Planned, process: Running, deadline: float) -> None:
        while not self._is_ready(planned):
            if not running.is_alive(process):
                raise StartFailedError(f"{planned.name} has ended while it started: {self.why_not(planned)}")
            if time.monotonic() > deadline:
                raise StartFailedError(
                    f"{planned.name} is not ready after {self._ready_seconds:g} s: {self.why_not(planned)}"
                )
            time.sleep(_LOOK_SECONDS)

    def _is_ready(self, planned: Planned) -> bool:
        if planned.role == "etcd":
            return asyncio.run(EtcdProcess(self._etcd_member(planned), Path()).healthy())
        if planned.role == "balancer":
            return answers_to_health(planned.address("sqs"))
        return self.directory.ready_file(planned.name).exists()

    def why_not(self, planned: Planned) -> str:
        """Why a process did not start: the disk is full, or the end of what it logged, and where there is more."""
        file = self.log_of(planned)
        try:
            with file.open("rb") as log:
                log.seek(self._logged_before.get(planned.name, 0))
                text = log.read().decode(errors="replace")
        except OSError:
            text = ""
        full = why_full(self.directory.place(planned.name), text)
        if full is not None:
            return full
        lines = text.splitlines()
        said = " | ".join(line.strip() for line in lines[-_SHOWN_LOG_LINES:] if line.strip())
        return f"{said or 'it logged nothing'} (all of it is in {file})"

    def log_of(self, planned: Planned) -> Path:
        """The path of a process's log."""
        if planned.role == "etcd":
            return EtcdProcess(self._etcd_member(planned), Path()).log_file
        return self.directory.log(planned.name)

    def _etcd_member(self, planned: Planned) -> EtcdMember:
        return told.etcd_member(planned, self.plan, self.directory, self._before(planned))

    # -- stopping --------------------------------------------------------------------------------------------

    def stop(self, *names: str) -> list[str]:
        """Stops processes together, in order; returns the names of those that had to be ended by force."""
        state = self.state
        there = [(self.planned(name), state.running[name]) for name in names if name in state.running]
        # A watcher must not take it for a crash.
        self.directory.note_stopped(*names)
        for one, process in there:
            if running.tell(process, signal.SIGTERM):
                self._progress(one.name, "stopping")
            running.tell(process, signal.SIGCONT)
        forced = []
        for one, process in there:
            if not running.wait_until_gone(process, STOP_SECONDS[one.role]):
                running.kill(process)
                # etcd waits for open streams of clients; everything that it has acknowledged is on its disk.
                if one.role != "etcd":
                    forced.append(one.name)
            self._progress(one.name, "stopped")
        return forced

    def bring_down(self) -> list[str]:
        """Stops everything, role after role, the balancer first; those that had to be ended by force."""
        forced: list[str] = []
        for role in reversed(ROLES):
            forced += self.stop(*(one.name for one in self.plan.of_role(role)))
        return forced

    def kill(self, name: str) -> bool:
        """kill -9; False where it did not run."""
        self.planned(name)
        process = self.state.running.get(name)
        return process is not None and running.kill(process)

    def kill_all(self) -> None:
        """At once and without order; nothing that was acknowledged is lost by it."""
        for process in self.state.running.values():
            running.kill(process)
        self.directory.note_stopped(*self.state.running)

    # -- changing --------------------------------------------------------------------------------------------

    def add(self, role: Role, zone: str | None = None) -> Planned:
        """Starts another process; for a front end the balancer is reloaded."""
        added: list[Planned] = []

        def change(state: ClusterState) -> ClusterState:
            plan, one = with_another(state.plan, role, ports_of(state.plan.base_port), zone)
            added.append(one)
            return msgspec.structs.replace(state, plan=plan)

        self.directory.change(change)
        try:
            self.start(added[0].name)
        except BaseException:
            self.forget(added[0].name)
            raise
        if role == "frontend":
            self._reload_balancer(self.plan)
        return added[0]

    def forget(self, name: str) -> None:
        """Takes a process out of the plan, ends it if it runs, and deletes what it kept."""
        planned = self.planned(name)
        if planned.role == "frontend":
            self._reload_balancer(without(self.plan, name))  # it gets no new connections
        self.stop(name)
        self.directory.change(lambda state: msgspec.structs.replace(state, plan=without(state.plan, name)))
        shutil.rmtree(self.directory.place(name), ignore_errors=True)

    def _reload_balancer(self, plan: ClusterPlan) -> None:
        """Gives HAProxy the present list of front ends."""
        state = self.state
        balancer = plan.balancer
        write_configuration(plan, self.directory.place(balancer.name), find_haproxy())
        if balancer.name in state.running:
            reload_balancer(state.running[balancer.name])

    def dead(self) -> list[str]:
        """Those that were started, were not stopped, and do not run."""
        state = self.state
        return [name for name, process in state.running.items() if not running.is_alive(process)]

    def of_roles(self, *roles: Role) -> dict[str, Running]:
        """The processes of these roles that were started, by name."""
        state = self.state
        names = [one.name for role in roles for one in state.plan.of_role(role)]
        return {name: state.running[name] for name in names if name in state.running}


def answers_to_health(address: str, seconds: float = 1.0) -> bool:
    """Whether a front end, or the balancer before it, says that it is well."""
    connection = http.client.HTTPConnection(address, timeout=seconds)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
