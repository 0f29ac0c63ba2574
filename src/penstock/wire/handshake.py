"""How two processes of a cluster prove to each other that they know the cluster's secret, without sending it.

    server: Challenge(nonce) → client: Proof(nonce, proof) → server: Accepted(proof), or the connection ends

Each proof is an HMAC over both nonces, the side that gives it, the service and the address to which the client connects.
So it cannot be replayed, reflected or used elsewhere: another process at an address that the cluster used before cannot
forward the handshake to a process at another address. Nothing else is parsed before it succeeds. Nonces are arguments.
This authenticates the beginning of a connection; if others can change its bytes, it needs TLS as well.
"""

from __future__ import annotations

import hmac

import msgspec

from penstock.model.batch import Buffer

NONCE_BYTES = 32
SECRET_BYTES_AT_LEAST = 16
HANDSHAKE_FRAME_BYTES = 512
"""The maximum of a handshake frame, so that a stranger cannot make the server hold more."""


class Challenge(msgspec.Struct, frozen=True, array_like=True, tag="challenge"):
    """The first message, from the listening side."""

    nonce: bytes


class Proof(msgspec.Struct, frozen=True, array_like=True, tag="proof"):
    """The answer of the connecting side."""

    nonce: bytes
    proof: bytes
    place: str = ""
    """The address that was dialled, as the server advertises it; empty for services that clients know by other names."""


class Accepted(msgspec.Struct, frozen=True, array_like=True, tag="accepted"):
    """The other side's proof; after it the service's own messages follow."""

    proof: bytes


class HandshakeError(Exception):
    """The other side does not know the secret, or uses another protocol; the message says which."""


_encode = msgspec.msgpack.Encoder().encode
_read_challenge = msgspec.msgpack.Decoder(Challenge).decode
_read_proof = msgspec.msgpack.Decoder(Proof).decode
_read_accepted = msgspec.msgpack.Decoder(Accepted).decode


class ServerHandshake:
    """The listening side."""

    def __init__(self, secret: bytes, service: str, nonce: bytes, place: str = "") -> None:
        """`place`: the address that this process advertises; empty: clients name none."""
        self._secret = secret
        self._service = service
        self._nonce = nonce
        self._place = place

    def challenge(self) -> bytes:
        """The first message."""
        return _encode(Challenge(self._nonce))

    def accept(self, head: Buffer) -> bytes:
        """The answer to a client that knows the secret; raises `HandshakeError`."""
        try:
            said = _read_proof(head)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise HandshakeError("the peer does not prove that it knows the cluster's secret") from None
        _check_nonce(said.nonce)
        if not hmac.compare_digest(said.proof, self._proof("client", said)):
            raise HandshakeError("the peer does not know the cluster's secret")
        if said.place != self._place:
            raise HandshakeError(
                f"a process of the cluster wanted to reach {said.place or 'no address in particular'}, and this one is at "
                f"{self._place or 'no address in particular'}: the address belonged to another process, or an intermediary forwards "
                "the connection"
            )
        return _encode(Accepted(self._proof("server", said)))

    def _proof(self, side: str, said: Proof) -> bytes:
        return _proof(self._secret, self._service, side, self._nonce, said.nonce, said.place)


class ClientHandshake:
    """The connecting side."""

    def __init__(self, secret: bytes, service: str, nonce: bytes, place: str = "") -> None:
        """`place`: the address that is dialled, as the server advertises it."""
        self._secret = secret
        self._service = service
        self._nonce = nonce
        self._place = place
        self._server_nonce = b""
        self.proven = False
        """Whether our proof has been made."""
        self.done = False
        """Whether both sides have proven themselves."""

    def take(self, head: Buffer) -> bytes | None:
        """The reply to the server's next message; None: nothing more. Raises `HandshakeError`."""
        if self.proven:
            self.finish(head)
            self.done = True
            return None
        said = self.prove(head)
        self.proven = True
        return said

    def why_broken_off(self, *, secure: bool) -> HandshakeError | None:
        """Why the server ended the connection in the middle. `secure`: it used TLS. None: unknown."""
        if self.proven and not self.done:
            return HandshakeError(
                "it does not accept our proof of the cluster's secret: it has another secret, or it is another process"
            )
        if secure and not self.done:
            # With TLS 1.3 the connecting side has finished before the server has checked its certificate.
            return HandshakeError("it does not accept our certificate")
        return None

    def prove(self, head: Buffer) -> bytes:
        """The answer to a challenge; raises `HandshakeError`."""
        try:
            self._server_nonce = _read_challenge(head).nonce
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise HandshakeError(f"the server there is not a {self._service} of a Penstock cluster") from None
        _check_nonce(self._server_nonce)
        return _encode(Proof(self._nonce, self._proof("client"), self._place))

    def finish(self, head: Buffer) -> None:
        """Raises `HandshakeError` unless the server knows the secret too."""
        try:
            proof = _read_accepted(head).proof
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise HandshakeError("the server does not prove that it knows the cluster's secret") from None
        if not hmac.compare_digest(proof, self._proof("server")):
            raise HandshakeError("the server does not know the cluster's secret")

    def _proof(self, side: str) -> bytes:
        return _proof(self._secret, self._service, side, self._server_nonce, self._nonce, self._place)


def _check_nonce(nonce: bytes) -> None:
    if len(nonce) != NONCE_BYTES:
        raise HandshakeError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}")


def _proof(
    secret: bytes, service: str, side: str, server_nonce: bytes, client_nonce: bytes, place: str
) -> bytes:
    # Nonces have a fixed length, so that no part of the address can be taken for a part of them.
    said = f"penstock cluster 1\0{service}\0{side}\0".encode() + server_nonce + client_nonce + place.encode()
    return hmac.digest(secret, said, "sha256")
