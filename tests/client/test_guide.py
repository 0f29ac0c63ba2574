"""The guide does what it says: every snippet on the page is run, from top to bottom, against a real server."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from tests.client.peer import async_test
from tests.client.real import served_in_a_thread

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "python-client.md"
URL = "penstock://127.0.0.1:9326"


def snippets(kind: str, url: str) -> list[tuple[int, str]]:
    """The snippets of one kind, each with its line on the page."""
    text = GUIDE.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start(1)), found[1].replace(URL, url))
        for found in re.finditer(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]


@async_test
async def test_the_page_can_be_typed_from_top_to_bottom() -> None:
    namespace: dict[str, object] = {}
    with served_in_a_thread() as url:
        found = snippets("python", url)
        assert len(found) > 15
        for line, snippet in found:
            tree = ast.increment_lineno(ast.parse(snippet), line)
            code = compile(tree, str(GUIDE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, namespace)
            if inspect.isawaitable(result):
                await result


def test_the_blocking_snippet_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with served_in_a_thread() as url:
        ((line, snippet),) = snippets("python blocking", url)
        exec(compile(ast.increment_lineno(ast.parse(snippet), line), str(GUIDE), "exec"), {})
    assert capsys.readouterr().out.splitlines()[0] == "hello"
