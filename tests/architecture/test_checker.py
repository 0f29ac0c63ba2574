"""The checker itself: every kind of breach, planted in a small tree, is reported where it stands."""

from pathlib import Path

import pytest

from tests.architecture import rules
from tests.architecture.checker import Violation, check


def plant(folder: Path, **sources: str) -> list[Violation]:
    """Check a tree made of `package__module="source"` (`config="..."` is a top-level module)."""
    root = folder / "penstock"
    root.mkdir()
    (root / "__init__.py").write_text("")
    for name, source in sources.items():
        file = root.joinpath(*name.split("__")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(source)
    return check(root)


def texts(violations: list[Violation]) -> list[str]:
    return [violation.text for violation in violations]


def test_a_clean_tree_has_no_violations(tmp_path: Path) -> None:
    assert not plant(
        tmp_path,
        config="import os\nimport tomllib\nfrom penstock.model.errors import QueueFull\n",
        model__errors="class QueueFull(Exception): ...\n",
        queue__machine="import struct\nfrom penstock.model.errors import QueueFull\n",
        storage__disk="import errno\nfrom typing import Protocol\nclass Disk(Protocol): ...\n",
        backend__node="from penstock.queue import machine\nfrom penstock.storage.disk import Disk\n",
        runtime__disk="import asyncio, os, threading, time, socket\nfrom penstock.backend import node\n",
        simulation__disk="import random\nfrom penstock.storage.disk import Disk\ndice = random.Random(7)\n",
        client__connection="import asyncio, os, random, threading, time\nfrom penstock.model import errors\n",
        cli__main="import penstock\nfrom penstock.runtime import disk\nprint(open)\n",
    )


# --- layers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("importer", sorted(set(rules.MAY_IMPORT) - {"penstock"}))
def test_every_import_that_the_table_does_not_allow_is_reported(tmp_path: Path, importer: str) -> None:
    others = sorted(set(rules.MAY_IMPORT) - {importer, "penstock"})
    source = "".join(f"from penstock.{other}.two import thing\n" for other in others)
    folder = importer.replace(".", "/")
    assert plant(tmp_path, **{f"{importer}.one".replace(".", "__"): source}) == [
        Violation(f"penstock/{folder}/one.py", line, f"`{importer}` may not import `{other}`")
        for line, other in enumerate(others, start=1)
        if other not in rules.MAY_IMPORT[importer]
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "import penstock.queue",
        "import penstock.queue.machine as machine",
        "from penstock import queue",
        "from penstock.queue import machine",
        "from penstock.queue.machine import decide",
        "from penstock.queue.machine import *",
        "from .. import queue",
        "from ..queue import machine",
        "def later():\n    from penstock.queue import machine",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from penstock.queue import machine",
    ],
)
def test_every_form_of_import_is_seen(tmp_path: Path, statement: str) -> None:
    violations = plant(tmp_path, queue__machine="decide = 1\n", model__errors=statement)
    assert texts(violations) == ["`model` may not import `queue`"]


def test_a_folder_with_a_row_is_a_package_beside_the_rest(tmp_path: Path) -> None:
    violations = plant(
        tmp_path,
        replication__core="from penstock.backend import node\n",
        replication__primary_secondary__node__one="from penstock.backend import node\n",
    )
    assert texts(violations) == ["`replication` may not import `backend`"]


def test_the_root_is_a_layer_of_its_own(tmp_path: Path) -> None:
    assert texts(plant(tmp_path, client__link="from penstock import __version__\n")) == [
        "`client` may not import `penstock`"
    ]


def test_an_import_of_a_package_that_is_not_written_yet_is_judged_too(tmp_path: Path) -> None:
    assert texts(plant(tmp_path, model__errors="from penstock.runtime.disk.disk import RealDisk\n")) == [
        "`model` may not import `runtime`"
    ]


def test_a_package_without_a_row_is_reported(tmp_path: Path) -> None:
    assert texts(plant(tmp_path, sideshow__act="")) == [
        "package `sideshow` has no row in MAY_IMPORT and MAY_TOUCH",
        "package `sideshow` has no row in MAY_IMPORT and MAY_TOUCH",
    ]


def test_the_program_entry_belongs_to_the_command_line(tmp_path: Path) -> None:
    entry = tmp_path / "penstock" / "__main__.py"
    assert not plant(tmp_path, cli__main="main = print\n")
    entry.write_text("from penstock.cli.main import main\nprint(main)\n")
    assert not check(entry.parent)


# --- cycles -------------------------------------------------------------------------------------------------


def test_a_cycle_between_modules_of_one_package_is_reported(tmp_path: Path) -> None:
    violations = plant(
        tmp_path,
        queue__first="from penstock.queue.second import b\n",
        queue__second="def later():\n    from penstock.queue import third\n",
        queue__third="import penstock.queue.first\n",
    )
    (text,) = texts(violations)
    assert text.startswith("cycle between modules: ")
    assert all(f"penstock.queue.{name}" in text for name in ("first", "second", "third"))


def test_a_cycle_through_a_package_that_gathers_its_own_modules_is_reported(tmp_path: Path) -> None:
    root = tmp_path / "penstock"
    (root / "queue").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "queue" / "__init__.py").write_text("from penstock.queue.machine import decide\n")
    (root / "queue" / "machine.py").write_text("from penstock.queue import decide\n")
    (text,) = texts(check(root))
    assert text.startswith("cycle between modules: ")


def test_a_cycle_between_packages_is_reported_even_without_one_between_modules(tmp_path: Path) -> None:
    violations = plant(
        tmp_path,
        queue__first="from penstock.wire.first import b\n",
        wire__first="",
        wire__second="from penstock.queue.second import c\n",
        queue__second="",
    )
    assert any(text.startswith("cycle between packages: ") for text in texts(violations))
    assert not any(text.startswith("cycle between modules: ") for text in texts(violations))


# --- the world ----------------------------------------------------------------------------------------------

NOT_MODULES = {"async", "datetime.now", "open", "print", "input", "__import__"}


@pytest.mark.parametrize("package", sorted(set(rules.MAY_TOUCH) - {"penstock"}))
def test_a_module_of_the_world_is_reported_exactly_where_it_is_not_allowed(
    tmp_path: Path, package: str
) -> None:
    modules = sorted(set().union(*rules.WORLD.values()) - NOT_MODULES)
    violations = plant(tmp_path, **{f"{package}__one": "".join(f"import {name}\n" for name in modules)})

    seeded_dice = {"random"} if package in rules.MAY_USE_SEEDED_DICE else set()
    allowed = seeded_dice.union(*(rules.WORLD[capability] for capability in rules.MAY_TOUCH[package]))
    reported = [line for line, name in enumerate(modules, start=1) if name not in allowed]
    assert [violation.line for violation in violations] == reported


@pytest.mark.parametrize(
    ("source", "capability", "name"),
    [
        ("from asyncio import Queue\n", "event loop", "asyncio"),
        ("import os.path\n", "system", "os"),
        ("from concurrent.futures import ThreadPoolExecutor\n", "processes", "concurrent"),
        ("from urllib.request import urlopen\n", "network", "urllib.request"),
        ("from urllib import request\n", "network", "urllib.request"),
        ("def later():\n    import time\n", "clock", "time"),
        ("async def later(): ...\n", "event loop", "async"),
        ("handle = open('journal')\n", "disk", "open"),
        ("print('hello')\n", "terminal", "print"),
        ("sink = print\n", "terminal", "print"),
        ("module = __import__('time')\n", "imports by name", "__import__"),
        ("import datetime\nat = datetime.datetime.now()\n", "clock", "datetime.now"),
        ("import datetime as d\nat = d.date.today()\n", "clock", "datetime.now"),
        ("from datetime import datetime\nat = datetime.utcnow()\n", "clock", "datetime.now"),
        ("from datetime import datetime as moment\nclock = moment.now\n", "clock", "datetime.now"),
    ],
)
@pytest.mark.parametrize(
    "package", ["model", "queue", "ordering", "wire", "storage", "backend", "simulation"]
)
def test_every_way_to_touch_the_world_is_seen(
    tmp_path: Path, package: str, source: str, capability: str, name: str
) -> None:
    violations = plant(tmp_path, **{f"{package}__one": source})
    assert set(texts(violations)) == {f"`{package}` may not touch the {capability}: `{name}`"}


@pytest.mark.parametrize(
    "source",
    [
        "from datetime import datetime, timedelta, UTC\nat = datetime.fromtimestamp(0, UTC)\n",
        "from urllib.parse import quote\n",
        "class Disk:\n    def open(self, name): ...\ndef use(disk): return disk.open('a')\n",
    ],
)
def test_what_only_looks_like_the_world_is_free(tmp_path: Path, source: str) -> None:
    assert not plant(tmp_path, model__one=source)


def test_the_campaign_may_spread_over_processes_and_its_neighbours_may_not(tmp_path: Path) -> None:
    source = "import multiprocessing\nimport os\n"
    assert texts(plant(tmp_path, simulation__campaign=source, simulation__world=source)) == [
        "`simulation` may not touch the processes: `multiprocessing`",
        "`simulation` may not touch the system: `os`",
    ]


# --- dice ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", sorted(rules.MAY_USE_SEEDED_DICE))
@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import random\nx = random.random()\n", "random.random"),
        ("import random as dice\nx = dice.shuffle([])\n", "random.shuffle"),
        ("from random import choice\n", "random.choice"),
        ("from random import SystemRandom\n", "random.SystemRandom"),
        ("import random\nx = random.Random()\n", "random.Random()"),
        ("from random import Random\nx = Random(None)\n", "random.Random()"),
        ("from random import Random as Dice\nx = Dice()\n", "random.Random()"),
    ],
)
def test_dice_without_a_seed_are_reported(tmp_path: Path, package: str, source: str, name: str) -> None:
    violations = plant(tmp_path, **{f"{package}__one": source})
    assert texts(violations) == [f"`{package}` may use `random.Random` with a seed, not `{name}`"]


@pytest.mark.parametrize("package", sorted(rules.MAY_USE_SEEDED_DICE))
def test_dice_that_are_passed_in_or_seeded_are_free(tmp_path: Path, package: str) -> None:
    source = "import random\ndef roll(dice: random.Random, seed: int): return random.Random(seed)\n"
    assert not plant(tmp_path, **{f"{package}__one": source})


@pytest.mark.parametrize("package", ["storage", "backend", "config"])
def test_even_seeded_dice_are_reported_elsewhere(tmp_path: Path, package: str) -> None:
    violations = plant(tmp_path, **{f"{package}__one": "from random import Random\n"})
    assert texts(violations) == [f"`{package}` may not touch the dice: `random`"]


# --- size, names, syntax ------------------------------------------------------------------------------------


# --- who decides by the layout ------------------------------------------------------------------------------


def test_what_only_the_layout_and_the_model_decide_by_is_reported_elsewhere(tmp_path: Path) -> None:
    source = "from penstock.cluster.layout.entries import PartitionEntry\nentry.primary\nentry.in_sync\nentry.epoch\n"
    found = plant(
        tmp_path,
        routing__one=source,
        cluster__membership__one=source,
        cluster__layout__one=source,
        cluster__manager__one=source,
        simulation__one=source,
    )
    assert [(one.path.removeprefix("penstock/"), one.line) for one in found] == [
        (file, line) for file in ("cluster/membership/one.py", "routing/one.py") for line in (2, 3, 4)
    ]


def test_an_epoch_of_something_else_is_free(tmp_path: Path) -> None:
    assert not plant(tmp_path, client__log="hand.epoch\n", cluster__membership__campaign="self.epoch\n")


@pytest.mark.parametrize("call", ["key.startswith(NODES)", "key.removeprefix(NODES)"])
def test_keys_of_the_layout_are_taken_apart_in_one_place(tmp_path: Path, call: str) -> None:
    source = f"from penstock.cluster.layout.entries import NODES\n{call}\n"
    found = plant(tmp_path, routing__one=source, cluster__layout__decoder=source)
    assert texts(found) == ["only `cluster/layout/decoder.py` takes the keys of the layout apart"]


@pytest.mark.parametrize("value", ["lambda: None", "None"])
def test_a_callback_that_others_assign_is_reported(tmp_path: Path, value: str) -> None:
    source = (
        f"class Machine:\n    def __init__(self):\n        self.done: Callable[[], None] | None = {value}\n"
    )
    found = plant(tmp_path, cluster__one=source, runtime__one=source)
    assert texts(found) == ["`done` is a callback for others to assign: let them take an effect"]


def test_a_function_that_is_handed_over_is_free(tmp_path: Path) -> None:
    source = "class Machine:\n    def __init__(self, done):\n        self._done: Callable[[], None] = done\n"
    assert not plant(tmp_path, cluster__one=source)


def test_a_file_may_reach_the_ratchet_and_not_pass_it(tmp_path: Path) -> None:
    longest = "x = 1\n" * rules.LINES_AT_MOST
    violations = plant(tmp_path, model__fits=longest, model__grew=longest + "x = 1\n")
    assert [(violation.path, violation.line) for violation in violations] == [("penstock/model/grew.py", 401)]
    assert "401 lines, at most 400 are allowed" in violations[0].text


@pytest.mark.parametrize("name", sorted(rules.EMPTY_NAMES))
def test_a_name_that_says_nothing_is_reported(tmp_path: Path, name: str) -> None:
    (text,) = texts(plant(tmp_path, **{f"model__{name}": ""}))
    assert text.startswith(f"`{name}` says nothing")


def test_a_file_that_does_not_parse_is_reported_beside_the_rest(tmp_path: Path) -> None:
    violations = plant(tmp_path, model__broken="def (\n", model__errors="import os\n")
    assert [violation.path for violation in violations] == [
        "penstock/model/broken.py",
        "penstock/model/errors.py",
    ]
    assert violations[0].text.startswith("does not parse")


# --- what doing packages decide -----------------------------------------------------------------------------


def test_a_doing_package_that_decides_is_reported(tmp_path: Path) -> None:
    violations = plant(
        tmp_path,
        wire__backoff="class Backoff: ...\n",
        runtime__link="from penstock.wire.backoff import Backoff\nRETRY_SECONDS: float = 1.0\npauses = Backoff()\n",
        client_core__link="from penstock.wire.backoff import Backoff\nRETRY_SECONDS = 1.0\npauses = Backoff()\n",
    )
    assert violations == [
        Violation(
            "penstock/runtime/link.py", 2, "`runtime` decides nothing: `RETRY_SECONDS` belongs to a machine"
        ),
        Violation("penstock/runtime/link.py", 3, "`runtime` decides nothing: `Backoff` belongs to a machine"),
    ]
