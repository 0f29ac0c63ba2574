"""`docs/guide/ordering.md` does what it says, from the command line, from Python and from boto3."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.runtime.embedded import running_server
from tests.client.guide_page import GuidePage
from tests.client.real import served_in_a_thread

PAGE = GuidePage("ordering.md")


def test_the_page_can_be_typed_from_top_to_bottom() -> None:
    with served_in_a_thread() as url:
        assert asyncio.run(PAGE.type_all(url)) > 8


def test_any_sdk_can_ask_for_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")

    async def serve() -> None:
        async with running_server(tmp_path) as server:
            address = server.sqs_url.removeprefix("http://")
            await asyncio.to_thread(PAGE.run_block, "python boto3", "127.0.0.1:9324", address)

    asyncio.run(serve())
    assert capsys.readouterr().out == "first\nsecond\n"
