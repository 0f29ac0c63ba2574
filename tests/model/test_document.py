"""Documents with fields, numbers and demands of versions that are yet to come."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from penstock.model.document import DOCUMENTS, Document, DocumentReader, TooOldError
from penstock.model.errors import ErrorCode, PenstockError


class Wheel(Document, frozen=True, kw_only=True):
    spokes: int = 28


class Cart(Document, frozen=True, kw_only=True):
    name: str
    secret: bytes = b""
    wheels: tuple[Wheel, ...] = ()
    spare: Wheel | None = None
    by_axle: dict[int, Wheel] = msgspec.field(default_factory=dict)


class NewCart(Document, frozen=True, kw_only=True):
    """The same, a version later."""

    name: str
    brakes: str = "none"


READER: DocumentReader[Cart] = DocumentReader(Cart)
CART = Cart(
    name="cart", secret=b"\x00\xff", wheels=(Wheel(), Wheel(spokes=3)), spare=Wheel(), by_axle={1: Wheel()}
)


def planted(document: Document, **fields: Any) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(document), **fields})


def test_a_document_of_this_version_has_nothing_more_in_it_than_before() -> None:
    assert msgspec.json.encode(Wheel()) == b'{"spokes":28}'
    assert READER.decode(msgspec.json.encode(CART)) == CART


def test_an_unknown_field_outlives_a_change_and_is_found_by_a_version_that_knows_it() -> None:
    read = READER.decode(planted(CART, brakes="disc"))
    changed = msgspec.structs.replace(read, name="wagon")
    assert (changed.name, changed.later) == ("wagon", {"brakes": "disc"})
    again = READER.decode(msgspec.json.encode(changed))
    assert again == changed
    reader: DocumentReader[NewCart] = DocumentReader(NewCart)
    small = msgspec.structs.replace(again, secret=b"", wheels=(), spare=None, by_axle={})
    newer = reader.decode(msgspec.json.encode(small))
    assert (newer.name, newer.brakes) == ("wagon", "disc")
    assert set(newer.later or ()) == {"secret", "wheels", "by_axle", "spare"}


def test_unknown_fields_are_kept_however_deep_they_are() -> None:
    deep = msgspec.json.decode(msgspec.json.encode(CART))
    for place in (deep["wheels"][1], deep["spare"], deep["by_axle"]["1"]):
        place["tyre"] = {"bar": [2, 3]}
    read = READER.decode(msgspec.json.encode(deep))
    kept = {"tyre": {"bar": [2, 3]}}
    assert read.spare is not None
    assert [read.wheels[0].later, read.wheels[1].later] == [msgspec.UNSET, kept]
    assert [read.spare.later, read.by_axle[1].later] == [kept, kept]
    assert (read.secret, read.wheels[1].spokes) == (b"\x00\xff", 3)


@pytest.mark.parametrize("nested", [False, True])
def test_a_document_that_needs_more_says_in_one_sentence_that_the_process_is_too_old(nested: bool) -> None:
    demanding = {"spokes": "as many as there are", "needs": DOCUMENTS + 1}
    data = planted(CART, spare=demanding) if nested else planted(CART, name=7, needs=DOCUMENTS + 1)
    with pytest.raises(TooOldError) as raised:
        READER.decode(data)
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION
    assert raised.value.message == (
        "a newer Penstock wrote it, and this process is too old for it (it needs version "
        f"{DOCUMENTS + 1} of the documents, this one "
        f"knows {DOCUMENTS}): upgrade this process"
    )
    assert isinstance(raised.value, PenstockError | msgspec.ValidationError)


def test_what_this_version_understands_may_be_needed() -> None:
    assert READER.decode(planted(CART, needs=DOCUMENTS)).needs == DOCUMENTS


@pytest.mark.parametrize(
    "data", [b"[]", b'{"name": 7}', b'{"brakes": "disc"}', b'{"later": {}, "name": "a", "spare": [1]}', b"7"]
)
def test_what_is_no_such_document_is_refused_as_before(data: bytes) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        READER.decode(data)
    assert not isinstance(raised.value, TooOldError)


@given(some.binary(max_size=60))
@example(b"\x81\xa1\xff\x01")
def test_other_bytes_are_refused(data: bytes) -> None:
    reader: DocumentReader[Cart] = DocumentReader(Cart, "msgpack")
    try:
        read = reader.decode(data)
    except msgspec.DecodeError:
        return
    assert reader.decode(msgspec.msgpack.encode(read)) == read
