"""The source tree keeps to the tables of `rules.py`: layers, cycles, the world, size and names."""

from pathlib import Path

import benchmarks
import penstock
from tests.architecture import rules
from tests.architecture.checker import (
    CAPABILITY_OF,
    check,
    check_size_and_name,
    find_cycle,
    read,
    worldly_names,
)

ROOT = Path(penstock.__file__).parent
BENCHMARKS = Path(benchmarks.__file__).parent


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
    } | {"columnar", "client_core", "steps"}
    for package in thinking:
        assert rules.MAY_TOUCH[package] == rules.NOTHING
        assert rules.MAY_IMPORT[package] <= thinking


def test_the_rule_of_what_decides_names_only_what_is_there() -> None:
    modules, _ = read(ROOT)
    assert {module.name for module in modules} >= rules.MACHINES_AMONG_DOING
    assert set(rules.MAY_IMPORT) >= rules.DOING


def test_machines_among_doing_packages_have_no_event_loop_and_no_clock() -> None:
    modules, _ = read(ROOT)
    for module in modules:
        if module.name in rules.MACHINES_AMONG_DOING:
            touched = {CAPABILITY_OF[name] for name, _ in worldly_names(module)}
            assert touched <= {"log"}


def test_the_package_works_without_the_benchmarks_and_the_tests() -> None:
    """They are not in the wheel: one command each looks whether they are there, and nothing else knows of them."""
    modules, _ = read(ROOT)
    knowing = {
        folder: {
            module.name
            for module in modules
            if any(item.target.partition(".")[0] == folder for item in module.imports)
        }
        for folder in ("benchmarks", "tests")
    }
    assert knowing == {"benchmarks": {"penstock.cli.tools.bench"}, "tests": {"penstock.cli.tools.simulate"}}


def test_files_of_the_benchmarks_are_small_and_named_after_their_content() -> None:
    modules, violations = read(BENCHMARKS)
    assert len(modules) > 50
    assert not violations + [breach for module in modules for breach in check_size_and_name(module)]
