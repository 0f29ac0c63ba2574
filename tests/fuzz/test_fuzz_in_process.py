"""A small part of the fuzz, with fixed seeds: the long run is `make fuzz`."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.frontend.actions import table
from penstock.frontend.context import Context
from penstock.steps.step import Steps
from tests.fuzz.campaign import grown_bytes, run_in_process
from tests.fuzz.cases import Cases
from tests.fuzz.grammar import NAMES
from tests.fuzz.in_process import HOST
from tests.fuzz.signing import Credentials
from tests.fuzz.verdict import Fault, check_answer

GROWTH_BYTES = 16 * 1024 * 1024
"""What a node with a dozen queues and the caches of a front end may come to hold meanwhile."""


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_that_arrives_is_answered_badly(seed: int, tmp_path: Path) -> None:
    tally = run_in_process(tmp_path, seed=seed, requests=2_000)
    assert not tally.faults, "\n\n".join(tally.faults)
    assert tally.requests == 2_000
    # Mutations that only ever bounce off the first check would prove little.
    assert tally.statuses[200] > 200
    assert len(tally.actions) >= 15


def test_memory_stays_within_bounds(tmp_path: Path) -> None:
    assert grown_bytes(tmp_path, seed=3, requests=1_000) < GROWTH_BYTES


def test_a_seed_gives_the_same_cases_again() -> None:
    signers = [Credentials("KEY", "secret"), Credentials("OTHER", "secret")]
    first, again = (Cases(5, HOST, signers) for _ in range(2))
    cases = [first.case(number, 1_700_000_000) for number in range(300)]
    assert cases == [again.case(number, 1_700_000_000) for number in range(300)]
    assert [case.wire() for case in cases] == [case.wire() for case in cases]
    assert {case.action for case in cases} == set(NAMES)
    assert {kind for case in cases for kind in case.kinds} >= {
        "values",
        "body",
        "headers",
        "signature",
        "wire",
    }


def test_a_defect_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(context: Context) -> Steps[None]:
        raise ZeroDivisionError(f"planted at {context.now_ms}")

    row = table.ACTIONS["ListQueues"]
    monkeypatch.setitem(table.ACTIONS, "ListQueues", row._replace(carry_out=defective))
    tally = run_in_process(tmp_path, seed=1, requests=300)
    assert any("planted" in fault for fault in tally.faults)


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (500, {"x-amzn-requestid": "1", "content-type": "text/xml"}, b"<a/>"),
        (400, {"content-type": "text/xml"}, b"<a/>"),
        (400, {"x-amzn-requestid": "1", "content-type": "text/xml"}, b"<a>"),
        (400, {"x-amzn-requestid": "1", "content-type": "text/xml"}, b"<a/>"),
        (400, {"x-amzn-requestid": "1", "content-type": "application/x-amz-json-1.0"}, b'{"message":""}'),
        (200, {"x-amzn-requestid": "1", "content-type": "application/x-amz-json-1.0"}, b"{"),
        (200, {"x-amzn-requestid": "1", "content-type": "text/plain"}, b"ok"),
    ],
)
def test_bad_answers_are_faults(status: int, headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(Fault):
        check_answer(status, headers, body)
