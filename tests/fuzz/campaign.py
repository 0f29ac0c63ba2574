"""Many cases one after the other in this process: counts, faults, and whether the front end still works."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from penstock.sqs.protocols.http import HttpResponse
from tests.fuzz.cases import Case, Cases
from tests.fuzz.in_process import HOST, InProcess
from tests.fuzz.round_trip import in_process, round_trip
from tests.fuzz.verdict import Fault, check_answer

FAULTS_KEPT = 20
CASE_CHARACTERS = 4_000
_ADVANCE_EVERY = 50


@dataclass
class Tally:
    """What came of the cases."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    """Actions that succeeded."""
    faults: list[str] = field(default_factory=list)
    fault_count: int = 0

    def count(self, case: Case, status: int) -> None:
        """An answer that was one."""
        self.requests += 1
        self.statuses[status] += 1
        self.kinds.update(case.kinds or ("valid",))
        if status == 200:
            self.actions[case.action] += 1

    def fault(self, number: int, case: Case, error: Fault) -> None:
        """An answer that must not be."""
        self.requests += 1
        self.fault_count += 1
        if len(self.faults) < FAULTS_KEPT:
            self.faults.append(f"case {number} {str(case)[:CASE_CHARACTERS]}\n{error}")

    def summary(self) -> str:
        """A few lines for people."""
        statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(self.statuses.items()))
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.kinds.most_common())
        return (
            f"{self.requests:,} requests; answers by status {statuses}\n"
            f"what was done to them: {kinds}\n"
            f"{len(self.actions)} of 23 actions succeeded at least once; {self.fault_count:,} faults"
        )


def run_in_process(directory: Path, *, seed: int, requests: int, first: int = 0) -> Tally:
    """Cases of a seed against one front end, which must still work afterwards."""
    server = InProcess(directory)
    try:
        cases = Cases(seed, HOST, server.signers)
        tally = Tally()
        for number in range(first, first + requests):
            case = cases.case(number, server.now_s)
            try:
                response = server.answer(case.request())
                _check(case, response)
            except Fault as fault:
                tally.fault(number, case, fault)
                continue
            if response.status == 200:
                cases.known.learn(case.queue_url, response.body)
            tally.count(case, response.status)
            if number % _ADVANCE_EVERY == 0:
                server.advance(500)
        round_trip(in_process(server.answer, server.signers[0], lambda: server.now_s))
        return tally
    finally:
        server.close()


def grown_bytes(directory: Path, *, seed: int, requests: int) -> int:
    """By how much the memory of a front end grows while it is asked the second half of the requests."""
    server = InProcess(directory)
    cases = Cases(seed, HOST, server.signers)
    tracemalloc.start()
    try:
        before = 0
        for number in range(requests):
            if number == requests // 2:
                before = tracemalloc.get_traced_memory()[0]
            server.answer(cases.case(number, server.now_s).request())
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        server.close()


def _check(case: Case, response: HttpResponse) -> None:
    headers = {name.lower(): value for name, value in response.headers}
    check_answer(response.status, headers, response.body, bodiless=case.method == "HEAD")
