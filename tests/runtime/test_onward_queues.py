"""Every way in which a message reaches a queue that its sender did not name, and who may open it.

A real server with both protocols: the native client, and boto3. `docs/security.md` has the list.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

import penstock
from penstock.frontend.queues.metadata import decode, encode, key_of
from penstock.model.errors import ErrorCode, PenstockError
from penstock.sqs.attributes.redrive import RedriveAllowPolicy
from tests.runtime.harness import async_test
from tests.runtime.native.test_users import Someone, UserServer, serving_users

ARN = "arn:aws:sqs:us-east-1:000000000000:"
DENY = {"RedriveAllowPolicy": json.dumps({"redrivePermission": "denyAll"})}
CREATES = ("sqs:CreateQueue", "sqs:SetQueueAttributes", "sqs:GetQueueAttributes", "sqs:GetQueueUrl")


def only(*names: str) -> dict[str, str]:
    sources = [ARN + name for name in names]
    return {"RedriveAllowPolicy": json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": sources})}


def redrive_to(name: str) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": ARN + name, "maxReceiveCount": 1})}


class Sqs:
    """boto3 with somebody's key."""

    def __init__(self, there: UserServer, key: Someone | None) -> None:
        self._client = boto3.client(
            "sqs",
            endpoint_url=there.server.sqs_url,
            region_name="us-east-1",
            aws_access_key_id=key.access_key if key is not None else "any",
            aws_secret_access_key=key.secret_key if key is not None else "thing",
            config=Config(retries={"max_attempts": 1}),
        )
        self._url = f"{there.server.sqs_url}/000000000000/"

    async def create(self, name: str, **attributes: str) -> None:
        await asyncio.to_thread(self._client.create_queue, QueueName=name, Attributes=attributes)

    async def alter(self, name: str, **attributes: str) -> None:
        call = self._client.set_queue_attributes
        await asyncio.to_thread(call, QueueUrl=self._url + name, Attributes=attributes)

    async def move(self, source: str, target: str | None) -> None:
        wanted = {"SourceArn": ARN + source} | ({"DestinationArn": ARN + target} if target else {})
        await asyncio.to_thread(self._client.start_message_move_task, **wanted)


@asynccontextmanager
async def visited(tmp_path: Path) -> AsyncIterator[tuple[UserServer, Someone, Someone]]:
    """A server, its root, and somebody who may make and use queues that begin with `mal`, and no others."""
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        mallory = await there.user("mallory", "sqs:*", on=f"{ARN}mal*")
        yield there, root, mallory


async def refused(doing: Any, sentence: str) -> None:
    with pytest.raises(PenstockError, match=sentence) as caught:
        await doing
    assert caught.value.code is ErrorCode.ACCESS_DENIED


async def refused_by_sqs(doing: Any, code: str) -> None:
    with pytest.raises(ClientError) as caught:
        await doing
    assert code in caught.value.response["Error"]["Code"]


# --- dead letters: who may point a queue at another -----------------------------------------------------------


@pytest.mark.parametrize("policy", [DENY, only("somebody-else")], ids=["denyAll", "byQueue"])
@async_test
async def test_no_queue_sends_its_dead_letters_where_they_are_not_wanted(
    tmp_path: Path, policy: dict[str, str]
) -> None:
    async with visited(tmp_path) as (there, root, mallory):
        await Sqs(there, root).create("vip", **policy)
        async with there.as_(mallory) as client:
            await refused(
                client.create_queue("mal", dead_letter_queue="vip", max_receives=1), "RedriveAllowPolicy"
            )
            await client.create_queue("mal")
            await refused(
                client.alter_queue("mal", dead_letter_queue="vip", max_receives=1), "RedriveAllowPolicy"
            )
            await refused(client.alter_queue("mal", dead_letter_queue="vip"), "RedriveAllowPolicy")
        sqs = Sqs(there, mallory)
        await refused_by_sqs(sqs.alter("mal", **redrive_to("vip")), "InvalidParameterValue")
        await refused_by_sqs(sqs.create("mal-two", **redrive_to("vip")), "InvalidParameterValue")
        async with there.as_(root) as owner:  # the owner of both is held to it too, as in SQS
            await refused(owner.alter_queue("mal", dead_letter_queue="vip"), "RedriveAllowPolicy")
            assert (await owner.describe_queue("mal")).settings.dead_letter_queue is None


@async_test
async def test_a_queue_that_is_named_may(tmp_path: Path) -> None:
    async with visited(tmp_path) as (there, root, mallory):
        await Sqs(there, root).create("vip", **only("mal"))
        async with there.as_(mallory) as client:
            await client.create_queue("mal", dead_letter_queue="vip", max_receives=1)
            await refused(client.create_queue("mal-two", dead_letter_queue="vip"), "RedriveAllowPolicy")


@async_test
async def test_without_users_the_policy_holds_in_both_protocols(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there, penstock.connect(there.server.url) as client:
        sqs = Sqs(there, None)
        await sqs.create("vip", **DENY)
        await refused(client.create_queue("mal", dead_letter_queue="vip"), "RedriveAllowPolicy")
        await refused_by_sqs(sqs.create("mal", **redrive_to("vip")), "InvalidParameterValue")


@async_test
async def test_what_another_front_end_has_just_written_counts(tmp_path: Path) -> None:
    """The cache may be behind the store: so the store is asked."""
    async with visited(tmp_path) as (there, root, mallory), there.as_(mallory) as client:
        await Sqs(there, root).create("vip")
        await there.deafen()
        async with there.store() as store:
            entry = await store.get(key_of("vip"))
            assert entry is not None
            metadata = decode(entry.value)
            attributes = msgspec.structs.replace(
                metadata.attributes, redrive_allow_policy=RedriveAllowPolicy("denyAll")
            )
            denied = msgspec.structs.replace(metadata, attributes=attributes)
            await store.put(entry.key, encode(denied), entry.version)
        await refused(client.create_queue("mal", dead_letter_queue="vip"), "RedriveAllowPolicy")


@async_test
async def test_where_the_store_cannot_be_asked_nothing_is_made(tmp_path: Path) -> None:
    async with visited(tmp_path) as (there, root, mallory), there.as_(mallory, timeout=0.5) as client:
        await Sqs(there, root).create("vip")
        await there.deafen()
        await there.lose_store()
        with pytest.raises(PenstockError) as caught:
            await client.create_queue("mal", dead_letter_queue="vip")
        assert caught.value.code is ErrorCode.METADATA_UNAVAILABLE


@async_test
async def test_who_may_not_make_the_queue_makes_nobody_look(tmp_path: Path) -> None:
    """The store is not asked on behalf of somebody without rights, or beyond a limit."""
    async with visited(tmp_path) as (there, _, mallory), there.as_(mallory) as client:
        await there.deafen()
        await there.lose_store()
        await refused(client.create_queue("vip", dead_letter_queue="mal"), r"sqs:CreateQueue on .*vip")


# --- the ways of a dead letter --------------------------------------------------------------------------------


async def spent(client: Any) -> None:
    """Received once too often."""
    queue = await client.create_queue("mal", dead_letter_queue="mal-dlq", max_receives=1)
    await queue.send(b"one")
    (message,) = await queue.receive()
    await message.release()


async def expired(client: Any) -> None:
    """Its time to live is over."""
    queue = await client.create_queue("mal", dead_letter_queue="mal-dlq")
    await queue.send(b"one", ttl=0.01)


async def overflown(client: Any) -> None:
    """The queue is full, and the oldest makes room."""
    queue = await client.create_queue(
        "mal", dead_letter_queue="mal-dlq", max_messages=1, overflow="dead-letter"
    )
    await queue.send(b"one")
    await queue.send(b"two")


async def rescued(client: Any) -> None:
    """The queue was deleted while the message was delayed."""
    queue = await client.create_queue("mal", dead_letter_queue="mal-dlq")
    await queue.send(b"one", delay=600)
    await client.delete_queue("mal")


async def late(client: Any) -> None:
    """It came too late for the order of its queue."""
    queue = await client.create_queue("mal", ordering="clock", stamps="producer", window=0)
    await queue.send(b"on time")
    (message,) = await queue.receive(wait=20)
    await queue.send(b"one", timestamp=message.timestamp_id.time_us / 1e6 - 3_600)


WAYS: dict[str, tuple[Callable[[Any], Awaitable[None]], str]] = {
    "max-receives": (spent, "mal-dlq"),
    "expired": (expired, "mal-dlq"),
    "overflow": (overflown, "mal-dlq"),
    "queue-deleted": (rescued, "mal-dlq"),
    "late": (late, "mal.late"),
}


@pytest.mark.parametrize("way", WAYS)
@async_test
async def test_by_each_way_a_message_arrives_where_the_settings_say(tmp_path: Path, way: str) -> None:
    """And nowhere else: what was checked when the queue was made is all there is to check."""
    goes, target = WAYS[way]
    async with visited(tmp_path) as (there, root, mallory), there.as_(mallory) as client:
        await Sqs(there, root).create("vip", **DENY)
        await goes(client)
        (message,) = await client.queue(target).receive(wait=20)
        assert bytes(message.body) == b"one"
        assert message.dead_letter is not None
        assert (message.dead_letter.source, message.dead_letter.reason) == ("mal", way)
        async with there.as_(root) as owner:
            assert (await owner.describe_queue("vip")).statistics.sent_total == 0


# --- late messages --------------------------------------------------------------------------------------------


@async_test
async def test_who_makes_a_sorted_queue_must_be_allowed_to_make_the_one_for_late_messages(
    tmp_path: Path,
) -> None:
    async with serving_users(tmp_path) as there:
        await there.user("ada", root=True)
        sam = await there.user("sam", *CREATES)  # on orders, and nothing else
        async with there.as_(sam) as client:
            await refused(
                client.create_queue("orders", ordering="causal"), r"sqs:CreateQueue on .*orders\.late"
            )
            await refused_by_sqs(
                Sqs(there, sam).create("orders", **{"Penstock.Ordering": "causal"}), "AccessDenied"
            )
            await client.create_queue("orders", ordering="fifo")


@async_test
async def test_late_messages_go_nowhere_where_they_are_not_wanted(tmp_path: Path) -> None:
    async with (
        visited(tmp_path) as (there, root, mallory),
        there.as_(root) as owner,
        there.as_(mallory) as client,
    ):
        await owner.create_queue("mal.late")
        sqs = Sqs(there, root)
        await sqs.alter("mal.late", **DENY)
        await refused(client.create_queue("mal", ordering="causal"), "RedriveAllowPolicy")
        wanted = {"Penstock.Ordering": "causal"}
        await refused_by_sqs(Sqs(there, mallory).create("mal", **wanted), "InvalidAttributeValue")
        await sqs.alter("mal.late", **only("mal"))
        await client.create_queue("mal", ordering="causal")


# --- moves that somebody asks for -----------------------------------------------------------------------------


@async_test
async def test_who_redrives_elsewhere_must_be_allowed_to_send_there(tmp_path: Path) -> None:
    async with visited(tmp_path) as (there, root, mallory), there.as_(mallory) as client:
        await Sqs(there, root).create("vip")
        await spent(client)
        await refused(client.queue("mal-dlq").redrive("vip"), r"sqs:SendMessage on .*vip")
        await refused_by_sqs(Sqs(there, mallory).move("mal-dlq", "vip"), "AccessDenied")
        async with there.as_(root) as owner:
            assert (await owner.describe_queue("vip")).statistics.sent_total == 0


@async_test
async def test_a_redrive_without_a_target_leads_back_and_nowhere_else(tmp_path: Path) -> None:
    async with (
        visited(tmp_path) as (there, root, mallory),
        there.as_(mallory) as client,
        there.as_(root) as owner,
    ):
        vip = await owner.create_queue("vip", dead_letter_queue="mal-dlq", max_receives=1)
        await spent(client)
        await client.queue("mal-dlq").send(b"never died")
        assert await client.queue("mal-dlq").redrive() == 1
        (back,) = await client.queue("mal").receive(wait=20)
        assert bytes(back.body) == b"one"
        assert (await vip.describe()).statistics.sent_total == 0
        (stayed,) = await client.queue("mal-dlq").receive()
        assert bytes(stayed.body) == b"never died"


@async_test
async def test_a_redrive_leads_back_by_name(tmp_path: Path) -> None:
    """Rights go by names as well: a queue that was made again is the same to a policy and to a dead letter."""
    async with (
        visited(tmp_path) as (there, root, mallory),
        there.as_(mallory) as client,
        there.as_(root) as owner,
    ):
        await spent(client)
        await client.delete_queue("mal")
        await owner.create_queue("mal")
        await client.queue("mal-dlq").redrive()
        (back,) = await owner.queue("mal").receive(wait=20)
        assert bytes(back.body) == b"one"


@async_test
async def test_receiving_from_several_queues_moves_nothing(tmp_path: Path) -> None:
    async with (
        visited(tmp_path) as (there, root, mallory),
        there.as_(mallory) as client,
        there.as_(root) as owner,
    ):
        await (await owner.create_queue("vip")).send(b"secret")
        await client.create_queue("mal")
        with pytest.raises(PenstockError) as caught:
            await penstock.PriorityGroup(client, {"mal": 1, "vip": 9}).receive()
        assert caught.value.code is ErrorCode.ACCESS_DENIED
        assert (await owner.describe_queue("vip")).statistics.ready == 1


# --- replies --------------------------------------------------------------------------------------------------


@async_test
async def test_a_request_has_no_reply_sent_to_a_queue_of_its_choice(tmp_path: Path) -> None:
    """The worker may send to queues where the sender may not."""
    async with (
        visited(tmp_path) as (there, root, mallory),
        there.as_(mallory) as client,
        there.as_(root) as worker,
    ):
        await worker.create_queue("vip")
        queue = await client.create_queue("mal")
        forged = {"penstock.reply-to": "vip", "penstock.correlation-id": "x"}
        await queue.send(b"please", attributes=forged)
        (message,) = await worker.queue("mal").receive()
        with pytest.raises(PenstockError, match="does not begin with 'reply-'"):
            await message.reply(b"to anybody")
        with pytest.raises(PenstockError, match="not in 'others'"):
            await message.reply(b"to anybody", to="others")
        assert (await worker.describe_queue("vip")).statistics.sent_total == 0
        assert await message.reply(b"on purpose", to="vip")
        assert (await worker.describe_queue("vip")).statistics.sent_total == 1


@async_test
async def test_who_replies_must_be_allowed_to_send_to_the_reply_queue(tmp_path: Path) -> None:
    async with visited(tmp_path) as (there, root, mallory):
        worker = await there.user("wanda", "sqs:ReceiveMessage", "sqs:GetQueueAttributes", on=f"{ARN}mal*")
        async with there.as_(mallory) as client, there.as_(worker) as working:
            queue = await client.create_queue("mal")
            forged = {"penstock.reply-to": "reply-mine", "penstock.correlation-id": "x"}
            await queue.send(b"please", attributes=forged)
            (message,) = await working.queue("mal").receive()
            async with there.as_(root) as owner:
                await owner.create_queue("reply-mine")
            await refused(message.reply(b"no"), "reply-mine")
