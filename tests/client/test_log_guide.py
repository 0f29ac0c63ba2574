"""`docs/guide/log.md` does what it says: its commands and its Python are run from top to bottom, and compared."""

from __future__ import annotations

import asyncio

import pytest

from tests.client.guide_page import URL, GuidePage, matches
from tests.client.real import served_in_a_thread

PAGE = GuidePage("log.md")


def test_the_page_can_be_typed_from_top_to_bottom() -> None:
    with served_in_a_thread() as url:
        assert asyncio.run(PAGE.type_all(url)) > 10


def test_the_blocking_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with served_in_a_thread() as url:
        PAGE.run_block("python blocking", URL, url)
    assert capsys.readouterr().out.splitlines() == [
        "['home', 'shop', 'cart']",
        "1 home",
        "2 shop",
        "3 cart",
        "4",
    ]


def test_what_differs_is_noticed() -> None:
    assert matches("a  … ago\nb 2026-01-01 00:00:00.000\n", "a     4s ago\nb 2026-05-05 11:11:11.111\n")
    assert not matches("next  901\n", "next  900\n")
    assert not matches("one\n", "one\ntwo\n")
