"""A set of runs does what a set of numbers does, whatever the size of its blocks, and without going through all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model import run_set
from penstock.model.run_set import RunSet
from penstock.model.runs import Runs, normalized
from tests.model.test_runs import any_runs, as_set, is_normal

Change = tuple[str, Runs]
changes = some.lists(some.tuples(some.sampled_from(["add", "remove", "append"]), any_runs), max_size=12)


@pytest.mark.parametrize("block_runs", [1, 2, 5, 512])
@given(made=changes, wanted=any_runs)
def test_it_does_what_a_set_does(block_runs: int, made: list[Change], wanted: Runs) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_set, "_BLOCK_RUNS", block_runs)
        runs, plain = RunSet(), set[int]()
        for kind, drawn in made:
            before, image = as_set([*runs]), [run for block in runs.blocks() for run in block]
            held, copy = runs.blocks(), runs.copy()
            some_runs = normalized(drawn)
            if kind == "append":
                end = max(plain, default=0) + 1
                some_runs = [(first + end, count) for first, count in some_runs]
            if kind == "remove":
                runs.remove(some_runs)
                plain -= as_set(some_runs)
            else:
                (runs.add if kind == "add" else runs.append)(some_runs)
                plain |= as_set(some_runs)
            assert as_set([*runs]) == plain
            assert is_normal([*runs]) or kind == "append"
            assert [run for block in held for run in block] == image, "blocks never change"
            assert as_set([*copy]) == before
            assert all(runs.blocks())
            assert len(runs) == len([*runs])
            assert bool(runs) == bool(plain)
        known = normalized(wanted)
        assert as_set(runs.among(known)) == plain & as_set(known)
        for first, count in known:
            assert runs.has_any(first, first + count) == bool(plain & set(range(first, first + count)))
        for most in (0, 1, 5, 1_000):
            assert as_set(runs.first(most)) == set(sorted(plain)[:most])
