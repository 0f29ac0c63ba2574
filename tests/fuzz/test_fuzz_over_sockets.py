"""A small part of the fuzz against a real server process, which must still work when it is over."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fuzz.cases import Cases
from tests.fuzz.round_trip import over_sockets, round_trip
from tests.fuzz.server import fuzzed_server
from tests.fuzz.sockets import run_over_sockets

REQUESTS = 1_000


def test_a_server_survives_whatever_arrives(tmp_path: Path) -> None:
    with fuzzed_server(tmp_path) as server:
        cases = Cases(7, f"{server.host}:{server.port}", server.signers)
        tally = asyncio.run(run_over_sockets(cases, server.host, server.port, requests=REQUESTS))
        assert not tally.faults, "\n\n".join(tally.faults)
        assert tally.requests == REQUESTS
        assert tally.statuses[200] > REQUESTS // 10
        round_trip(over_sockets(server.host, server.port, server.signers[0]))
        assert not server.defects
