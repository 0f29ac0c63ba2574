"""Ports for servers that must keep theirs, or that are told them before they start.

A port that was found free may be taken before the server listens on it. So each process that runs tests claims a range, which no other
such process on this machine uses, below the ports that systems give to outgoing connections.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from functools import cache

from penstock.cluster.local.local_plan import PORTS_OF_ROLE, Role
from penstock.runtime.local_cluster.ports import is_free

RANGES = [range(first, first + 450) for first in range(10_000, 19_000, 450)]
_CLUSTER = 150
"""So many ports at the beginning of a range are those of a local cluster, the rest is given out one by one."""


def free_port() -> int:
    """A port of loopback that no process uses; it is not given again soon."""
    return next(port for port in _singles() if is_free(port))


def ports_of(role: Role, number: int) -> dict[str, int]:
    """Free ports for a process of a local cluster, as `plan_cluster` wants them."""
    return {name: free_port() for name in PORTS_OF_ROLE[role]}


def pairs_of_ports(count: int) -> list[tuple[int, int]]:
    """Free ports for members of an etcd, as `plan_members` wants them."""
    return [(free_port(), free_port()) for _ in range(count)]


def base_port() -> str:
    """For `penstock cluster up --base-port`: one cluster at a time."""
    return str(_claimed()[0].start)


@cache
def _singles() -> Iterator[int]:
    return itertools.cycle(_claimed()[0][_CLUSTER:])


@cache
def _claimed() -> tuple[range, socket.socket]:
    """The range of this process, and the socket whose name says so: it is gone with the process, however that ends."""
    for claim in RANGES:
        named = socket.socket(socket.AF_UNIX)
        try:
            named.bind(f"\0penstock-tests-ports-{claim.start}")
        except OSError:
            named.close()
        else:
            return claim, named
    raise AssertionError(f"{len(RANGES)} processes that run tests have all ports")
