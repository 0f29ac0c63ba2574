"""Several endpoints: a dead one costs a second, the others stand in for it, and where none does each is quoted."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest

import penstock
from penstock.client.blocking.connecting import connect_blocking_to_any
from penstock.client.client import Connecting, connect
from penstock.client.connection.endpoints import NoEndpoint, connect_to_any, endpoint_urls
from penstock.client_core import endpoint_search
from penstock.model.errors import ErrorCode, PenstockError
from tests.client.real import restartable
from tests.ports import free_port


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """The url of somebody who accepts nothing and refuses nothing: the line of those who wait is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as stack:
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"penstock://127.0.0.1:{listener.getsockname()[1]}"


def nobody() -> str:
    """The url of a port where nothing listens."""
    return f"penstock://127.0.0.1:{free_port()}"


def several(*urls: str) -> list[Connecting]:
    return [connect(url, timeout=60.0) for url in urls]


def test_a_silent_endpoint_is_not_waited_for_while_there_is_another(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with restartable() as server:
            with silent() as deaf:
                async with asyncio.timeout(60):  # it would be 200 s
                    client = await connect_to_any(several(deaf, nobody(), server.url), 600.0)
            await client.close()
            here, there = (url.removeprefix("penstock://") for url in (server.url, deaf))
            assert f"using endpoint {here} instead of {there}: no answer" in caplog.messages

    asyncio.run(run())


def test_each_endpoint_is_asked_once_and_quickly_before_any_is_waited_for() -> None:
    asked: list[tuple[str, float, bool]] = []

    class Noted(Connecting):
        async def connect(self, within: float | None = None, *, once: bool = False) -> penstock.Client:
            assert within is not None
            asked.append((str(self.address), within, once))
            await asyncio.sleep(0)
            raise PenstockError(ErrorCode.UNREACHABLE, "not now")

    one, two = Noted("penstock://one:1", 60.0, None), Noted("penstock://two:2", 60.0, None)

    async def run() -> None:
        with pytest.raises(NoEndpoint):
            await connect_to_any([one, two], 0.05)

    asyncio.run(run())
    assert [(address, once) for address, _, once in asked[:4]] == [
        *(("one:1", True), ("two:2", True)),
        *(("one:1", False), ("two:2", False)),
    ]
    assert all(within <= endpoint_search.QUICK_SECONDS for _, within, once in asked if once)


def test_where_none_answers_each_is_quoted_without_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_search, "QUICK_SECONDS", 0.2)  # none will answer
    with silent() as deaf:
        gone = nobody()
        hidden = gone.replace("penstock://", "penstock://AK:hush@")

        async def run() -> NoEndpoint:
            with pytest.raises(NoEndpoint) as caught:
                await connect_to_any(several(deaf, hidden), 1.0)
            return caught.value

        error = asyncio.run(run())
    assert error.code is ErrorCode.UNREACHABLE
    assert f"{deaf.removeprefix('penstock://')}: no answer" in error.message
    assert f"{gone.removeprefix('penstock://')}: [Errno" in error.message
    assert "hush" not in error.message


def test_an_endpoint_that_comes_back_is_found_by_who_is_patient() -> None:
    refused = asyncio.Event()

    class Watched(Connecting):
        async def connect(self, within: float | None = None, *, once: bool = False) -> penstock.Client:
            try:
                return await super().connect(within, once=once)
            except PenstockError:
                refused.set()
                raise

    async def run() -> None:
        async with restartable() as server:
            url = server.url
            await server.stop()
            endpoints = [*several(nobody()), Watched(url, 60.0, None)]
            connecting = asyncio.create_task(connect_to_any(endpoints, 600.0))
            async with asyncio.timeout(100):
                await refused.wait()
                await server.start()
                await (await connecting).close()

    asyncio.run(run())


@pytest.mark.parametrize("count", [1, 2])
def test_who_is_not_patient_hears_at_once_that_nothing_listens(count: int) -> None:
    urls = [nobody() for _ in range(count)]
    with pytest.raises(PenstockError, match="Errno"):  # after seconds enough to notice, were it waited for
        connect_blocking_to_any(urls, timeout=3_000.0, name="test", patient=False)


def test_a_refused_key_is_not_tried_again_and_said() -> None:
    asked: list[str] = []

    class Refusing(Connecting):
        async def connect(self, within: float | None = None, *, once: bool = False) -> penstock.Client:
            asked.append(str(self.address))
            raise PenstockError(ErrorCode.UNAUTHENTICATED, "who are you?")

    both = [Refusing("penstock://one:1", 60.0, None), Refusing("penstock://two:2", 60.0, None)]

    async def run() -> None:
        with pytest.raises(NoEndpoint, match=r"one:1: who are you\?; two:2: who") as caught:
            await connect_to_any(both, 600.0)
        assert caught.value.code is ErrorCode.UNAUTHENTICATED

    asyncio.run(run())
    assert asked == ["one:1", "two:2"]


def test_endpoints_are_written_with_commas() -> None:
    assert endpoint_urls("a:1, penstock://b:2,c") == ("penstock://a:1", "penstock://b:2", "penstock://c")
    assert endpoint_urls("a:1") == ("penstock://a:1",)


def test_what_the_first_endpoint_says_of_tls_is_said_for_all() -> None:
    secure = ("penstocks://a:1?ca=ca.pem", "penstocks://b:2?ca=ca.pem")
    assert endpoint_urls("penstocks://a:1, b:2?ca=ca.pem") == secure
    assert endpoint_urls("penstocks://a:1,b:2") == ("penstocks://a:1", "penstocks://b:2")
    mixed = "penstocks://a:1?ca=one.pem,b:2,penstock://c:3"
    assert endpoint_urls(mixed) == ("penstocks://a:1?ca=one.pem", "penstocks://b:2", "penstock://c:3")
