"""What tests of the front end share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frontend.pipeline import Pipeline


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Pipeline]:
    """A whole front end over a node, without users."""
    pipeline = Pipeline(tmp_path)
    yield pipeline
    pipeline.usage.close()
