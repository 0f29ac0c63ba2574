"""Importing the package is cheap, and everything it promises is there."""

from __future__ import annotations

import subprocess
import sys

import penstock
import penstock.client


def test_importing_penstock_imports_nothing_heavy_until_the_client_is_used() -> None:
    program = (
        "import sys; before = set(sys.modules); import penstock; after = set(sys.modules);"
        "assert after - before == {'penstock'}, after - before;"
        "assert penstock.__version__; penstock.connect; assert 'asyncio' in sys.modules"
    )
    subprocess.run([sys.executable, "-I", "-c", program], check=True)


def test_all_public_names_are_there_and_documented() -> None:
    assert set(penstock.__all__) - {"__version__"} == set(penstock.client.__all__)
    assert dir(penstock) == penstock.__all__
    for name in penstock.__all__:
        assert getattr(penstock, name).__doc__, name


def test_every_public_method_is_documented() -> None:
    for name in penstock.client.__all__:
        kind = getattr(penstock, name)
        if not isinstance(kind, type) or not kind.__module__.startswith("penstock.client"):
            continue
        for attribute, value in vars(kind).items():
            if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
                assert value.__doc__, f"{name}.{attribute}"
