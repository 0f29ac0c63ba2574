"""Seals: what whoever has the key wrote is read as it was written, and in the place of everything else stands a mark."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.layout.entries import (
    IDS,
    NODES,
    PARTITIONS,
    POSITIONS,
    QUEUES,
    QueueEntry,
    decode_node,
    decode_partition,
    decode_queue,
)
from penstock.frontend.move_tasks import task
from penstock.frontend.queues.metadata import decode as decode_metadata
from penstock.metadata.seals.master_key import MasterKey
from penstock.metadata.seals.seals import (
    LAYOUT_KINDS,
    NoSealError,
    Sealer,
    WrongSealError,
    front_end_sealers,
    layout_sealers,
)
from penstock.metadata.store.interface import ABSENT, Listing, RememberingStore
from penstock.metadata.store.memory import MemoryContents, MemoryStore
from penstock.metadata.store.sealed import SealedStore, sealed
from penstock.metadata.users.register import decode as decode_register
from penstock.metadata.users.users import decode_key, decode_user
from penstock.model.document import UNSEALED, UnsealedError
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import ClusterMap
from tests.metadata.store_contract import StoreContract
from tests.metadata.test_memory_store import MemoryStores
from tests.runtime.harness import async_test

SEALER = Sealer(b"k" * 32)
DOCUMENTS = st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=20), min_size=1).map(
    msgspec.json.encode
)


@given(st.text(max_size=30), DOCUMENTS)
def test_what_was_sealed_is_opened_as_it_was(place: str, document: bytes) -> None:
    sealed_bytes = SEALER.seal(place, document)
    assert SEALER.open(place, sealed_bytes) == document
    assert Sealer.bare(sealed_bytes) == document
    assert msgspec.json.decode(sealed_bytes).keys() == msgspec.json.decode(document).keys() | {"seal"}


@given(DOCUMENTS, st.data())
def test_whatever_is_changed_breaks_the_seal(document: bytes, data: st.DataObject) -> None:
    sealed_bytes = bytearray(SEALER.seal("users/ada", document))
    place = data.draw(st.integers(0, len(sealed_bytes) - 1))
    sealed_bytes[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises((NoSealError, WrongSealError)):
        SEALER.open("users/ada", bytes(sealed_bytes))


@given(DOCUMENTS, st.binary(max_size=20))
def test_nothing_may_stand_behind_or_before(document: bytes, more: bytes) -> None:
    sealed_bytes = SEALER.seal("users/ada", document)
    if more:
        for changed in (sealed_bytes + more, more + sealed_bytes):
            with pytest.raises((NoSealError, WrongSealError)):
                SEALER.open("users/ada", changed)


def test_a_seal_is_good_for_one_place_and_one_key() -> None:
    document = b'{"root":true}'
    sealed_bytes = SEALER.seal("users/ada", document)
    for sealer, place in ((SEALER, "users/bob"), (SEALER, "users/ad"), (Sealer(b"x" * 32), "users/ada")):
        with pytest.raises(WrongSealError):
            sealer.open(place, sealed_bytes)
    for unsealed in (document, b"", b"{}", b'{"seal":"' + b"0" * 64 + b'"}'):
        with pytest.raises(NoSealError):
            SEALER.open("users/ada", unsealed)
    with pytest.raises(ValueError, match="not a document that can be sealed"):
        SEALER.seal("users/ada", b"no document")


def test_keys_of_different_purpose_are_different() -> None:
    master = MasterKey(b"m" * 32)
    by_master = front_end_sealers(master)["users/"].seal("users/x", b'{"a":1}')
    by_cluster = layout_sealers(b"m" * 32)["cluster/queues/"].seal("users/x", b'{"a":1}')
    assert by_master != by_cluster


class SealedStores:
    def __init__(self) -> None:
        self._plain = MemoryStores()
        self.pass_time, self.close = self._plain.pass_time, self._plain.close

    async def open(self) -> SealedStore:
        return sealed(await self._plain.open(), {"sealed/": SEALER})


class TestSealedStore(StoreContract):
    @pytest.fixture
    def stores(self) -> SealedStores:
        return SealedStores()


@async_test
async def test_a_process_sees_what_was_sealed_and_marks_in_place_of_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    contents = MemoryContents()
    plain, store = MemoryStore(contents), sealed(MemoryStore(contents), {"users/": SEALER})
    version = await store.put("users/ada", b'{"root":true}')
    raw = await plain.get("users/ada")
    assert raw is not None
    assert raw.value == SEALER.seal("users/ada", b'{"root":true}')
    await plain.put("users/eve", b'{"root":true}')
    await plain.put("users/bob", raw.value)
    await plain.put("others/eve", b'{"root":true}')
    listing = await store.list("")
    assert {entry.key: entry.value for entry in listing.entries} == {
        "users/ada": b'{"root":true}',
        "users/eve": UNSEALED,
        "users/bob": UNSEALED,
        "others/eve": b'{"root":true}',
    }
    watch = store.watch("users/", ABSENT)
    changes = [await anext(watch) for _ in range(3)]
    assert [change.value for change in changes] == [b'{"root":true}', UNSEALED, UNSEALED]
    await watch.aclose()
    found = await store.get("users/eve")
    assert found is not None
    assert found.value == UNSEALED
    assert await store.put("users/ada", b'{"root":false}', version) > version
    assert (
        caplog.text.count("ignored the entry users/eve in the metadata store") == 1
    )  # however often it is read
    assert "has an invalid seal" in caplog.text


@async_test
async def test_while_versions_are_mixed_some_are_taken_without_a_seal() -> None:
    contents = MemoryContents()
    plain = MemoryStore(contents)
    sealers = {"users/": SEALER, "queues/": SEALER}
    store = sealed(MemoryStore(contents), sealers, accepted=("queues/",))
    for key in ("users/eve", "queues/orders"):
        await plain.put(key, b'{"a":1}')
    await plain.put("queues/forged", SEALER.seal("queues/other", b'{"a":1}'))
    assert {entry.key: entry.value for entry in (await store.list("")).entries} == {
        "users/eve": UNSEALED,
        "queues/orders": b'{"a":1}',
        "queues/forged": UNSEALED,
    }


class Remembering(MemoryStore):
    async def list_known(self, prefix: str) -> Listing:
        return await self.list(prefix)


@async_test
async def test_what_metadata_servers_remember_is_looked_at_too() -> None:
    store = sealed(Remembering(MemoryContents()), {"users/": SEALER})
    await store.put("users/ada", b'{"a":1}')
    assert isinstance(store, RememberingStore)
    assert [entry.value for entry in (await store.list_known("")).entries] == [b'{"a":1}']
    assert not isinstance(sealed(MemoryStore(), {}), RememberingStore)


@pytest.mark.parametrize(
    "decode",
    [decode_user, decode_key, decode_register, decode_metadata, task.decode, decode_queue, decode_partition],
)
def test_every_reader_of_documents_refuses_the_mark(decode: object) -> None:
    with pytest.raises(UnsealedError, match="has no valid seal"):
        decode(UNSEALED)  # type: ignore[operator]  # they are functions
    with pytest.raises(msgspec.MsgspecError):
        decode_node(UNSEALED)


def test_a_front_end_leaves_a_queue_alone_that_somebody_else_wrote() -> None:
    entry = QueueEntry(name="orders", queue_id=7, settings=QueueSettings(), created_ms=1, partitions=[8])
    layout = ClusterMap()
    layout.apply("cluster/queues/orders", msgspec.json.encode(entry))
    assert layout.named("orders") is not None
    layout.apply("cluster/queues/orders", UNSEALED)
    assert layout.named("orders") is None
    assert "has no valid seal" in (layout.why_too_new("orders") or "")


def test_everything_that_says_where_something_is_is_sealed() -> None:
    assert set(LAYOUT_KINDS) == {NODES, QUEUES, PARTITIONS, POSITIONS, IDS}
