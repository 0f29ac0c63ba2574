"""The stories of `stories/` happen as they are told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.replication.primary_secondary.node.story import played, stories

WRITE = "PENSTOCK_WRITE_STORIES"
"""With this variable the stories are written as they happen now: look at the difference before you keep it."""


@pytest.mark.parametrize("path", stories(), ids=lambda path: path.stem)
def test_a_story_happens_as_it_is_told(path: Path) -> None:
    told = path.read_text(encoding="utf-8")
    happened = played(told)
    if os.environ.get(WRITE):
        path.write_text(happened, encoding="utf-8")
    assert happened == told


def test_there_are_stories() -> None:
    assert len(stories()) >= 10


def test_a_story_that_is_not_true_is_noticed() -> None:
    told = next(path for path in stories() if path.stem == "failover").read_text(encoding="utf-8")
    wrong = told.replace("epoch 2: b serves", "epoch 2: c serves")
    assert wrong != told
    assert played(wrong) == told
