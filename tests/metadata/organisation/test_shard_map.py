"""The shard map: everybody makes the same, shards are on distinct servers, shared evenly, and few move."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.metadata.organisation.shard_map import SHARDS, ShardMap, shard_of

names = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8, unique=True)
one_key_each = {shard_of(f"queues/{number}"): f"queues/{number}" for number in range(20 * SHARDS)}
KEYS = list(one_key_each.values())


def test_every_shard_has_keys() -> None:
    assert len(KEYS) == SHARDS


@given(names, st.integers(1, 5))
def test_a_shard_is_on_distinct_servers_and_the_order_of_names_does_not_matter(
    servers: list[str], copies: int
) -> None:
    shuffled = sorted(servers, reverse=True)
    one, other = ShardMap(servers, copies), ShardMap(shuffled, copies)
    for key in KEYS[::37]:
        kept = one.servers_of(key)
        assert kept == other.servers_of(key)
        assert len(set(kept)) == len(kept) == min(copies, len(servers))
        assert set(kept) <= set(servers)


@settings(max_examples=25)
@given(names, st.integers(1, 3))
def test_each_server_has_about_its_share(servers: list[str], copies: int) -> None:
    made = ShardMap(servers, copies)
    share = SHARDS * min(copies, len(servers)) / len(servers)
    for server in servers:
        kept = sum(server in made.servers_of(key) for key in KEYS)
        first = sum(server == made.servers_of(key)[0] for key in KEYS)
        # Six standard deviations of what chance does to 1,024 shards.
        assert abs(kept - share) <= 6 * share**0.5
        assert abs(first - SHARDS / len(servers)) <= 6 * (SHARDS / len(servers)) ** 0.5


@settings(max_examples=25)
@given(names, st.integers(1, 3))
def test_a_server_that_comes_or_goes_moves_only_what_it_gains_or_had(servers: list[str], copies: int) -> None:
    before, after = ShardMap(servers[1:], copies), ShardMap(servers, copies)
    come = servers[0]
    for key in KEYS:
        old, new = before.servers_of(key), after.servers_of(key)
        if come not in new:
            assert old == new
        else:
            assert [server for server in new if server != come] == list(old[: len(new) - 1])


@given(names)
def test_askers_spread_over_the_servers(servers: list[str]) -> None:
    made = ShardMap(servers, 1)
    first = [made.ranked(f"front end {number}")[0] for number in range(60 * len(servers))]
    assert set(first) == set(servers)
    assert set(made.ranked("x")) == set(servers)


def test_without_servers_nobody_keeps_anything() -> None:
    assert ShardMap((), 2).servers_of("a") == ()
