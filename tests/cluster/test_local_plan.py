"""Plans of clusters on one machine: names, zones, ports, and how they grow."""

from __future__ import annotations

import tomllib
from itertools import pairwise

import msgspec
import pytest

from penstock.cluster.local.haproxy import haproxy_configuration
from penstock.cluster.local.local_plan import (
    MOST,
    ROLES,
    PlanError,
    balancer_plan,
    enlarged,
    plan_cluster,
    ports_from,
    toml,
    with_another,
    without,
)

PORTS = ports_from(9320)


def test_a_plan_is_in_the_order_of_starting_and_spread_over_zones() -> None:
    plan = plan_cluster(nodes=5, front_ends=2, metadata=1, zones=3)
    order = [ROLES.index(one.role) for one in plan.processes]
    assert all(before <= after for before, after in pairwise(order))
    assert [one.zone for one in plan.of_role("node")] == ["zone-1", "zone-2", "zone-3", "zone-1", "zone-2"]
    assert [one.name for one in plan.processes] == [
        *("etcd", "metadata-1", "node-1", "node-2", "node-3", "node-4", "node-5"),
        *("frontend-1", "frontend-2", "balancer"),
    ]


def test_the_endpoints_are_where_those_of_a_single_server_would_be() -> None:
    plan = plan_cluster(nodes=3, front_ends=2)
    assert plan.sqs_url == "http://127.0.0.1:9324"
    assert plan.native_url == "penstock://127.0.0.1:9326"
    secure = msgspec.structs.replace(plan, tls="/a b/tls")
    assert secure.native_url == "penstocks://127.0.0.1:9326?ca=/a+b/tls/ca.pem"


def test_no_port_is_used_twice_however_large_the_cluster() -> None:
    plan = plan_cluster(nodes=MOST["node"], front_ends=MOST["frontend"], metadata=MOST["metadata"])
    ports = [port for one in plan.processes for port in one.ports.values()]
    assert len(set(ports)) == len(ports)
    with pytest.raises(PlanError, match="room for"):
        with_another(plan, "node", PORTS)


def test_an_etcd_that_is_there_is_used() -> None:
    plan = plan_cluster(nodes=1, front_ends=1, etcd_url="etcd://one:2379,two:2379")
    assert plan.etcd_url == "etcd://one:2379,two:2379"
    assert plan.of_role("etcd") == []


def test_the_name_of_a_node_that_was_removed_is_not_given_again() -> None:
    plan = without(plan_cluster(nodes=3, front_ends=1), "node-3")
    plan, added = with_another(plan, "node", PORTS)
    assert (added.name, added.zone) == ("node-4", "zone-3")
    assert plan.find("node-4") == added


def test_a_cluster_grows_and_does_not_shrink_by_being_started() -> None:
    plan = plan_cluster(nodes=3, front_ends=2)
    assert len(enlarged(plan, "node", 5, PORTS).of_role("node")) == 5
    assert enlarged(plan, "node", None, PORTS) == plan
    with pytest.raises(PlanError, match="cluster remove"):
        enlarged(plan, "node", 2, PORTS)


@pytest.mark.parametrize(
    ("nodes", "front_ends", "zones", "base", "sentence"),
    [
        (0, 1, 1, 9320, "--nodes 0 is too few"),
        (1, 0, 1, 9320, "--frontends 0 is too few"),
        (1, 1, 0, 9320, "--zones 0 is too few"),
        (3, 1, 1, 65_430, "no room below 65536"),
    ],
)
def test_what_cannot_be_is_said(nodes: int, front_ends: int, zones: int, base: int, sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        plan_cluster(nodes=nodes, front_ends=front_ends, zones=zones, base_port=base)


def test_the_balancer_knows_every_front_end() -> None:
    plan = plan_cluster(nodes=1, front_ends=3)
    text = haproxy_configuration(balancer_plan(plan))
    assert all(text.count(f"server {one.name} ") == 2 for one in plan.of_role("frontend"))


def test_what_is_written_as_toml_is_read_back() -> None:
    tables: dict[str, dict[str, str | int]] = {
        "cluster": {"name": 'a "b"\\ü', "number": 7},
        "native": {"listen": "[::1]:0"},
    }
    assert tomllib.loads(toml(tables)) == tables


@pytest.mark.parametrize("zone", ["", " ", "a b", "x" * 64])
def test_a_zone_that_no_node_could_stand_in_is_refused(zone: str) -> None:
    with pytest.raises(PlanError, match="is not a zone: use 1 to 63 letters"):
        with_another(plan_cluster(nodes=1, front_ends=1), "node", PORTS, zone)
