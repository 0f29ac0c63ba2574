"""The blocking client has every public class, method, parameter and attribute of the asynchronous one, and no others."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import msgspec
import pytest

import penstock
from penstock.client.blocking.connecting import connect_blocking
from penstock.client.client import connect
from scripts.blocking_client import ROOT, members_of, module_of, sources
from scripts.blocking_twins import TWINS, Twin

SHARED = {
    *(
        "ClockStatus",
        "DeadLetter",
        "ErrorCode",
        "FailedBatch",
        "GroupDescription",
        "GroupPlace",
        "LateArrival",
    ),
    *("LocalClock", "LogBounds", "LogPartition", "LoggedMessage", "LoggedMessages", "NodeDescription"),
    *("OffsetGone", "OutgoingMessage", "PeekFilter", "PeekedMessage", "PenstockError", "ProducerError"),
    *("QueueDescription", "QueueOptions", "QueueSettings", "QueueStatistics", "Reply", "SentMessage"),
    *("SentMessages", "Settlement", "TimestampId"),
}
"""Values, which both clients give out as they are."""
NAMES = {"aclose": "close", "__anext__": "__next__", "__aiter__": "__iter__"} | {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
}
ONLY_BLOCKING = {
    "BlockingClient": {
        "twin",
        "__enter__",
        "__exit__",
    },  # `connect` is the context manager of the other client
    "BlockingMessage": {"message"},
}
PAIRS = [(twin, name) for twin in TWINS for name in (twin.name, *twin.others)]


def test_the_blocking_client_is_made_from_the_asynchronous_one() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in sources().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run `make blocking`: {stale}"


def test_every_public_class_has_a_twin_or_is_shared() -> None:
    classes = {name for name in penstock.__all__ if inspect.isclass(getattr(penstock, name))}
    twins = {name for _, name in PAIRS}
    blocking = {twin.blocking_name for twin in TWINS}
    assert classes == twins | blocking | SHARED


@pytest.mark.parametrize(("twin", "name"), PAIRS, ids=lambda one: one if isinstance(one, str) else "")
def test_a_twin_has_the_same_members_with_the_same_parameters(twin: Twin, name: str) -> None:
    theirs, ours = getattr(penstock, name), getattr(penstock, twin.blocking_name)
    expected = {twin.renamed.get(one, NAMES.get(one, one)): one for one in _public(theirs) - twin.inner}
    only_ours = _public(ours) - set(expected) - ONLY_BLOCKING.get(twin.blocking_name, set())
    assert not only_ours, f"{name} lacks {only_ours}"
    for our_name, their_name in expected.items():
        assert hasattr(ours, our_name), f"{twin.blocking_name} has no {our_name}"
        their_member, our_member = getattr(theirs, their_name, None), getattr(ours, our_name)
        if not inspect.isfunction(their_member):
            assert not inspect.isfunction(our_member), our_name
            continue
        assert _parameters(their_member) == _parameters(our_member), our_name


def test_both_ways_to_connect_take_the_same() -> None:
    assert _parameters(connect) == _parameters(connect_blocking)


def _public(kind: type) -> set[str]:
    """What users may call or read; attributes that `__init__` sets are in no class, but in its source."""
    set_by_init = set()
    if kind.__module__.startswith("penstock.client.") and ".blocking" not in kind.__module__:
        set_by_init = set(members_of(module_of(kind.__module__), kind.__name__))
    fields = {one.name for one in msgspec.structs.fields(kind)} if issubclass(kind, msgspec.Struct) else set()
    return {name for name in {*_of_ours(kind), *set_by_init, *fields} if _is_public(name)}


def _of_ours(kind: type) -> Iterator[str]:
    for one in kind.__mro__:
        if one.__module__.startswith("penstock."):
            yield from vars(one)


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in {*NAMES, *NAMES.values()}


def _parameters(function: object) -> list[tuple[str, object, str, str]]:
    """Names, defaults, kinds, and types as they are for users of the blocking client."""
    assert callable(function)
    return [
        (one.name, one.default, str(one.kind), _type_name(str(one.annotation)))
        for one in inspect.signature(function).parameters.values()
    ]


def _type_name(annotation: str) -> str:
    for twin in TWINS:
        annotation = annotation.replace(f"[{twin.name}]", f"[{twin.blocking_name}]")
    return annotation
