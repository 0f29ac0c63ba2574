"""Requests that the same leader did not take: asked again soon, then more slowly, and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, encode, node_key, partition_key
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.routing import partition_line
from penstock.routing.cluster_map import ClusterMap
from penstock.runtime.cluster.link.node_links import NodeLinks
from penstock.runtime.cluster.link.partition_calls import PartitionCalls
from penstock.steps.step import Ask, Outcome, Reply
from penstock.wire.messages import Done, Purge, Request, Send
from tests.runtime.harness import async_test, until

Told = Callable[[Reply | PenstockError], None]


class Leader:
    """A link to a node that has not heard yet that it serves, or is not ready, for so many requests."""

    incarnation = 1

    def __init__(self, refusals: int, code: ErrorCode = ErrorCode.NOT_PRIMARY) -> None:
        self.refusals = refusals
        self.code = code
        self.requests: list[Request] = []
        self.asked: list[float] = []

    def to(self, address: str) -> Leader:
        return self

    def cancel(self, ticket: int) -> None:
        raise AssertionError("nothing here waits for messages")

    def ask(self, request: Request, body: Buffer, done: Told, stands_for: int = 1) -> int:
        loop = asyncio.get_running_loop()
        self.asked.append(loop.time())
        self.requests.append(request)
        refused = len(self.asked) <= self.refusals
        loop.call_soon(
            done,
            PenstockError(self.code, "not yet") if refused else Reply(Done(), memoryview(b"")),
        )
        return len(self.asked)


def map_of_one() -> ClusterMap:
    cluster = ClusterMap()
    node = NodeEntry(node="a", native="a:1", peers="a:2", started_ms=1)
    entry = PartitionEntry(
        partition=1,
        queue_id=1,
        queue="q",
        ordinal=0,
        settings=QueueSettings(),
        epoch=1,
        serving=1,
        primary="a",
        replicas=["a"],
        in_sync=["a"],
    )
    cluster.apply(node_key("a"), encode(node))
    cluster.apply(partition_key(1), encode(entry))
    return cluster


async def _nothing_new(key: str) -> None:
    """The store says what the map says."""


@async_test
async def test_a_leader_that_has_not_heard_of_it_is_asked_again_ever_more_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition_line, "LOOK_AGAIN_SECONDS", 1_000.0)  # only the retries wake anybody
    leader = Leader(refusals=4)
    loop = asyncio.get_running_loop()
    calls = PartitionCalls(map_of_one(), cast(NodeLinks, leader), _nothing_new, loop)
    answered: asyncio.Future[Outcome] = loop.create_future()
    calls.start(Ask(Purge(1), partition=1), answered.set_result)
    assert isinstance(await answered, Reply)
    pauses = [after - before for before, after in zip(leader.asked, leader.asked[1:], strict=False)]
    assert len(pauses) == 4
    for pause, least in zip(pauses, (0.004, 0.008, 0.016, 0.032), strict=True):
        assert pause >= least - 0.001
    await calls.close()


@async_test
async def test_a_send_that_too_few_replicas_could_take_is_asked_again_in_order() -> None:
    leader = Leader(refusals=3, code=ErrorCode.NOT_ENOUGH_REPLICAS)
    loop = asyncio.get_running_loop()
    calls = PartitionCalls(map_of_one(), cast(NodeLinks, leader), _nothing_new, loop)
    first: asyncio.Future[Outcome] = loop.create_future()
    second: asyncio.Future[Outcome] = loop.create_future()
    calls.start(Ask(Send(1, 7, 1), partition=1), first.set_result)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    calls.start(Ask(Send(1, 7, 2), partition=1), second.set_result)
    assert isinstance(await first, Reply)
    assert isinstance(await second, Reply)
    numbers = [request.number for request in leader.requests if isinstance(request, Send)]
    assert numbers[-2:] == [1, 2]
    await calls.close()


@async_test
async def test_too_few_replicas_for_the_whole_patience_is_said_in_the_nodes_words() -> None:
    leader = Leader(refusals=10**6, code=ErrorCode.NOT_ENOUGH_REPLICAS)
    loop = asyncio.get_running_loop()
    calls = PartitionCalls(map_of_one(), cast(NodeLinks, leader), _nothing_new, loop)
    answered: asyncio.Future[Outcome] = loop.create_future()
    calls.start(Ask(Send(1, 7, 1), partition=1, patience_ms=250), answered.set_result)
    outcome = await answered
    assert isinstance(outcome, PenstockError)
    assert (outcome.code, outcome.message) == (ErrorCode.NOT_ENOUGH_REPLICAS, "not yet")
    assert len(leader.asked) >= 2
    await calls.close()


@async_test
async def test_nothing_is_remembered_of_a_partition_that_is_gone() -> None:
    cluster = map_of_one()
    loop = asyncio.get_running_loop()
    calls = PartitionCalls(cluster, cast(NodeLinks, Leader(refusals=1)), _nothing_new, loop)
    answered: asyncio.Future[Outcome] = loop.create_future()
    calls.start(Ask(Purge(1), partition=1), answered.set_result)
    await answered
    assert calls.lines._looked
    cluster.apply(partition_key(1), None)
    await until(lambda: not calls.lines._looked)
    too_late: asyncio.Future[Outcome] = loop.create_future()
    calls.start(Ask(Purge(1), partition=1), too_late.set_result)
    assert isinstance(await too_late, PenstockError)
    await asyncio.sleep(0)
    assert not calls.lines._looked
    await calls.close()


class HungOrQuick:
    """A link to a node that answers at once, or takes requests and says nothing."""

    def __init__(self, stored: list[int], *, hangs: bool) -> None:
        self.stored = stored
        self.hangs = hangs
        self.incarnation = 1
        self.under_way: list[Told] = []

    def ask(self, request: Request, body: Buffer, done: Told, stands_for: int = 1) -> int:
        assert isinstance(request, Send)
        if self.hangs:
            self.under_way.append(done)
        else:
            self.stored.append(request.number)
            asyncio.get_running_loop().call_soon(done, Reply(Done(), memoryview(b"")))
        return 1

    def cancel(self, ticket: int) -> None:
        raise AssertionError("nothing here waits for messages")

    def lose(self) -> None:
        """As `TcpLink` does: it is lost at once, and what was under way is told in the next turn of the loop."""
        self.incarnation = 0
        under_way, self.under_way = self.under_way, []
        for done in under_way:
            asyncio.get_running_loop().call_soon(done, PenstockError(ErrorCode.UNREACHABLE, "lost"))


class LinksByAddress(dict[str, HungOrQuick]):
    def to(self, address: str) -> HungOrQuick:
        return self[address]


def map_of_two(epoch: int, primary: str, cluster: ClusterMap | None = None) -> ClusterMap:
    cluster = cluster or ClusterMap()
    for name in ("a", "b"):
        node = NodeEntry(node=name, native=f"{name}:1", peers=f"{name}:2", started_ms=1)
        cluster.apply(node_key(name), encode(node))
    entry = PartitionEntry(
        partition=1,
        queue_id=1,
        queue="q",
        ordinal=0,
        settings=QueueSettings(ordering="fifo", replicas=2),
        epoch=epoch,
        serving=epoch,
        primary=primary,
        replicas=["a", "b"],
        in_sync=["a", "b"],
    )
    cluster.apply(partition_key(1), encode(entry))
    return cluster


@async_test
async def test_sends_stay_in_order_when_another_node_leads_and_the_old_one_hangs() -> None:
    stored: list[int] = []
    cluster = map_of_two(1, "a")
    links = LinksByAddress({"a:1": HungOrQuick(stored, hangs=True), "b:1": HungOrQuick(stored, hangs=False)})
    loop = asyncio.get_running_loop()
    calls = PartitionCalls(cluster, cast(NodeLinks, links), _nothing_new, loop)
    answered: list[asyncio.Future[Outcome]] = [loop.create_future() for _ in range(3)]
    calls.start(Ask(Send(1, 7, 1), partition=1), answered[0].set_result)
    await asyncio.sleep(0)
    map_of_two(2, "b", cluster)
    calls.start(Ask(Send(1, 7, 2), partition=1), answered[1].set_result)
    calls.start(Ask(Send(1, 7, 3), partition=1), answered[2].set_result)
    assert all(isinstance(outcome, Reply) for outcome in await asyncio.gather(*answered))
    assert stored == [1, 2, 3]
    await calls.close()


@async_test
async def test_sends_stay_in_order_when_the_connection_is_lost_in_the_turn_in_which_the_next_one_comes() -> (
    None
):
    stored: list[int] = []
    node = HungOrQuick(stored, hangs=True)
    links = LinksByAddress({"a:1": node, "b:1": HungOrQuick(stored, hangs=False)})
    loop = asyncio.get_running_loop()
    calls = PartitionCalls(map_of_two(1, "a"), cast(NodeLinks, links), _nothing_new, loop)
    answered: list[asyncio.Future[Outcome]] = [loop.create_future() for _ in range(3)]
    calls.start(Ask(Send(1, 7, 1), partition=1), answered[0].set_result)
    calls.start(Ask(Send(1, 7, 2), partition=1), answered[1].set_result)
    node.lose()
    calls.start(Ask(Send(1, 7, 3), partition=1), answered[2].set_result)
    await asyncio.sleep(0)
    node.hangs, node.incarnation = False, 2
    assert all(isinstance(outcome, Reply) for outcome in await asyncio.gather(*answered))
    assert stored == [1, 2, 3]
    await calls.close()


@async_test
async def test_a_timer_that_is_due_already_is_a_timer_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that was held up asks for a time that has passed. uvloop's handle for that does not know its time."""
    loop = asyncio.get_running_loop()
    leader = Leader(refusals=1)
    calls = PartitionCalls(map_of_one(), cast(NodeLinks, leader), _nothing_new, loop)
    past = loop.time() - 1
    monkeypatch.setattr(calls.lines, "next_at", lambda: past)
    calls._set_timer()
    answered: asyncio.Future[Outcome] = loop.create_future()
    calls.start(Ask(Purge(1), partition=1), answered.set_result)
    monkeypatch.undo()
    assert isinstance(await answered, Reply)
    await calls.close()


@async_test
async def test_a_request_that_cannot_be_sent_fails_alone() -> None:
    """Those that go out in the same turn do: here all wait for the same leader, and it comes."""

    class Choosy(Leader):
        def ask(self, request: Request, body: Buffer, done: Told, stands_for: int = 1) -> int:
            if isinstance(request, Send) and request.number == 2:
                raise OverflowError("does not fit")
            return super().ask(request, body, done, stands_for)

    leader = Choosy(refusals=0)
    leader.incarnation = 0
    loop = asyncio.get_running_loop()
    calls = PartitionCalls(map_of_one(), cast(NodeLinks, leader), _nothing_new, loop)
    answered: list[asyncio.Future[Outcome]] = [loop.create_future() for _ in range(3)]
    for number, future in enumerate(answered, 1):
        calls.start(Ask(Send(1, 7, number), partition=1), future.set_result)
    leader.incarnation = 1
    first, second, third = await asyncio.gather(*answered)
    assert isinstance(first, Reply)
    assert isinstance(third, Reply)
    assert isinstance(second, PenstockError)
    assert second.code is ErrorCode.INTERNAL
    assert not calls.lines._lines[1].routes
    await calls.close()


@async_test
async def test_after_a_look_at_the_store_that_fails_in_an_unknown_way_there_may_be_another() -> None:
    async def fails(key: str) -> None:
        raise ValueError("what the store says cannot be read")

    loop = asyncio.get_running_loop()
    calls = PartitionCalls(map_of_one(), cast(NodeLinks, Leader(refusals=1)), fails, loop)
    answered: asyncio.Future[Outcome] = loop.create_future()
    calls.start(Ask(Purge(1), partition=1), answered.set_result)
    assert isinstance(await answered, Reply)
    assert not calls.lines._looking
    await calls.close()


class NoLink(Leader):
    """No link can be made, after so many that could."""

    def __init__(self, links: int) -> None:
        super().__init__(refusals=0)
        self.links = links

    def to(self, address: str) -> Leader:
        self.links -= 1
        if self.links < 0:
            raise ValueError("an address that is none")
        return self


@pytest.mark.parametrize(("links", "code"), [(0, ErrorCode.UNREACHABLE), (1, ErrorCode.INTERNAL)])
@async_test
async def test_a_request_for_which_no_link_can_be_made_is_answered(links: int, code: ErrorCode) -> None:
    loop = asyncio.get_running_loop()
    calls = PartitionCalls(map_of_one(), cast(NodeLinks, NoLink(links)), _nothing_new, loop)
    answered: asyncio.Future[Outcome] = loop.create_future()
    calls.start(Ask(Send(1, 7, 1), partition=1, patience_ms=100), answered.set_result)
    async with asyncio.timeout(10):
        outcome = await answered
    assert isinstance(outcome, PenstockError)
    assert outcome.code is code
    await calls.close()
