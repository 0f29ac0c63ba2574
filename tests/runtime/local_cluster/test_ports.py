"""Ports that a local cluster finds for itself."""

from __future__ import annotations

import socket

import pytest

from penstock.cluster.local.local_plan import HOST
from penstock.runtime.local_cluster import ports
from penstock.runtime.processes.listening import StartError


def test_no_port_is_given_twice_though_nobody_listens_yet() -> None:
    find = ports.ports_of(0)
    given = [port for number in range(200) for port in find("node", number).values()]
    assert len(given) == len(set(given))
    assert set(given) <= set(ports.FREE_PORTS)


def test_ports_that_somebody_listens_on_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "FREE_PORTS", range(port, port + 1))
        with pytest.raises(StartError, match=f"no port between {port} and"):
            ports.ports_of(0)("node", 1)
