"""How two processes of a cluster show each other that they know the cluster's secret, without saying it.

    server: Challenge(nonce) → client: Proof(nonce, proof) → server: Accepted(proof), or the connection ends

Each proof is an HMAC over both nonces, the side that gives it and the service that is asked for, so that none can be
used again, turned round or taken elsewhere. Nothing else of a stranger is parsed. Nonces come in as arguments. It says
who is there when the connection begins; a wire that others can change needs TLS as well.
"""

from __future__ import annotations

import hmac

import msgspec

from penstock.model.batch import Buffer

NONCE_BYTES = 32
SECRET_BYTES_AT_LEAST = 16
HANDSHAKE_FRAME_BYTES = 512
"""No frame of a handshake is longer, so that a stranger can make nobody hold more."""


class Challenge(msgspec.Struct, frozen=True, array_like=True, tag="challenge"):
    """Said by whoever was connected to, before anything else."""

    nonce: bytes


class Proof(msgspec.Struct, frozen=True, array_like=True, tag="proof"):
    """The answer of whoever connected."""

    nonce: bytes
    proof: bytes


class Accepted(msgspec.Struct, frozen=True, array_like=True, tag="accepted"):
    """The other side's proof; from here on the service's own messages follow."""

    proof: bytes


class HandshakeError(Exception):
    """The other side does not know the secret, or speaks something else; the message says which."""


_encode = msgspec.msgpack.Encoder().encode
_read_challenge = msgspec.msgpack.Decoder(Challenge).decode
_read_proof = msgspec.msgpack.Decoder(Proof).decode
_read_accepted = msgspec.msgpack.Decoder(Accepted).decode


class ServerHandshake:
    """The side that was connected to."""

    def __init__(self, secret: bytes, service: str, nonce: bytes) -> None:
        self._secret = secret
        self._service = service
        self._nonce = nonce

    def challenge(self) -> bytes:
        """What is said first."""
        return _encode(Challenge(self._nonce))

    def accept(self, head: Buffer) -> bytes:
        """What is said to a client that knows the secret; raises `HandshakeError`."""
        try:
            said = _read_proof(head)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise HandshakeError("what connected does not prove that it knows the cluster's secret") from None
        _check_nonce(said.nonce)
        if not hmac.compare_digest(said.proof, self._proof("client", said.nonce)):
            raise HandshakeError("what connected does not know the cluster's secret")
        return _encode(Accepted(self._proof("server", said.nonce)))

    def _proof(self, side: str, client_nonce: bytes) -> bytes:
        return _proof(self._secret, self._service, side, self._nonce, client_nonce)


class ClientHandshake:
    """The side that connected."""

    def __init__(self, secret: bytes, service: str, nonce: bytes) -> None:
        self._secret = secret
        self._service = service
        self._nonce = nonce
        self._server_nonce = b""

    def prove(self, head: Buffer) -> bytes:
        """The answer to a challenge; raises `HandshakeError`."""
        try:
            self._server_nonce = _read_challenge(head).nonce
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise HandshakeError(f"what listens there is no {self._service} of a Penstock cluster") from None
        _check_nonce(self._server_nonce)
        return _encode(Proof(self._nonce, self._proof("client")))

    def finish(self, head: Buffer) -> None:
        """Raises `HandshakeError` unless the server knows the secret too."""
        try:
            proof = _read_accepted(head).proof
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise HandshakeError("the server does not prove that it knows the cluster's secret") from None
        if not hmac.compare_digest(proof, self._proof("server")):
            raise HandshakeError("the server does not know the cluster's secret")

    def _proof(self, side: str) -> bytes:
        return _proof(self._secret, self._service, side, self._server_nonce, self._nonce)


def _check_nonce(nonce: bytes) -> None:
    if len(nonce) != NONCE_BYTES:
        raise HandshakeError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}")


def _proof(secret: bytes, service: str, side: str, server_nonce: bytes, client_nonce: bytes) -> bytes:
    said = f"penstock cluster 1\0{service}\0{side}\0".encode() + server_nonce + client_nonce
    return hmac.digest(secret, said, "sha256")
