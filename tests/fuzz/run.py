"""The long run: `python -m tests.fuzz.run`. Half of them in this process, half over sockets."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.campaign import Tally, run_in_process
from tests.fuzz.cases import Cases
from tests.fuzz.round_trip import over_sockets, round_trip
from tests.fuzz.server import fuzzed_server
from tests.fuzz.sockets import run_over_sockets

PORTION = 20_000
"""After so many there is a report; in this process a new front end takes over: its simulated disk is memory."""


def main() -> int:
    """Returns 0 when no fault was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=300_000, help="how many in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", choices=["in-process", "sockets"])
    chosen = parser.parse_args()
    each = chosen.requests if chosen.only else chosen.requests // 2
    faults = 0
    if chosen.only != "sockets":
        for first in range(chosen.first, chosen.first + each, PORTION):
            requests = min(PORTION, chosen.first + each - first)
            faults += _in_process(chosen.seed, first, requests)
    if chosen.only != "in-process":
        faults += _over_sockets(chosen.seed, chosen.first, each)
    return 1 if faults else 0


def _in_process(seed: int, first: int, requests: int) -> int:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        tally = run_in_process(Path(directory), seed=seed, requests=requests, first=first)
    _report(f"in this process, seed {seed}, from case {first:,}", tally, started)
    return tally.fault_count


def _over_sockets(seed: int, first: int, requests: int) -> int:
    faults = 0
    with tempfile.TemporaryDirectory() as directory, fuzzed_server(Path(directory)) as server:
        cases = Cases(seed, f"{server.host}:{server.port}", server.signers)
        for start in range(first, first + requests, PORTION):
            started = time.monotonic()
            portion = min(PORTION, first + requests - start)
            tally = asyncio.run(
                run_over_sockets(cases, server.host, server.port, requests=portion, first=start)
            )
            faults += tally.fault_count
            _report(f"over sockets, seed {seed}, from case {start:,}", tally, started)
            print(f"the server's memory: {server.child.resident_bytes() / 1e6:.1f} MB\n", flush=True)
        round_trip(over_sockets(server.host, server.port, server.signers[0]))
        print("the server still works")
        if server.defects:
            print(f"it logged defects:\n{server.defects[:5_000]}")
            faults += 1
    return faults


def _report(title: str, tally: Tally, started: float) -> None:
    print(f"{title}, {time.monotonic() - started:.0f} s: {tally.summary()}\n", flush=True)
    for fault in tally.faults:
        print(f"{fault}\n")


if __name__ == "__main__":
    sys.exit(main())
