"""Listening sockets, and the errors if there is none."""

from __future__ import annotations

import errno
import socket

from penstock.config.address import Address


class StartError(Exception):
    """The server cannot start; the message says why and what to do."""


class SettingError(StartError):
    """An invalid setting; as with other errors of a command line, nothing was started."""


class StrangerError(StartError):
    """The cluster refuses this process: its secret or its certificate is not the cluster's."""


def check_users(address: Address, has_users: bool) -> None:
    """Raises if other machines could reach the address while there are no users."""
    if not address.is_loopback and not has_users:
        raise StartError(
            f"refuses to listen on {address}: there are no users yet, so every client that reaches it could read and "
            "delete every message. Create the first user with `penstock user create NAME --root`, or listen on "
            "127.0.0.1"
        )


def bind(address: Address, flag: str) -> socket.socket:
    """A socket that is bound and does not listen yet; `flag` is how another address can be chosen."""
    try:
        choices = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StartError(f"cannot listen on {address}: {error.strerror or error}") from None
    # `localhost` is often both; the address that most clients try is the IPv4 one.
    family, kind, protocol, _, place = min(choices, key=lambda choice: choice[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise StartError(_sentence(address, error, flag)) from None
    return listener


def _sentence(address: Address, error: OSError, flag: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"cannot listen on {address}: another program does. Stop it (is a `penstock serve` running already?) "
            f"or choose another port with {flag} HOST:PORT"
        )
    if error.errno == errno.EACCES:
        return f"cannot listen on {address}: ports below 1024 need special rights; choose another with {flag}"
    return f"cannot listen on {address}: {error.strerror or error}; choose another address with {flag}"
