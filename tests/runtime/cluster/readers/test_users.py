"""Tickets are for those who may read: the front end asks for the same right as for reading through it."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

import penstock
from penstock.metadata.users.administration import UserAdministration
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.log_messages import LocateLog, LogAddress
from tests.runtime.cluster.readers.cluster import Readable, readable_cluster
from tests.runtime.cluster.readers.test_direct_reads import MESSAGES, SIZE, a_log, read
from tests.runtime.harness import async_test, until

ACCOUNT = "000000000000"
CLICKS = f"arn:aws:sqs:us-east-1:{ACCOUNT}:clicks"


async def user(cluster: Readable, name: str, *allowed: str, root: bool = False) -> tuple[str, str]:
    """The key and the secret of a new user who may do these things with the log."""
    shared = cluster.front_end._shared
    statement = {"Effect": "Allow", "Action": [f"sqs:{action}" for action in allowed], "Resource": CLICKS}
    policies = {"p": json.dumps({"Version": "2012-10-17", "Statement": [statement]})}
    users = UserAdministration(cluster.front_end._store, secrets.token_bytes, lambda: 1)
    _, made, secret = await users.create_user(name, ACCOUNT, root, policies, shared.users._master_key)
    await until(lambda: shared.users.find_key(made.key_id) is not None)
    return made.key_id, secret


@async_test
async def test_only_those_who_may_read_get_tickets(tmp_path: Path) -> None:
    async with readable_cluster(tmp_path) as cluster:
        queue = await a_log(cluster, 2)
        queue_id = (await queue.describe()).queue_id
        await user(cluster, "ada", "*", root=True)  # the first must be one
        reader = await user(cluster, "reader", "GetQueueAttributes", "ReceiveMessage")
        writer = await user(cluster, "writer", "GetQueueAttributes", "SendMessage")
        url = f"penstock://{cluster.front.address}"
        async with penstock.connect(url, access_key=reader[0], secret_key=reader[1]) as client:
            log = client.queue("clicks").log()
            passed = cluster.front.back_bytes
            assert len(await read(log, direct=True)) == MESSAGES
            assert log.direct_bytes > SIZE
            assert cluster.front.back_bytes - passed < SIZE // 20
        async with penstock.connect(url, access_key=writer[0], secret_key=writer[1]) as client:
            log = client.queue("clicks").log()
            with pytest.raises(PenstockError) as caught:
                await log._route.link.ask(LocateLog(queue_id, 0), LogAddress)
            assert caught.value.code is ErrorCode.ACCESS_DENIED
            with pytest.raises(PenstockError, match="ReceiveMessage"):
                await read(log, direct=True)
            assert log.direct_bytes == 0
