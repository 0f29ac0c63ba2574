"""Every checker is proven by bugs that are planted for it: it must see them, and see nothing where none is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from random import Random

import pytest

from penstock.backend.node.node import Node
from penstock.simulation import opened_ledger
from penstock.simulation.campaign import run_seed
from penstock.simulation.checkers import CHECKERS
from penstock.simulation.patching import patched
from penstock.simulation.scenario import draw_scenario
from penstock.simulation.violation import Violation
from penstock.simulation.workload import idle_visitor
from tests.simulation.planted.catalogue import BUGS

LIKELY_SEEDS: dict[str, tuple[int, ...]] = {
    "acknowledge-before-flush": (3, 9),
    "skip-sync": (3, 5),
    "full-disk-forgets": (27, 37),
    "failed-syncs-are-done": (989, 1001),
    "another-batch-will-do": (460, 867),
    "former-lives-end-the-journal": (37, 318),
    "unreadable-sectors-end-a-file": (237, 304),
    "older-connections-know-less": (7, 30),
    "replay-skips-deletes": (1, 3),
    "restart-forgets-ids": (3, 14),
    "restart-forgets-producers": (3, 4),
    "restart-forgets-leases": (1, 3),
    "stale-receipts-work": (1, 2),
    "late-deletes-ignore-the-count": (6, 9),
    "forged-receipts-work": (1, 2),
    "restart-resets-counts": (1, 3),
    "nobody-is-woken": (2, 3),
    "leases-never-end": (1, 2),
    "moves-do-not-arrive": (2, 4),
    "deletion-forgets-delayed": (13, 49),
    "deletion-drops-dead-letters": (203, 321),
    "deletion-removes-what-moves": (13, 49),
    "sources-hear-nothing": (2, 79),
    "departure-before-arrival": (2, 5),
    "restart-repeats-moves": (1, 3),
    "moves-forget-the-first-home": (1, 2),
    "receives-without-limit": (1, 2),
    "release-delay-ignored": (1, 2),
    "delays-end-early": (3, 8),
    "restart-forgets-expiries": (40, 59),
    "copies-not-synced": (5, 13),
    "full-disk-refuses-deletes": (125, 144),
    "never-congested": (5, 30),
    "fifo-overtakes": (2, 10),
    "batches-follow-nothing": (2, 10),
    "any-batch-is-taken": (2, 10),
    "refused-batches-go-to-the-end": (16, 18),
    "answers-before-the-stamp": (3, 5),
    "restart-forgets-stamps": (33, 76),
    "snapshots-lose-the-order": (29, 35),
    "restart-forgets-the-watermark": (1, 8),
    "late-ones-are-sorted-in": (1, 8),
    "late-ones-are-dropped": (1, 11),
    "late-ones-wait-their-turn": (2, 18),
    "windows-end-early": (601,),
    "reads-past-the-committed-end": (194, 299),
    "slices-at-the-wrong-message": (3, 6),
    "ranges-end-with-the-answer": (9, 26),
    "logs-are-cut-early": (3, 6),
    "stale-members-commit": (6, 9),
    "restart-forgets-offsets": (3, 9),
    "snapshots-claim-more": (3, 4),
    "starts-fall-short": (1, 3),
    "freeing-takes-the-messages": (26, 54),
    "reports-lose-a-row": (1, 3),
    "rows-come-again": (1, 3),
    "restart-forgets-row-numbers": (3, 5),
    "jumps-count-as-idle": (114, 314),
}
"""Where each was seen, to be quick. Any change of the node makes other things happen in a seed, so others follow."""
MORE_SEEDS = range(1, 400)
MOST_RUNS = 30

Clean = Callable[[int], list[Violation]]


@pytest.fixture(scope="session")
def clean() -> Clean:
    """The violations of a seed without a bug; each seed is run once for all tests."""

    @cache
    def violations(seed: int) -> list[Violation]:
        return run_seed(seed).violations

    return violations


def _seeds(name: str) -> Iterator[int]:
    """Seeds in whose scenario the bug can show, the likely ones first."""
    likely = LIKELY_SEEDS.get(name, ())
    yield from likely
    for seed in MORE_SEEDS:
        if seed not in likely and BUGS[name].shows(draw_scenario(Random(seed))):
            yield seed


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught_by_its_checker(name: str, clean: Clean) -> None:
    bug = BUGS[name]
    for seed in islice(_seeds(name), MOST_RUNS):
        if any(violation.checker == bug.checker for violation in run_seed(seed, bug.patches).violations):
            assert clean(seed) == []
            return
    pytest.fail(f"{bug.checker} does not notice that {bug.sentence}")


def test_every_checker_has_a_bug() -> None:
    others = {
        opened_ledger.NAME,
        idle_visitor.NAME,
        "engine",
    }  # they look at the node, not at what clients were told
    assert {bug.checker for bug in BUGS.values()} == {*CHECKERS, *others}


def test_a_bug_is_gone_when_its_context_ends() -> None:
    before = Node.take_output
    with patched(BUGS["acknowledge-before-flush"].patches()):
        assert Node.take_output is not before
    assert Node.take_output is before
