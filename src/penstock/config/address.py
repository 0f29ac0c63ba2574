"""An address to listen on or to connect to: host and port, read from `HOST:PORT`."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

ADDRESS_EXAMPLES = "127.0.0.1:9326, localhost:9326 or [::1]:9326"


@dataclass(frozen=True)
class Address:
    """Host and port; to listen on, port 0 lets the system choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, *, default_port: int) -> Address:
        """Reads `HOST`, `HOST:PORT`, `:PORT` or `[IPV6]:PORT`. Raises `ValueError`."""
        stripped = text.strip()
        if stripped.startswith("["):
            host, bracket, rest = stripped[1:].partition("]")
            if not bracket or (rest and not rest.startswith(":")):
                raise ValueError(f"{text!r} is not an address; write {ADDRESS_EXAMPLES}")
            port_text = rest[1:]
        elif stripped.count(":") > 1:
            host, port_text = stripped, ""
        else:
            host, _, port_text = stripped.partition(":")
        if port_text == "":
            if not (host == "" or host == "localhost" or _is_number(host)):
                # A lone word is more likely a mistake (`on`, `none`) than a host on the default port.
                raise ValueError(f"{text!r} names no port; write {ADDRESS_EXAMPLES}")
            port = default_port
        elif port_text.isascii() and port_text.isdigit() and int(port_text) <= 65535:
            port = int(port_text)
        else:
            raise ValueError(f"{text!r} has the port {port_text!r}; a port is a number from 0 to 65535")
        host = host or "127.0.0.1"
        if any(character.isspace() or character == "/" for character in host):
            raise ValueError(f"{text!r} is not an address; write {ADDRESS_EXAMPLES}")
        return cls(host, port)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        return _is_number(self.host) and ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
