"""HAProxy in front of a local cluster: found, configured, checked, started, and reloaded when front ends are added or removed."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from pathlib import Path

from penstock.cluster.local.haproxy import haproxy_configuration
from penstock.cluster.local.local_plan import ClusterPlan, balancer_plan
from penstock.runtime.local_cluster.running import Running, tell

PROGRAM_VARIABLE = "PENSTOCK_HAPROXY"
MAX_CONNECTIONS = 10_000
FILES_BESIDE_CONNECTIONS = 200
_PLACES = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin"
_CHECK_SECONDS = 30.0


class BalancerMissingError(Exception):
    """HAProxy is not installed on this machine."""


class BalancerRefusedError(Exception):
    """HAProxy refuses its configuration; the message gives the reason."""


def find_haproxy() -> Path:
    """The program: `PENSTOCK_HAPROXY`, else on the path, else where packages install it."""
    named = os.environ.get(PROGRAM_VARIABLE)
    found = shutil.which(named) if named else shutil.which("haproxy") or shutil.which("haproxy", path=_PLACES)
    if found is None:
        said = (
            f"{PROGRAM_VARIABLE}={named} is not a program" if named else "there is no haproxy on this machine"
        )
        raise BalancerMissingError(
            f"{said}: run scripts/system-packages, or install it (Debian and Ubuntu: apt-get install haproxy), "
            f"or name the program with {PROGRAM_VARIABLE}"
        )
    return Path(found)


def write_configuration(plan: ClusterPlan, place: Path, program: Path) -> Path:
    """Writes `haproxy.cfg`, unless HAProxy would not take it; raises `BalancerRefusedError`."""
    place.mkdir(parents=True, exist_ok=True)
    file, new = place / "haproxy.cfg", place / "haproxy.cfg.new"
    new.write_text(haproxy_configuration(balancer_plan(plan, _connections())), encoding="utf-8")
    done = subprocess.run(
        [str(program), "-c", "-f", str(new)], capture_output=True, text=True, timeout=_CHECK_SECONDS
    )
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if "ALERT" in line]
        raise BalancerRefusedError(f"HAProxy refuses {new}: {' | '.join(said)}")
    new.replace(file)
    return file


def _connections() -> int:
    """HAProxy does not start where it may open too few files: two for each connection, and some beside."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(1, min(MAX_CONNECTIONS, (hard - FILES_BESIDE_CONNECTIONS) // 2))


def balancer_command(file: Path, program: Path) -> list[str]:
    """A master that stays and workers that serve: after a signal, new workers take over the listening sockets."""
    return [str(program), "-W", "-f", str(file)]


def reload_balancer(running: Running) -> bool:
    """Applies a new configuration without refusing a connection; False if HAProxy does not run."""
    return tell(running, signal.SIGUSR2)
