"""A driver that is killed with signal 9 again and again writes every row once; `make pipeline-kills` does it for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.kills import run_kills


@pytest.mark.slow
def test_a_driver_killed_at_any_moment_writes_every_row_once(tmp_path: Path) -> None:
    assert run_kills("usage", 2, 4711, tmp_path).rows > 0
