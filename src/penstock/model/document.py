"""Documents that another version of Penstock may have written: unknown fields are kept.

Processes of a cluster are upgraded one by one, so each of them reads, and writes again, documents of newer ones. A field
that this version does not know is kept in `later` and in every copy of the document; a version that knows it takes it from
there. A document that must not be read without understanding says so in `needs`. Input of people is not read here: there
an unknown field is a mistake, and is refused.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from penstock.model.errors import ErrorCode, PenstockError

DOCUMENTS = 2
"""The level of documents that this version understands. It rises with the first version that writes a greater `needs`."""
NEEDS, LATER = "needs", "later"
RESERVED = (NEEDS, LATER)
"""Fields of every document that users cannot set."""

Kind = TypeVar("Kind")


class TooOldError(PenstockError, msgspec.ValidationError):
    """A newer Penstock wrote this, and this process is too old for it. The message is one sentence that says so."""

    def __init__(self, what: str) -> None:
        super().__init__(
            ErrorCode.UNSUPPORTED_VERSION,
            f"a newer Penstock wrote it, and this process is too old for it ({what}): upgrade this process",
        )


class UnsealedError(TooOldError):
    """A document's seal is missing or wrong, so no owner of the key has written it."""

    def __init__(self) -> None:
        PenstockError.__init__(
            self,
            ErrorCode.UNSUPPORTED_VERSION,
            "it has no valid seal: an earlier version or a writer without the key wrote it. See "
            "`penstock user seal` and `penstock cluster seal`",
        )


UNSEALED = b'{"needs":-1}'
"""Readers get this in place of such a document. They leave it alone, like one that is too new."""


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document that other versions of Penstock may read. A copy (`structs.replace`) loses nothing."""

    needs: int | UnsetType = UNSET
    """A process that understands less than this must leave the document alone."""
    later: dict[str, Any] | UnsetType = UNSET
    """Fields that this version does not know, as they were written."""

    def __post_init__(self) -> None:
        check_needs(self.needs)
        if self.later and not self.later.keys().isdisjoint(self.__struct_fields__):
            raise ValueError(f"{LATER} has fields that are known")  # `DocumentReader` takes them out


def check_needs(needs: object) -> None:
    """Raises `TooOldError` where a document asks for more than this version understands."""
    if isinstance(needs, int) and needs < 0:
        raise UnsealedError
    if isinstance(needs, int) and needs > DOCUMENTS:
        raise TooOldError(f"it needs version {needs} of the documents, this one knows {DOCUMENTS}")


class DocumentReader(Generic[Kind]):
    """Reads a kind of document, or a structure with documents in it, from any writer."""

    def __init__(self, kind: Any, form: Literal["json", "msgpack"] = "json", noun: str = "") -> None:
        """With a `noun` the kind is a union whose members have numbers: one with another number is a newer version's."""
        self._kind = kind
        self._noun = noun
        self._form = msgspec.json if form == "json" else msgspec.msgpack
        self._read = self._form.Decoder(kind).decode

    def decode(self, data: bytes | memoryview) -> Kind:
        """Decodes a stored document; raises `msgspec.MsgspecError`, which is a `TooOldError` if a newer version is needed."""
        try:
            found: Kind = self._read(data)
        except TooOldError:
            raise
        except msgspec.ValidationError as error:
            # Only documents with something unknown in them take this way, so that all others cost nothing more.
            found = self._read(self._with_later(data, error))
        except UnicodeDecodeError as error:  # a text in it is not UTF-8
            raise msgspec.DecodeError(str(error)) from None
        return found

    def _with_later(self, data: bytes | memoryview, error: msgspec.ValidationError) -> bytes:
        try:
            value = self._form.decode(data)
            if self._noun:
                check_number(self._noun, self._kind, value)
            encoded: bytes = self._form.encode(gathered(self._kind, value))
        except TooOldError:
            raise
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
            raise error from None  # it is no document of any version
        return encoded


def check_number(noun: str, kind: Any, value: Any) -> None:
    """Raises `TooOldError` where a value of a union has a number that none of this version's members has."""
    number = value[0] if isinstance(value, list) and value else None
    if isinstance(number, int) and number not in (one.__struct_config__.tag for one in get_args(kind)):
        raise TooOldError(f"{noun} of kind {number}")


def gathered(kind: Any, value: Any) -> Any:
    """A value that was read without its type, with the unknown fields of every document in it put into `later`."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _gathered_struct(kind, value)
    arguments = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        chosen = _chosen(arguments, value)
        return value if chosen is None else gathered(chosen, value)
    if isinstance(value, dict) and len(arguments) == 2:
        return {name: gathered(arguments[1], one) for name, one in value.items()}
    if isinstance(value, list) and arguments:
        if get_origin(kind) is tuple and arguments[-1] is not ...:
            return [gathered(one, part) for one, part in zip(arguments, value, strict=False)]
        return [gathered(arguments[0], one) for one in value]
    return value


def _gathered_struct(kind: type[msgspec.Struct], value: Any) -> Any:
    fields = msgspec.structs.fields(kind)
    if isinstance(value, list):
        tags = 0 if kind.__struct_config__.tag is None else 1
        known = [gathered(field.type, one) for field, one in zip(fields, value[tags:], strict=False)]
        return value[:tags] + known
    if not isinstance(value, dict) or not issubclass(kind, Document):
        return value
    check_needs(value.get(NEEDS))
    kinds = {field.encode_name: field.type for field in fields}
    before = value.get(LATER)
    everything = {**(before if isinstance(before, dict) else {}), **value}
    everything.pop(LATER, None)
    document = {name: gathered(kinds[name], one) for name, one in everything.items() if name in kinds}
    later = {name: one for name, one in everything.items() if name not in kinds}
    return {**document, LATER: later} if later else document


def _chosen(kinds: Sequence[Any], value: Any) -> Any:
    """Which one of a union a value is meant to be; None: it has no documents in it."""
    structs = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    if isinstance(value, list) and value:
        tagged = [kind for kind in structs if kind.__struct_config__.tag == value[0]]
        if tagged:
            return tagged[0]
    others = [kind for kind in structs if kind.__struct_config__.tag is None]
    return others[0] if isinstance(value, dict | list) and len(others) == 1 else None
