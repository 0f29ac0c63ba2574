"""A world of its own for a run, where this machine lets us: namespaces for its network, its mounts and its processes.

Everything that is made in it, networks, disks, processes, is gone with the run, even if that is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

INSIDE = "PENSTOCK_CHAOS_INSIDE"
NAMES_OF_NETWORKS = Path("/run/netns")
_UNSHARE = (
    "unshare",
    *("--net", "--mount", "--propagation", "private"),
    *("--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)


def why_not() -> str | None:
    """Why there cannot be such a world here; None where there can."""
    if os.geteuid() != 0:
        return "networks can be cut and power be lost only by root"
    missing = [name for name in ("unshare", "nsenter", "ip", "mount") if program(name) is None]
    if missing:
        return f"networks cannot be cut without {', '.join(missing)}: run scripts/system-packages"
    tried = subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True, env=_environment())
    if tried.returncode != 0:
        return f"this machine lets nobody make namespaces ({tried.stderr.strip()})"
    return None


def program(name: str) -> str | None:
    """Where a program is; packages put some of them where only root's PATH looks."""
    return shutil.which(name, path=_environment()["PATH"])


def is_inside() -> bool:
    """Whether this process is in a world that `enter` made."""
    return INSIDE in os.environ


def enter(module: str, arguments: Sequence[str]) -> None:
    """Runs a module in a world of its own instead of this process."""
    command = [*_UNSHARE, sys.executable, "-m", module, *arguments]
    os.execvpe(command[0], command, {**_environment(), INSIDE: "1"})


def furnish() -> None:
    """The first thing inside: loopback, and a place for the names of networks that nobody else sees."""
    run("ip", "link", "set", "lo", "up")
    NAMES_OF_NETWORKS.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "none", str(NAMES_OF_NETWORKS))


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"}


def run(*command: str, text: str | None = None) -> str:
    """Runs a command that must succeed; what it says."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
