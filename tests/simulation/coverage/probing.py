"""Imports the measured packages with probes in them. Nothing of the product may be imported before `install`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from tests.simulation.coverage.places import HITS, probed


class ProbingFinder(MetaPathFinder):
    """Finds the modules of the measured files as Python would, and loads them with probes."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._names = {str(path): name for name, path in files.items()}
        self._hits: dict[str, bytearray] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a measured module; None of every other."""
        if not fullname.startswith("penstock."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        name = self._names.get(spec.origin or "") if spec is not None else None
        if spec is None or spec.origin is None or name is None:
            return None
        spec.loader = _ProbingLoader(fullname, spec.origin, name, self._hits)
        return spec

    def take(self) -> dict[str, set[int]]:
        """Which probes left a mark since they were taken last, by file."""
        taken = {
            name: {number for number, hit in enumerate(hits) if hit} for name, hits in self._hits.items()
        }
        for hits in self._hits.values():
            hits[:] = bytes(len(hits))
        return {name: numbers for name, numbers in taken.items() if numbers}


class _ProbingLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, name: str, hits: dict[str, bytearray]) -> None:
        super().__init__(fullname, path)
        self._name = name
        self._hits = hits
        self._places = 0

    def get_code(self, fullname: str) -> CodeType:
        """From the source, whatever is cached, and without leaving anything in the cache."""
        found = probed(self.get_data(self.path).decode(), self._name)
        self._places = len(found.places)
        return compile(found.tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        hits = self._hits[self._name] = bytearray(self._places)
        setattr(module, HITS, hits)
        exec(code, module.__dict__)


def install(files: Mapping[str, Path]) -> ProbingFinder:
    """From now on these files are imported with probes; raises RuntimeError where that is too late."""
    late = [name for name in sys.modules if name == "penstock" or name.startswith("penstock.")]
    if late:
        raise RuntimeError(f"imported already: {', '.join(late[:3])}")
    finder = ProbingFinder(files)
    sys.meta_path.insert(0, finder)
    return finder
