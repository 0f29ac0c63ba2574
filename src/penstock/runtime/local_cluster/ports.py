"""Ports of a local cluster: such as nobody uses, and whether planned ones are free."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import ExitStack

from penstock.cluster.local_plan import HOST, PORTS_OF_ROLE, Planned, Ports, Role, ports_from


def ports_of(base: int) -> Ports:
    """Ports above a base; with base 0 any that are free."""
    return ports_from(base) if base else _free_ports


def _free_ports(role: Role, number: int) -> dict[str, int]:
    names = PORTS_OF_ROLE[role]
    with ExitStack() as sockets:
        found: dict[str, int] = {}
        for name in names:
            one = sockets.enter_context(socket.socket())
            one.bind((HOST, 0))
            found[name] = int(one.getsockname()[1])
    return found


def taken_ports(processes: Iterable[Planned]) -> list[tuple[str, int]]:
    """Processes and ports of theirs that somebody else listens on."""
    return [(one.name, port) for one in processes for port in one.ports.values() if not _is_free(port)]


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((HOST, port))
        except OSError:
            return False
    return True
