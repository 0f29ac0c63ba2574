"""The source tree keeps to the tables of `rules.py`: layers, cycles, the world, size and names."""

from pathlib import Path

import penstock
from tests.architecture import rules
from tests.architecture.checker import check, find_cycle, read

ROOT = Path(penstock.__file__).parent


def test_the_tree_keeps_to_the_architecture() -> None:
    violations = check(ROOT)
    assert not violations, "\n" + "\n".join(str(violation) for violation in violations)


def test_the_checker_reads_the_whole_tree() -> None:
    modules, _ = read(ROOT)
    assert "penstock" in {module.name for module in modules}
    assert len(modules) == len(list(ROOT.rglob("*.py")))


def test_the_table_of_imports_names_only_its_own_rows_and_has_no_cycle() -> None:
    assert set().union(*rules.MAY_IMPORT.values()) <= set(rules.MAY_IMPORT)
    assert find_cycle(rules.MAY_IMPORT) == []


def test_every_package_has_a_row_in_both_tables() -> None:
    assert set(rules.MAY_TOUCH) == set(rules.MAY_IMPORT)
    assert set().union(*rules.MAY_TOUCH.values(), *rules.MODULE_MAY_ALSO_TOUCH.values()) <= set(rules.WORLD)
    assert set(rules.MAY_IMPORT) >= rules.MAY_USE_SEEDED_DICE


def test_thinking_packages_touch_nothing_and_import_only_thinking_packages() -> None:
    thinking = {
        "model",
        "queue",
        "ordering",
        "wire",
        "sqs",
        "metrics",
        "replication",
        "cluster",
        "routing",
    } | {"columnar", "client_core"}
    for package in thinking:
        assert rules.MAY_TOUCH[package] == rules.NOTHING
        assert rules.MAY_IMPORT[package] <= thinking
