"""Reads the source tree with `ast` and reports every breach of the tables in `rules.py`.

Imports count wherever they stand: inside functions and under `TYPE_CHECKING` too. A type that may only be
imported "for typing" is still something the module knows about.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.architecture import rules

CAPABILITY_OF = {name: capability for capability, names in rules.WORLD.items() for name in names}
WORLDLY_BUILTINS = {"open", "print", "input", "__import__"}
ASYNC_SYNTAX = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
NOW = {f"datetime.{kind}.{method}" for kind in ("datetime", "date") for method in ("now", "utcnow", "today")}


@dataclass(frozen=True, order=True)
class Violation:
    """One breach: where it stands and what is wrong."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Import:
    """One imported thing: `from a.b import c as d` has target `a.b.c` and binds `d` to `a.b.c`."""

    target: str
    bound_name: str
    bound_to: str
    line: int


@dataclass(frozen=True)
class Module:
    """One parsed source file."""

    name: str
    path: str
    tree: ast.Module
    line_count: int
    imports: tuple[Import, ...]

    @property
    def package(self) -> str:
        return package_of(self.name)


def package_of(module_name: str) -> str:
    """The row of the tables that a module belongs to: `penstock.queue.machine` -> `queue`; the longest name that has a row."""
    parts = module_name.split(".")
    if len(parts) == 1:
        return parts[0]
    if parts[1] == "__main__":
        return "cli"
    for end in range(len(parts), 2, -1):
        if (row := ".".join(parts[1:end])) in rules.MAY_IMPORT:
            return row
    return parts[1]


def check(root: Path) -> list[Violation]:
    """Every violation in the package at `root` (the folder named `penstock`), in order of place."""
    modules, violations = read(root)
    names = {module.name for module in modules}
    for module in modules:
        violations += check_size_and_name(module)
        if module.package not in rules.MAY_IMPORT:
            violations.append(
                Violation(
                    module.path, 1, f"package `{module.package}` has no row in MAY_IMPORT and MAY_TOUCH"
                )
            )
            continue
        violations += check_layers(module, names)
        violations += check_world(module)
        violations += check_layout(module)
        violations += check_callbacks(module)
        violations += check_decides_nothing(module)
    violations += check_cycles(modules, names)
    return sorted(set(violations))


# --- reading ------------------------------------------------------------------------------------------------


def read(root: Path) -> tuple[list[Module], list[Violation]]:
    """Parse the tree; a file that does not parse is a violation, not a crash."""
    modules: list[Module] = []
    violations: list[Violation] = []
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root.parent).as_posix()
        source = file.read_text(encoding="utf-8")
        try:
            tree = ast.parse(source, filename=path)
        except SyntaxError as error:
            violations.append(Violation(path, error.lineno or 1, f"does not parse: {error.msg}"))
            continue
        is_package = file.name == "__init__.py"
        parts = file.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if is_package else parts)
        imports = tuple(imports_of(tree, name, is_package))
        modules.append(Module(name, path, tree, len(source.splitlines()), imports))
    return modules, violations


def imports_of(tree: ast.Module, module_name: str, is_package: bool) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                # `import a.b` binds `a` to `a`; `import a.b as c` binds `c` to `a.b`.
                first = name.name.split(".")[0]
                bound = (name.asname, name.name) if name.asname else (first, first)
                yield Import(name.name, *bound, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_origin(node, module_name, is_package)
            for name in node.names:
                target = origin if name.name == "*" else f"{origin}.{name.name}"
                yield Import(target, name.asname or name.name, target, node.lineno)


def resolve_origin(node: ast.ImportFrom, module_name: str, is_package: bool) -> str:
    """The absolute module after `from`, relative imports included."""
    if not node.level:
        return node.module or ""
    parts = module_name.split(".")
    climb = node.level - 1 if is_package else node.level
    base = parts[: len(parts) - climb]
    return ".".join([*base, *([node.module] if node.module else [])])


def own_imports(module: Module, names: set[str]) -> Iterator[tuple[str, int]]:
    """The modules of Penstock that a module names, each with its line."""
    for item in module.imports:
        if item.target == "penstock" or item.target.startswith("penstock."):
            yield module_named(item.target, names), item.line


def module_named(target: str, names: set[str]) -> str:
    """`penstock.model.errors.QueueFull` -> `penstock.model.errors`: the longest prefix that is a module or has a row."""
    parts = target.split(".")
    if len(parts) == 1:
        return "penstock"
    for end in range(len(parts), 1, -1):
        # A folder without `__init__.py` is still a package where it has a row.
        if (prefix := ".".join(parts[:end])) in names or ".".join(parts[1:end]) in rules.MAY_IMPORT:
            return prefix
    return "penstock"  # any other name is one that the root exports


# --- the rules ----------------------------------------------------------------------------------------------


def check_size_and_name(module: Module) -> Iterator[Violation]:
    if module.line_count > rules.LINES_AT_MOST:
        yield Violation(
            module.path,
            module.line_count,
            f"{module.line_count} lines, at most {rules.LINES_AT_MOST} are allowed: split it by what it decides",
        )
    if (last := module.name.split(".")[-1]) in rules.EMPTY_NAMES:
        yield Violation(
            module.path, 1, f"`{last}` says nothing about what lives here: name it after its content"
        )


def check_layers(module: Module, names: set[str]) -> Iterator[Violation]:
    also = rules.MODULE_MAY_ALSO_IMPORT.get(module.name, set())
    allowed = rules.MAY_IMPORT[module.package] | {module.package} | also
    for target, line in own_imports(module, names):
        if (package := package_of(target)) not in allowed:
            yield Violation(module.path, line, f"`{module.package}` may not import `{package}`")


def check_cycles(modules: list[Module], names: set[str]) -> Iterator[Violation]:
    """No cycles, neither between modules nor between packages."""
    by_module: dict[str, set[str]] = {}
    by_package: dict[str, set[str]] = {}
    for module in modules:
        for target, _ in own_imports(module, names):
            if target != module.name:
                by_module.setdefault(module.name, set()).add(target)
            if package_of(target) != module.package:
                by_package.setdefault(module.package, set()).add(package_of(target))
    for kind, graph in (("modules", by_module), ("packages", by_package)):
        if cycle := find_cycle(graph):
            yield Violation("penstock", 0, f"cycle between {kind}: {' -> '.join(cycle)}")


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """One cycle as a path from a node back to itself, or an empty list."""
    try:
        TopologicalSorter({node: sorted(graph[node]) for node in sorted(graph)}).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[::-1]
    return []


def check_world(module: Module) -> Iterator[Violation]:
    allowed = rules.MAY_TOUCH[module.package] | rules.MODULE_MAY_ALSO_TOUCH.get(module.name, set())
    for name, line in worldly_names(module):
        capability = CAPABILITY_OF[name]
        if capability not in allowed:
            yield Violation(module.path, line, f"`{module.package}` may not touch the {capability}: `{name}`")
    if "dice" not in allowed and module.package in rules.MAY_USE_SEEDED_DICE:
        yield from check_dice(module)


def check_decides_nothing(module: Module) -> Iterator[Violation]:
    """A module of a doing package has no constants that decide, and makes no pauses of its own."""
    for name, line in deciding_names(module):
        yield Violation(
            module.path, line, f"`{module.package}` decides nothing: `{name}` belongs to a machine"
        )


def deciding_names(module: Module) -> Iterator[tuple[str, int]]:
    """Every constant and call of a doing module that decides what is tried when, with its line."""
    if module.package not in rules.DOING or module.name in rules.MACHINES_AMONG_DOING:
        return
    for statement in module.tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Name) and rules.DECIDING_WORDS.intersection(target.id.split("_")):
                yield target.id, statement.lineno
    aliases = aliases_of(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and qualified_name(node.func, aliases) in rules.DECIDING_CALLS:
            yield qualified_name(node.func, aliases).rpartition(".")[2], node.lineno


def worldly_names(module: Module) -> Iterator[tuple[str, int]]:
    """Every name of the WORLD table that the module uses, with its line."""
    for item in module.imports:
        for name in prefixes(item.target):
            is_seeded_dice = name == "random" and module.package in rules.MAY_USE_SEEDED_DICE
            if name in CAPABILITY_OF and name not in WORLDLY_BUILTINS and not is_seeded_dice:
                yield name, item.line
    aliases = aliases_of(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ASYNC_SYNTAX):
            yield "async", node.lineno
        elif isinstance(node, ast.Name) and node.id in WORLDLY_BUILTINS and node.id not in aliases:
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and qualified_name(node, aliases) in NOW:
            yield "datetime.now", node.lineno


def check_dice(module: Module) -> Iterator[Violation]:
    """Of `random` only `Random`, and that only with a seed."""
    message = f"`{module.package}` may use `random.Random` with a seed, not `%s`"
    for item in module.imports:
        if item.target.startswith("random.") and item.target != "random.Random":
            yield Violation(module.path, item.line, message % item.target)
    aliases = aliases_of(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            name = qualified_name(node, aliases)
            if name.startswith("random.") and not name.startswith("random.Random"):
                yield Violation(module.path, node.lineno, message % name)
        elif isinstance(node, ast.Call) and qualified_name(node.func, aliases) == "random.Random":
            seeds = [*node.args, *(keyword.value for keyword in node.keywords)]
            if all(isinstance(seed, ast.Constant) and seed.value is None for seed in seeds):
                yield Violation(module.path, node.lineno, message % "random.Random()")


def check_layout(module: Module) -> Iterator[Violation]:
    """Nobody decides by the layout's facts, or takes its keys apart, but those who may."""
    layout = [item.target for item in module.imports if item.target.startswith("penstock.cluster.layout.")]
    facts = rules.FACTS | (rules.FACTS_WHERE_THE_LAYOUT_IS_READ if layout else set())
    prefixes_here = {
        item.bound_name
        for item in module.imports
        if item.target.removeprefix("penstock.cluster.layout.entries.") in rules.LAYOUT_PREFIXES
    }
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in facts
            and not _is_in(module, rules.MAY_READ_FACTS)
        ):
            text = f"`{module.package}` may not decide by the layout's `{node.attr}`: ask `cluster/layout/serving.py`"
            yield Violation(module.path, node.lineno, text)
        is_cut = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("startswith", "removeprefix")
            and any(isinstance(one, ast.Name) and one.id in prefixes_here for one in node.args)
        )
        if isinstance(node, ast.Call) and is_cut and not _is_in(module, rules.MAY_CUT_LAYOUT_KEYS):
            text = "only `cluster/layout/decoder.py` takes the keys of the layout apart"
            yield Violation(module.path, node.lineno, text)


def _is_in(module: Module, names: tuple[str, ...]) -> bool:
    return any(module.name == name or module.name.startswith(name + ".") for name in names)


def check_callbacks(module: Module) -> Iterator[Violation]:
    """An attribute that holds a function is given it when the object is made, by whoever makes it."""
    if module.package not in rules.NO_ASSIGNED_CALLBACKS:
        return
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Attribute)
            and isinstance(node.value, ast.Lambda | ast.Constant)
            and ast.unparse(node.annotation).startswith("Callable[")
        ):
            text = f"`{node.target.attr}` is a callback for others to assign: let them take an effect"
            yield Violation(module.path, node.lineno, text)


# --- names --------------------------------------------------------------------------------------------------


def prefixes(target: str) -> Iterable[str]:
    """`urllib.request.urlopen` -> `urllib`, `urllib.request`, `urllib.request.urlopen`."""
    parts = target.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def aliases_of(module: Module) -> dict[str, str]:
    """What each imported name stands for: `from datetime import datetime as moment` binds `moment`."""
    return {item.bound_name: item.bound_to for item in module.imports}


def qualified_name(node: ast.expr, aliases: dict[str, str]) -> str:
    """`moment.now` -> `datetime.datetime.now`, or an empty string for what is no imported name."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, "")
    if isinstance(node, ast.Attribute) and (origin := qualified_name(node.value, aliases)):
        return f"{origin}.{node.attr}"
    return ""
