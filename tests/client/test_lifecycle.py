"""A followed queue through the client: who had a message and what went wrong is in the log, which nobody spoils by accident."""

from __future__ import annotations

import asyncio

import pytest

import penstock
from penstock import Client, ErrorCode, PenstockError
from penstock.columnar.lifecycle import LIFECYCLE, LIFECYCLE_QUEUE, Change
from penstock.columnar.reading import Row, rows_of
from tests.client.peer import async_test
from tests.client.real import served


async def rows_until(client: Client, change: Change) -> list[Row]:
    """Reads the log from its beginning until there is such a row."""
    while True:
        try:
            rows: list[Row] = []
            async with asyncio.timeout(60):
                async for message in client.queue(LIFECYCLE_QUEUE).log().messages(follow=True):
                    rows += rows_of(LIFECYCLE, bytes(message.body))
                    if any(row["change"] == change for row in rows):
                        return rows
        except PenstockError as error:  # the log is made with its first row
            if error.code is not ErrorCode.QUEUE_NOT_FOUND:
                raise
            await client.describe_node()


@async_test
async def test_who_had_a_message_and_what_went_wrong_is_told() -> None:
    async with served() as (server, client):
        orders = await client.create_queue("orders", lifecycle=True)
        await orders.send_batch([b"one", b"two"])
        async with penstock.connect(server.url, name="billing-7") as consumer:
            first, second = await consumer.queue("orders").receive(2)
            await first.release(error=ValueError("no such customer"))
            await consumer.queue("orders").release_batch([second], error="x" * 5_000)
        await (await orders.receive(2)).delete()
        rows = await rows_until(client, Change.DELETED)
        leased = [row for row in rows if row["change"] == Change.LEASED]
        released = [row for row in rows if row["change"] == Change.RELEASED]
        assert leased[0]["consumer"] == "billing-7"
        assert [row["error"] for row in released] == ["ValueError: no such customer", "x" * 1_000]


@async_test
async def test_the_log_is_refused_to_everybody_but_readers() -> None:
    async with served() as (_, client):
        orders = await client.create_queue("orders", lifecycle=True)
        await orders.send(b"one")
        await rows_until(client, Change.SENT)
        log = client.queue(LIFECYCLE_QUEUE)
        for refused in (
            client.delete_queue(LIFECYCLE_QUEUE),
            client.alter_queue(LIFECYCLE_QUEUE, lifecycle=True),
            log.send(b"forged"),
            log.purge(),
        ):
            with pytest.raises(PenstockError, match="written by Penstock itself"):
                await refused
        changed = await client.alter_queue(LIFECYCLE_QUEUE, retention=3_600)
        assert changed.settings.retention_ms == 3_600_000
