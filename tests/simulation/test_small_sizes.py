"""Every size of the product is made small by the simulation, or there is a reason why not; and the page says which."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random

import pytest

import penstock
from penstock.simulation.cluster.scenario import FLOOD_SIZES
from penstock.simulation.sizes.size import Size
from penstock.simulation.sizes.small_sizes import (
    SIZES,
    STEPS_OF_STATES,
    draw_sizes,
    put_on,
    with_small_options,
)
from penstock.simulation.sizes.usage_sizes import USAGE, with_usage_sizes
from penstock.simulation.world import World
from penstock.storage.options import StorageOptions
from tests.simulation.fixed_sizes import FIXED
from tests.simulation.size_page import END, START, table_of_sizes

ROOT = Path(penstock.__file__).parent
PAGE = ROOT.parents[1] / "docs" / "simulation.md"
LOOKED_AT = (
    *(
        "storage",
        "backend",
        "replication",
        "queue",
        "cluster",
        "steps",
        "routing",
        "client",
        "client_core",
        "ordering",
        "model",
    ),
    *("usage", "metadata/election.py", "wire/fair_turns.py"),
)
ROOM_ONLY = {("queue.state.producers", "PRODUCER_BATCHES_REMEMBERED")}
"""Modules that make room for the value of production; smaller values use less of that room."""
ALL = (*SIZES, *USAGE)
IN_TABLE = {f"{size.module}.{size.name}" for size in ALL}
SIZE_NAME = re.compile(r"[a-z_]+(\.[a-z_]+)+\._?[A-Z][A-Z_]+")
"""How the tables of the simulation name a size."""


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@cache
def _trees() -> dict[str, ast.Module]:
    return {_module(path): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def _is_constant(name: str) -> bool:
    return name.isupper() and not name.startswith("__")


def _numbers() -> Iterator[str]:
    """Every upper-case number of a module that is looked at."""
    folders = tuple(entry.removesuffix(".py").replace("/", ".") for entry in LOOKED_AT)
    for module, tree in _trees().items():
        if not any(module == folder or module.startswith(f"{folder}.") for folder in folders):
            continue
        for statement in tree.body:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if isinstance(statement, ast.AnnAssign):
                targets = [statement.target]
            for target in targets:
                if isinstance(target, ast.Name) and _is_constant(target.id):
                    value = getattr(import_module(f"penstock.{module}"), target.id)
                    if isinstance(value, int | float) and not isinstance(value, bool):
                        yield f"{module}.{target.id}"


def test_every_size_is_in_the_table_or_has_a_reason_not_to_be() -> None:
    fixed = [name for names in FIXED.values() for name in names]
    assert len(fixed) == len(set(fixed))
    assert not IN_TABLE & set(fixed)
    numbers = set(_numbers())
    assert not sorted(numbers - IN_TABLE - set(fixed)), (
        "add them to the table of sizes, or to the fixed ones with a reason"
    )
    assert not sorted(IN_TABLE - numbers), "they are no more"
    assert not sorted(set(fixed) - numbers), "they are no more"


def test_everybody_who_imports_a_size_is_known() -> None:
    """A module with a copy of the constant would go on with the value of production."""
    importers: dict[str, set[str]] = {}
    for module, tree in _trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                for alias in node.names:
                    name = f"{node.module.removeprefix('penstock.')}.{alias.name}"
                    assert alias.asname is None or name not in IN_TABLE, f"{module} renames {name}"
                    importers.setdefault(name, set()).add(module)
    for size in ALL:
        names = (size.name, *size.follows(size.small[0]))
        found = set().union(*(importers.get(f"{size.module}.{name}", set()) for name in names))
        outside = {module for module in found if module.startswith(("client", "wire", "frontend", "runtime"))}
        assert found - outside == set(size.imported_by) - outside, f"{size.module}.{size.name}"


def test_no_size_is_baked_in() -> None:
    """A default argument, or a constant that is made from another, keeps the value it was made with."""
    for module, tree in _trees().items():
        if module.startswith(("client", "wire", "frontend", "runtime", "simulation")):
            continue
        for node in _at_import(tree):
            for size in ALL:
                if (module, size.name) in ROOM_ONLY:
                    continue
                follows = module == size.module and size.follows(size.small[0])
                assert follows or not _reads(node, size, module), f"{module} bakes {size.name} in"


def _reads(node: ast.AST, size: Size, module: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == size.name and size.module == "model.limits"
    is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id == size.name
    return is_read and module in (size.module, *size.imported_by)


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated when a module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for default in (*child.args.defaults, *child.args.kw_defaults):
                if default is not None:
                    yield default
                    yield from _at_import(default)
        else:
            yield child
            yield from _at_import(child)


def test_small_sizes_are_put_on_and_taken_off() -> None:
    before = {
        (size, module): _values(size.module, size.name, module)
        for size in ALL
        for module in (size.module, *size.imported_by)
    }
    smallest = {f"{size.module}.{size.name}": size.small[0] for size in ALL}
    with put_on(smallest):
        for (size, module), values in before.items():
            if values:
                assert _values(size.module, size.name, module) == [size.small[0]]
    assert before == {(size, module): _values(size.module, size.name, module) for size, module in before}


def _values(owner: str, name: str, module: str) -> list[int]:
    found = import_module(f"penstock.{module}")
    return [getattr(found, name)] if hasattr(found, name) else []


def test_what_follows_from_a_size_follows() -> None:
    from penstock.queue.state import chunk, table
    from penstock.storage import scan

    with put_on({"queue.state.chunk.CHUNK_BITS": 2, "storage.scan._STRETCH_BYTES": 64}):
        assert (chunk.CHUNK_BITS, chunk.CHUNK_MESSAGES, vars(table)["CHUNK_MASK"]) == (2, 4, 3)
        assert len(scan._ZEROS) == 64 + 40
    assert (chunk.CHUNK_BITS, chunk.CHUNK_MESSAGES, vars(table)["CHUNK_MASK"]) == (12, 4096, 4095)


def test_every_size_that_is_named_anywhere_exists() -> None:
    """A former name would be drawn by no run."""
    named = {
        (module, node.value)
        for module, tree in _trees().items()
        if module.startswith("simulation")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SIZE_NAME.fullmatch(node.value)
    }
    assert {name for _, name in named} >= {*FLOOD_SIZES, *STEPS_OF_STATES}
    assert not sorted((module, name) for module, name in named if name not in IN_TABLE)


def test_a_wanted_size_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(LookupError, match="WINDOW_BYTES"):
        draw_sizes(Random("sizes"), ("backend.replication.peer_stream.WINDOW_BYTES",))


def test_the_seed_decides() -> None:
    drawn = [draw_sizes(Random(f"sizes: {seed}")) for seed in range(200)]
    assert drawn == [draw_sizes(Random(f"sizes: {seed}")) for seed in range(200)]
    assert 50 < sum(not sizes for sizes in drawn) < 150, "half of the runs are as in production"
    usage = [with_usage_sizes(sizes, Random(f"usage: {seed}")) for seed, sizes in enumerate(drawn)]
    assert set().union(*drawn, *usage) >= IN_TABLE, "each is small in some of them"


def test_small_options_hold_together() -> None:
    for seed in range(200):
        sizes = draw_sizes(Random(f"sizes: {seed}"))
        for cluster in (False, True):
            with_small_options(StorageOptions(), sizes, cluster=cluster).check()


def test_a_run_says_what_is_small() -> None:
    world = World(1, {"model.limits.MOVE_MESSAGES": 1})
    world.scenario.duration_ms = 10
    assert any("small sizes: model.limits.MOVE_MESSAGES = 1" in line for line in world.run().trace)


def test_the_page_has_the_table() -> None:
    page = PAGE.read_text()
    assert page[page.index(START) + len(START) : page.index(END)].strip() == table_of_sizes().strip(), (
        "write it again with `python -m tests.simulation.size_page docs/simulation.md`"
    )
