"""The client of a request that came through proxies, as trusted proxies name it.

Any client can send an `X-Forwarded-For`. So it is used only on connections from addresses that the configuration trusts,
and only the part that trusted proxies have added at its end: the last address that is not one of theirs is the client's.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from penstock.sqs.protocols.http import HttpRequest, Peer

FORWARDED_FOR = "x-forwarded-for"
FORWARDED_PROTO = "x-forwarded-proto"
ADDRESSES_REMEMBERED = 4_096


class TrustedProxies:
    """Networks whose statements about the client's address are trusted."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ip_network(network) for network in networks]
        self._known: dict[str, bool] = {}
        """Addresses that were looked up before: the proxies are few and every request asks."""

    def client_of(self, request: HttpRequest, peer: Peer) -> Peer:
        """The client of a request that came over a connection with `peer`."""
        if not self._is_trusted(peer.address):
            return peer
        headers = request.headers
        address = self._client_address(headers.get(FORWARDED_FOR, ""), peer.address)
        protocol = headers.get(FORWARDED_PROTO, "").strip().lower()
        secure = protocol == "https" if protocol in ("http", "https") else peer.secure
        return Peer(address, secure)

    def _client_address(self, said: str, nearest: str) -> str:
        """From the end: a trusted proxy's entry is true, and names the one before it."""
        for word in reversed(said.split(",")):
            address = parsed_address(word)
            if address is None:
                return (
                    nearest  # the writer of this entry knows no address, so the earlier ones are unknown too
                )
            nearest = str(address)
            if not self._is_trusted(nearest):
                return nearest
        return nearest

    def _is_trusted(self, address: str) -> bool:
        found = self._known.get(address)
        if found is None:
            if len(self._known) >= ADDRESSES_REMEMBERED:
                self._known.clear()
            parsed = parsed_address(address)
            found = parsed is not None and any(parsed in network for network in self._networks)
            self._known[address] = found
        return found


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """An address of either kind; None: the text is none."""
    try:
        found = ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found
