"""The link: greeting, reconnecting, sending again, giving up."""

from __future__ import annotations

import asyncio

import pytest

import penstock
from penstock import ErrorCode, PenstockError
from penstock.client_core.link_table import RESENDS_AT_MOST
from penstock.wire.frames import encode_frame
from penstock.wire.messages import Count, DeleteQueue, Delivery, Done, Failed, Purge, Receive, Redrive, Send
from tests.client.peer import Peer, async_test, connected
from tests.ports import free_port


def refuses_connections() -> str:
    """An address where nobody listens."""
    return f"penstock://127.0.0.1:{free_port()}"


@async_test
async def test_connect_greets_once_and_close_hangs_up() -> None:
    async with Peer() as peer:
        async with penstock.connect(peer.url):
            assert (peer.hellos, len(peer.connections)) == (1, 1)
        await peer.lost.wait()


@async_test
async def test_connect_can_be_awaited_too() -> None:
    async with Peer() as peer:
        client = await penstock.connect(peer.url)
        await client.close()
        await client.close()
        with pytest.raises(PenstockError, match="closed"):
            await client.describe_node()


@async_test
async def test_nobody_there_is_said_with_what_to_do() -> None:
    url = refuses_connections()
    with pytest.raises(PenstockError, match=r"could not reach .*penstock serve") as caught:
        async with penstock.connect(url, timeout=0.1):
            pass
    assert caught.value.code is ErrorCode.UNREACHABLE
    assert caught.value.retryable


@async_test
async def test_a_server_that_never_greets_is_unreachable() -> None:
    async with Peer() as peer:
        peer.greets = False
        with pytest.raises(PenstockError, match="no answer") as caught:
            await penstock.connect(peer.url, timeout=0.1)
        assert caught.value.code is ErrorCode.UNREACHABLE


@async_test
async def test_a_server_that_comes_up_late_is_found() -> None:
    peer = Peer()
    await peer.listen()
    peer.hang_up()
    connecting = asyncio.ensure_future(penstock.connect(peer.url).connect())
    await peer.listen()
    client = await connecting
    await client.close()
    peer.hang_up()


@async_test
async def test_no_common_version_is_final() -> None:
    async with Peer() as peer:
        peer.greets = False
        connecting = asyncio.ensure_future(penstock.connect(peer.url).connect())
        await peer.until(lambda: peer.hellos == 1)
        peer.connections[0].send(1, Failed(ErrorCode.UNSUPPORTED_VERSION, "no"))
        with pytest.raises(PenstockError, match="no") as caught:
            await connecting
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
        assert peer.hellos == 1


@async_test
async def test_unanswered_sends_are_sent_again_in_order_under_the_same_numbers() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        sending = [asyncio.ensure_future(queue.send(f"{index}")) for index in range(5)]
        before = [await peer.next_send() for _ in range(5)]
        before[0].stored(1)
        await sending[0]
        peer.cut()
        after = [await peer.next_send() for _ in range(4)]
        assert [seen.request.number for seen in after] == [2, 3, 4, 5]
        assert [seen.request.after for seen in before] == [0, 1, 2, 3, 4]
        assert [seen.request.after for seen in after] == [0, 2, 3, 4]  # 1 has its answer
        assert [seen.body for seen in after] == [seen.body for seen in before[1:]]
        assert [seen.request.number for seen in before] == [1, 2, 3, 4, 5]
        for index, seen in enumerate(after):
            seen.stored(index + 2)
        assert [sent.sequence for sent in await asyncio.gather(*sending)] == [1, 2, 3, 4, 5]
        assert peer.hellos == 2


@async_test
async def test_requests_made_while_there_is_no_connection_wait_for_one() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        await queue.describe()
        peer.hang_up()
        await peer.lost.wait()
        sending = asyncio.ensure_future(queue.send(b"later"))
        await asyncio.sleep(0)
        await peer.listen()
        (await peer.next_send()).stored()
        assert (await sending).sequence == 1


@async_test
async def test_without_a_connection_for_the_timeout_requests_fail_and_later_ones_try_again() -> None:
    async with connected(timeout=0.2) as (peer, client):
        queue = client.queue("orders")
        await queue.describe()
        peer.hang_up()
        with pytest.raises(PenstockError, match=r"no connection for 0\.2 s") as caught:
            await queue.send(b"lost")
        assert caught.value.code is ErrorCode.UNREACHABLE
        client._link._table.timeout = 30.0
        await peer.listen()
        sending = asyncio.ensure_future(queue.send(b"found"))
        (await peer.next_send()).stored()
        await sending


@async_test
async def test_requests_fail_one_after_the_other_while_one_attempt_hangs() -> None:
    async with connected(timeout=0.05) as (peer, client):
        peer.greets = False
        peer.cut()
        await peer.lost.wait()
        for _ in range(3):
            with pytest.raises(PenstockError, match="no connection"):
                await client.describe_node()
        assert peer.hellos == 2


@async_test
async def test_each_request_waits_its_own_timeout_and_takes_no_time_from_others() -> None:
    async with connected(timeout=0.1) as (peer, client):
        queue = client.queue("orders")
        await queue.describe()
        peer.greets = False
        peer.cut()
        await peer.lost.wait()
        early = asyncio.ensure_future(queue.send(b"early"))
        await peer.until(lambda: peer.hellos == 2)  # an attempt is under way that will never end well
        client._link._table.timeout = 30.0
        late = asyncio.ensure_future(queue.send(b"late"))
        with pytest.raises(PenstockError, match="no connection"):
            await early
        assert not late.done()
        peer.greets = True
        peer.cut()
        seen = await peer.next_send()
        assert seen.body.endswith(b"late")
        seen.stored()
        await late


@async_test
async def test_a_silent_server_is_asked_and_then_left() -> None:
    async with connected() as (peer, client):
        receiving = asyncio.ensure_future(client.queue("orders").receive(wait=20))
        await peer.next(Receive)
        peer.answers_pings = False
        look_alive = client._link._look_alive
        look_alive()
        look_alive()  # nothing was heard since: asks
        await peer.until(lambda: peer.pings == 2)
        look_alive()  # nor now: leaves
        again = await peer.next(Receive)
        assert peer.hellos == 2
        again.answer(Delivery(b"", 0, []))
        assert len(await receiving) == 0


@async_test
async def test_a_server_that_answers_pings_is_waited_for() -> None:
    async with connected() as (peer, client):
        receiving = asyncio.ensure_future(client.queue("orders").receive(wait=20))
        seen = await peer.next(Receive)
        for _ in range(3):
            client._link._look_alive()
            client._link._look_alive()
            await client.queue("orders").describe()  # a round trip: the ping is answered
        assert peer.pings == 4
        seen.answer(Delivery(b"", 0, []))
        await receiving
        assert peer.hellos == 1


@async_test
async def test_silence_is_looked_into_by_itself() -> None:
    async with connected(timeout=0.1) as (peer, client):
        receiving = asyncio.ensure_future(client.queue("orders").receive(wait=20))
        await peer.next(Receive)
        await peer.until(lambda: peer.pings == 2)
        receiving.cancel()


@async_test
async def test_garbage_from_the_server_breaks_the_connection_and_not_the_request() -> None:
    async with connected() as (peer, client):
        sending = asyncio.ensure_future(client.queue("orders").send(b"x"))
        seen = await peer.next_send()
        seen.connection.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        (await peer.next_send()).stored(3)
        assert (await sending).sequence == 3


@async_test
async def test_an_answer_that_is_none_breaks_the_connection_and_not_the_request() -> None:
    async with connected() as (peer, client):
        sending = asyncio.ensure_future(client.queue("orders").send(b"x"))
        seen = await peer.next_send()
        seen.connection.write(b"".join(encode_frame(seen.request_id, b"\x93\xcd\x27\x0f\x01\x02")))
        (await peer.next_send()).stored(3)
        assert (await sending).sequence == 3


@async_test
async def test_the_wrong_answer_fails_the_request_alone() -> None:
    async with connected() as (peer, client):
        sending = asyncio.ensure_future(client.queue("orders").send(b"x"))
        (await peer.next_send()).answer(Done())
        with pytest.raises(PenstockError, match="does not answer the request"):
            await sending
        assert peer.hellos == 1


@async_test
async def test_an_unknown_error_code_is_still_an_error() -> None:
    async with connected() as (peer, client):
        sending = asyncio.ensure_future(client.queue("orders").send(b"x"))
        (await peer.next_send()).answer(Failed("from-the-future", "something new"))
        with pytest.raises(PenstockError, match=r"something new.*from-the-future") as caught:
            await sending
        assert caught.value.code is ErrorCode.INTERNAL


@async_test
async def test_answers_are_understood_however_they_are_cut() -> None:
    async with Peer() as peer:
        peer.one_byte_at_a_time = True
        async with penstock.connect(peer.url) as client:
            receiving = asyncio.ensure_future(client.queue("orders").receive())
            (await peer.next(Receive)).deliver(5, [b"a", b"", b"ccc"])
            assert (await receiving).bodies() == [b"a", b"", b"ccc"]


@async_test
async def test_what_a_stopping_server_refuses_goes_to_the_next_one_in_order() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        sending = [asyncio.ensure_future(queue.send(b"x")) for _ in range(3)]
        seen = [await peer.next_send() for _ in range(3)]
        seen[1].refuse(ErrorCode.SHUTTING_DOWN)
        again = [await peer.next_send() for _ in range(3)]
        assert [one.request.number for one in again] == [1, 2, 3]
        for one in again:
            one.stored()
        await asyncio.gather(*sending)


@async_test
async def test_a_cancelled_request_is_not_sent_again() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        given_up, kept = (asyncio.ensure_future(queue.send(body)) for body in (b"given up", b"kept"))
        await peer.next_send()
        await peer.next_send()
        given_up.cancel()
        await asyncio.wait([given_up])
        peer.cut()
        seen = await peer.next_send()
        assert seen.body.endswith(b"kept")
        seen.stored()
        await kept


@async_test
async def test_a_request_that_always_breaks_the_connection_fails_in_the_end() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.client_core.backoff.FIRST_SECONDS", 0.0)
        await always_break_the_connection()


async def always_break_the_connection() -> None:
    async with connected() as (peer, client):
        sending = asyncio.ensure_future(client.queue("orders").send(b"poison"))
        for _ in range(RESENDS_AT_MOST + 1):
            (await peer.next_send()).connection.cut()
        with pytest.raises(PenstockError, match="broke") as caught:
            await sending
        assert caught.value.code is ErrorCode.UNREACHABLE


@async_test
async def test_deleting_a_queue_twice_by_sending_again_is_a_success() -> None:
    async with connected() as (peer, client):
        deleting = asyncio.ensure_future(client.delete_queue("orders"))
        await peer.next(DeleteQueue)
        peer.cut()
        (await peer.next(DeleteQueue)).refuse(ErrorCode.QUEUE_NOT_FOUND)
        await deleting
        deleting = asyncio.ensure_future(client.delete_queue("orders"))
        (await peer.next(DeleteQueue)).refuse(ErrorCode.QUEUE_NOT_FOUND)
        with pytest.raises(PenstockError):
            await deleting


@async_test
async def test_a_redrive_with_a_limit_is_not_sent_again() -> None:
    async with connected() as (peer, client):
        peer.next_sequence = 100
        moving = asyncio.ensure_future(client.queue("orders").redrive(max_messages=5))
        await peer.next(Redrive)
        peer.cut()
        with pytest.raises(PenstockError, match="may or may not have been carried out"):
            await moving


@async_test
async def test_the_table_is_sent_again_when_connections_break_again_and_again() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        sending = asyncio.ensure_future(queue.send(b"x"))
        purging = asyncio.ensure_future(queue.purge())
        for _ in range(5):
            await peer.next(Send)
            await peer.next(Purge)
            peer.cut()
        (await peer.next(Send)).stored()
        (await peer.next(Purge)).answer(Count(3))
        await sending
        assert await purging == 3
