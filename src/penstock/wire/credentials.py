"""How a client of the native protocol proves its access key without sending the secret.

    client: Hello(access_key, nonce) → server: Challenge(nonce) → client: Prove(proof) → server: Welcome(proof)

Each proof is an HMAC with the key's secret over both nonces, the side that gives it, the key's id and the channel, so it
cannot be replayed, reflected or used elsewhere. The channel is the digest of the certificate that the client received,
empty without TLS. A server refuses a proof for the holder of another certificate, who forwards it. A server that needs no
credentials welcomes at once. A client with credentials accepts that only from its own machine, where servers without users
are. Nonces are arguments. This authenticates the beginning of a connection; if others can change its bytes, it needs TLS
or a tunnel as well.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from typing import NamedTuple

import msgspec

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import KIBIBYTE
from penstock.wire.nesting import is_intricate
from penstock.wire.requests import Hello

NONCE_BYTES = 32
GREETING_BYTES = 16 * KIBIBYTE
"""The maximum of a frame before its sender is authenticated, so that a stranger cannot make the server hold more."""
GREETING_LEVELS = 8
"""A greeting has two; the rest is for fields that later versions may add."""
GREETING_VALUES = 512
"""Looking at so many takes 0.2 ms; a greeting has eight."""
LINK_KEY = "penstock.link"
"""The access key of a server's front ends: they are no users, and prove that they have the server's own master key."""


class Prove(msgspec.Struct, frozen=True, array_like=True, tag=33):
    """Answers a `Challenge`; itself answered with `Welcome`, or with `unauthenticated` and the end of the connection."""

    proof: bytes
    channel: bytes = b""
    """As `channel_of` says of the client's end of the connection."""


_encode = msgspec.msgpack.Encoder().encode
_read_greeting: msgspec.msgpack.Decoder[Hello | Prove] = msgspec.msgpack.Decoder(Hello | Prove)


class Credentials(NamedTuple):
    """An access key and its secret."""

    access_key: str
    secret: str

    def __repr__(self) -> str:
        return f"Credentials({self.access_key})"  # secrets never reach logs


def channel_of(certificate: bytes | None) -> bytes:
    """The identity of the server's end: the digest of its certificate in DER form; None: there is no TLS."""
    return hashlib.sha256(certificate).digest() if certificate is not None else b""


def encode_proof(proof: bytes, channel: bytes = b"") -> bytes:
    """The head of a `Prove`."""
    return _encode(Prove(proof, channel))


def read_greeting(head: Buffer) -> Hello | Prove | None:
    """A message before the welcome; None: another frame. Raises if it is larger than any greeting."""
    if len(head) > GREETING_BYTES or is_intricate(head, levels=GREETING_LEVELS, values=GREETING_VALUES):
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"a greeting has at most {GREETING_BYTES} bytes with {GREETING_VALUES} values in them, and nests at most "
            f"{GREETING_LEVELS} levels deep",
        )
    try:
        return _read_greeting.decode(head)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def client_proof(
    secret: str, access_key: str, server_nonce: bytes, client_nonce: bytes, channel: bytes = b""
) -> bytes:
    """Proves to a server that a client has the secret of its key."""
    return _proof(secret, "client", access_key, server_nonce, client_nonce, channel)


def server_proof(
    secret: str, access_key: str, server_nonce: bytes, client_nonce: bytes, channel: bytes = b""
) -> bytes:
    """Proves to a client that the server knows the secret too."""
    return _proof(secret, "server", access_key, server_nonce, client_nonce, channel)


def check_server(
    credentials: Credentials,
    server_nonce: bytes | None,
    client_nonce: bytes,
    proof: bytes,
    server: object,
    peer: str,
    channel: bytes = b"",
) -> None:
    """Raises unless the server knows the secret itself, or is on this machine and has not asked for it.

    `server_nonce`: of its challenge, None: there was none. `server` is its name for people, `peer` its address without the
    port, `channel` the channel of the client's proof.
    """
    if server_nonce is None:
        if is_this_machine(peer):
            return
        raise PenstockError(
            ErrorCode.UNAUTHENTICATED,
            f"{server} accepts this client without proving that it knows the secret of access key "
            f"{credentials.access_key!r}, so it may be another server. Servers with users prove it; servers without users listen "
            "only on their own machine",
        )
    expected = server_proof(credentials.secret, credentials.access_key, server_nonce, client_nonce, channel)
    if not hmac.compare_digest(expected, proof):
        raise PenstockError(
            ErrorCode.UNAUTHENTICATED,
            f"{server} does not know the secret of access key {credentials.access_key!r}: it is not the server that it "
            "seems to be",
        )


def is_this_machine(peer: str) -> bool:
    """Whether an IP address, as the system gives it for a connection, is one of loopback."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _proof(
    secret: str, side: str, access_key: str, server_nonce: bytes, client_nonce: bytes, channel: bytes
) -> bytes:
    said = f"penstock native 1\0{side}\0{access_key}\0".encode() + server_nonce + client_nonce + channel
    return hmac.digest(secret.encode(), said, "sha256")
