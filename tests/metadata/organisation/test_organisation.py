"""The organisations: each key is kept by whom it should be, and everybody finds them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metadata.organisation.organisation import Organisation, agreed
from penstock.metadata.organisation.server_entry import (
    OrganisationName,
    ServerEntry,
    decode_server,
    encode_server,
)

ORGANISATIONS: list[OrganisationName] = ["replicated", "sharded-direct", "sharded-forwarding"]
servers = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True)


def organisation(name: OrganisationName, copies: int, members: list[str]) -> Organisation:
    return agreed(
        {one: ServerEntry(name=one, address=f"{one}:1", organisation=name, copies=copies) for one in members}
    )


@given(st.sampled_from(ORGANISATIONS), servers, st.integers(1, 4), st.text(), st.text())
def test_who_is_asked_first_can_answer_from_its_cache_or_knows_who_can(
    name: OrganisationName, members: list[str], copies: int, key: str, asker: str
) -> None:
    made = organisation(name, copies, members)
    asked = made.to_ask(asker, key)
    assert sorted(asked) == sorted(members)
    first = asked[0]
    onward = made.forward_to(first, key)
    if name == "sharded-forwarding":
        assert made.keeps(first, key) == (not onward)
        assert all(made.keeps(one, key) for one in onward)
    else:
        assert onward == ()
        assert made.keeps(first, key)
    keepers = [one for one in members if made.keeps(one, key)]
    assert len(keepers) == (len(members) if name == "replicated" else min(copies, len(members)))
    assert sorted(made.to_ask(asker, None)) == sorted(members)


@pytest.mark.parametrize("name", ORGANISATIONS)
def test_a_server_that_is_not_on_the_map_keeps_what_it_is_asked_for(name: OrganisationName) -> None:
    made = organisation(name, 1, ["a", "b"])
    assert made.keeps("new", "key")
    assert made.forward_to("new", "key") == ()
    assert organisation(name, 1, []).to_ask("x", "key") == ()


def test_while_servers_disagree_any_is_asked_for_anything() -> None:
    said = {
        "a": ServerEntry(name="a", address="a:1", organisation="sharded-direct", copies=1),
        "b": ServerEntry(name="b", address="b:1", organisation="replicated", copies=1),
    }
    assert agreed(said).name == "replicated"
    said["b"] = ServerEntry(name="b", address="b:1", organisation="sharded-direct", copies=2)
    assert agreed(said).name == "replicated"


def test_an_entry_comes_back_as_it_was_stored() -> None:
    entry = ServerEntry(name="a", address="a:1", organisation="sharded-forwarding", copies=3, incarnation="x")
    assert decode_server(encode_server(entry)) == entry
