"""Queues that are not known in full yet are no targets for dead letters: being made, or made where the layout is behind."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from penstock.cluster.layout.entries import QUEUES, QueueEntry
from penstock.cluster.layout.entries import encode as encode_entry
from penstock.frontend.native.permissions import AccessDeniedError, Permissions, Visit
from penstock.frontend.native.rules import RULES
from penstock.frontend.queues.directory import QueueDirectory
from penstock.frontend.queues.metadata import QueueMetadata, encode, key_of
from penstock.frontend.queues.native_names import DefaultAccount
from penstock.frontend.queues.unfinished_queues import COUNTS_MS, Note, note_of
from penstock.frontend.session import Session
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.store.interface import Change
from penstock.metadata.store.sqlite import open_sqlite_store
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import ClusterMap
from penstock.runtime.native.entrance import ClusterNames
from penstock.sqs.attributes.queue_attributes import QueueAttributes
from penstock.sqs.attributes.redrive import RedriveAllowPolicy
from penstock.sqs.names import DEFAULT_ACCOUNT, DEFAULT_REGION
from penstock.sqs.policies.evaluation import Caller
from penstock.sqs.protocols.http import Peer
from penstock.wire.messages import CreateQueue
from tests.runtime.harness import async_test
from tests.runtime.test_onward_queues import ARN, refused, visited


@async_test
async def test_a_queue_that_sqs_is_still_making_is_no_target(tmp_path: Path) -> None:
    """The engine has it, its RedriveAllowPolicy is not written: as it is in the middle of a CreateQueue elsewhere."""
    async with visited(tmp_path) as (there, root, mallory), there.as_(mallory) as client:
        async with there.as_(root) as owner:
            made = await (await owner.create_queue("vip")).describe()
        await client.create_queue("mal")
        await there.deafen()
        async with there.store() as store:
            left_behind = Note(made.created_ms - COUNTS_MS)
            await store.put(note_of("vip"), msgspec.json.encode(left_behind))
            await client.alter_queue("mal", dead_letter_queue="vip")
            await client.alter_queue("mal", dead_letter_queue=None)
            await store.put(note_of("vip"), msgspec.json.encode(Note(made.created_ms)))
            await refused(client.alter_queue("mal", dead_letter_queue="vip"), "being created")


@async_test
async def test_a_note_that_somebody_without_the_key_has_written_closes_no_queue(tmp_path: Path) -> None:
    async with visited(tmp_path) as (there, root, mallory), there.as_(mallory) as client:
        async with there.as_(root) as owner:
            made = await (await owner.create_queue("vip")).describe()
        await client.create_queue("mal")
        await there.deafen()
        plain = await open_sqlite_store(tmp_path / "metadata.sqlite")
        try:
            await plain.put(note_of("vip"), msgspec.json.encode(Note(made.created_ms)))
            await client.alter_queue("mal", dead_letter_queue="vip")
        finally:
            await plain.close()


@pytest.mark.parametrize("gone", [False, True])
def test_where_the_layout_is_behind_the_policy_counts_by_name(gone: bool) -> None:
    """A queue that another front end has made: its metadata was read just now, of the layout nothing was heard yet."""
    cache, layout = MetadataCache(), ClusterMap()
    attributes = QueueAttributes(redrive_allow_policy=RedriveAllowPolicy("denyAll"))
    stored = encode(QueueMetadata(queue_id=7, attributes=attributes, modified_ms=1))
    cache.apply(Change(key_of("vip"), stored, 1))
    if gone:
        entry = QueueEntry(name="vip", queue_id=7, settings=QueueSettings(), created_ms=1, partitions=[7])
        layout.apply(QUEUES + "vip", encode_entry(entry))
        layout.apply(QUEUES + "vip", None)
    home = DefaultAccount(DEFAULT_ACCOUNT, DEFAULT_REGION)
    permissions = Permissions(home, QueueDirectory(home, cache), ClusterNames(layout))
    caller = Caller(account=home.account, arn=f"arn:aws:iam::{home.account}:root", root=True)
    session = Session(caller=caller, account=home.account, region=home.region, user="ada", unrestricted=True)
    visit = Visit(session, Peer("127.0.0.1", secure=False), "test")
    request = CreateQueue("mal", QueueSettings(dead_letter_queue="vip"))
    if gone:
        assert permissions.check(visit, RULES[CreateQueue], request, 1) == ARN + "mal"
    else:
        with pytest.raises(AccessDeniedError, match="RedriveAllowPolicy"):
            permissions.check(visit, RULES[CreateQueue], request, 1)
