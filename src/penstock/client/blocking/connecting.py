"""Makes blocking clients: of one server, or of the first of several that answers."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.client import BlockingClient
from penstock.client.client import connect
from penstock.client.connection.address import DEFAULT_URL, parse_address
from penstock.client.connection.endpoints import connect_to_any
from penstock.client.connection.trust import Authority
from penstock.client.duration import Duration
from penstock.client.produce.clock import LOCAL_CLOCK
from penstock.ordering.clock_estimator import DRIFT_PPM
from penstock.ordering.local_clock import LocalClock


def connect_blocking(
    url: str = DEFAULT_URL,
    *,
    timeout: Duration = 30.0,
    name: str | None = None,
    local_clock: LocalClock = LOCAL_CLOCK,
    drift_ppm: int = DRIFT_PPM,
    access_key: str | None = None,
    secret_key: str | None = None,
    ca: Authority | None = None,
) -> BlockingClient:
    """Connects to a server: `with penstock.connect_blocking("penstock://127.0.0.1:9326") as client: ...`.

    The arguments are those of `connect`.
    """
    connecting = connect(
        url,
        timeout=timeout,
        name=name,
        local_clock=local_clock,
        drift_ppm=drift_ppm,
        access_key=access_key,
        secret_key=secret_key,
        ca=ca,
    )
    bridge = Bridge()
    try:
        return BlockingClient(bridge, bridge.call(connecting.connect))
    except BaseException:
        bridge.stop()
        raise


def connect_blocking_to_any(
    urls: Sequence[str],
    *,
    timeout: float,
    name: str,
    access_key: str | None = None,
    secret_key: str | None = None,
    ca: Authority | None = None,
    patient: bool = True,
) -> BlockingClient:
    """Connects to the first of several servers that answers; see `penstock.client.connection.endpoints`. `ca` is for those with TLS."""
    endpoints = [
        connect(
            url,
            timeout=timeout,
            name=name,
            access_key=access_key,
            secret_key=secret_key,
            ca=ca if parse_address(url).secure else None,
        )
        for url in urls
    ]
    bridge = Bridge()
    try:
        return BlockingClient(bridge, bridge.run(connect_to_any(endpoints, timeout, patient=patient)))
    except BaseException:
        bridge.stop()
        raise
