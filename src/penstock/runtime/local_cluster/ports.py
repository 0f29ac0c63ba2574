"""Ports of a local cluster: finds unused ones, and checks whether planned ones are free."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable

from penstock.cluster.local.local_plan import HOST, PORTS_OF_ROLE, Planned, Ports, Role, ports_from
from penstock.runtime.processes.listening import StartError

FREE_PORTS = range(20_000, 32_000)
"""The range for free ports: below those that systems use for outgoing connections, which change all the time."""


def ports_of(base: int) -> Ports:
    """Ports above a base; with base 0 any that are free."""
    return ports_from(base) if base else _FreePorts().of_process


class _FreePorts:
    """Finds unused ports, and returns none twice, because returned ports are not listened on yet."""

    def __init__(self) -> None:
        self._candidates = iter(random.sample(FREE_PORTS, len(FREE_PORTS)))

    def of_process(self, role: Role, number: int) -> dict[str, int]:
        """One port for each thing that a process of the role listens for."""
        return {name: self._next() for name in PORTS_OF_ROLE[role]}

    def _next(self) -> int:
        for port in self._candidates:
            if is_free(port):
                return port
        raise StartError(f"no port between {FREE_PORTS.start} and {FREE_PORTS.stop} is free")


def taken_ports(processes: Iterable[Planned]) -> list[tuple[str, int]]:
    """Processes and their ports that another program uses."""
    return [(one.name, port) for one in processes for port in one.ports.values() if not is_free(port)]


def is_free(port: int) -> bool:
    """Whether a process may listen on a port of loopback."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((HOST, port))
        except OSError:
            return False
    return True
