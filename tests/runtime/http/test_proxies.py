"""The client behind proxies: believed from those that are trusted, and from nobody else."""

from __future__ import annotations

import pytest

from penstock.runtime.http.proxies import TrustedProxies
from penstock.sqs.protocols.http import HttpRequest, Peer

PROXIES = TrustedProxies(["10.0.0.0/24", "192.0.2.7", "fd00::/64"])


def found(said: str | None, peer: str = "10.0.0.1", protocol: str | None = None) -> Peer:
    headers = {} if said is None else {"x-forwarded-for": said}
    if protocol is not None:
        headers["x-forwarded-proto"] = protocol
    return PROXIES.client_of(HttpRequest("POST", "/", "", headers), Peer(peer, secure=False))


@pytest.mark.parametrize(
    ("said", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),  # what the client sent itself stands before
        ("203.0.113.9, 10.0.0.2", "203.0.113.9"),  # a second proxy of ours
        ("203.0.113.9,192.0.2.7 , 10.0.0.2", "203.0.113.9"),
        ("10.0.0.2", "10.0.0.2"),  # a proxy that asks for itself
        ("2001:db8::1", "2001:db8::1"),
        ("2001:DB8:0::1, fd00::5", "2001:db8::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("nonsense", "10.0.0.1"),
        ("203.0.113.9, unknown, 10.0.0.2", "10.0.0.2"),
        ("203.0.113.9, ", "10.0.0.1"),
        ("", "10.0.0.1"),
        (None, "10.0.0.1"),
    ],
)
def test_a_trusted_proxy_names_the_client(said: str | None, client: str) -> None:
    assert found(said).address == client


@pytest.mark.parametrize("peer", ["10.0.1.1", "203.0.113.50", "::1", "", "fd01::1"])
def test_nobody_else_is_believed(peer: str) -> None:
    assert found("203.0.113.9", peer, "https") == Peer(peer, secure=False)


def test_a_trusted_proxy_says_whether_the_client_spoke_tls() -> None:
    assert found("203.0.113.9", protocol="https").secure
    assert not found("203.0.113.9", protocol="http").secure
    assert not found("203.0.113.9", protocol="gopher").secure
    assert not found("203.0.113.9").secure


def test_many_addresses_are_not_remembered_for_ever() -> None:
    for number in range(10_000):
        address = f"198.51.{number // 256}.{number % 256}"
        assert found("1.2.3.4", address).address == address
    assert found("203.0.113.9").address == "203.0.113.9"
