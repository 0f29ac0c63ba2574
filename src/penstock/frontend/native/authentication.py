"""Authentication of native clients: greets them, challenges those with an access key, and identifies them."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import NamedTuple

from penstock.frontend.authenticate import ANONYMOUS, open_session, session_of
from penstock.frontend.local_only import is_loopback
from penstock.frontend.queues.native_names import DefaultAccount
from penstock.frontend.session import Session
from penstock.frontend.throttle.failed_signatures import FailedSignatures
from penstock.metadata.users.directory import KeyOwner, UserDirectory
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.credentials import LINK_KEY, NONCE_BYTES, Prove, client_proof, server_proof
from penstock.wire.requests import Hello

KEYS_REMEMBERED = 10_000
_KEY_CHARACTERS = 128
"""A longer key is cut in records while any key is accepted."""


class AdmittedClient(NamedTuple):
    """A client that was admitted."""

    session: Session | None
    """None: a front end of this server, which is no user: it has authenticated its own clients."""
    owner: KeyOwner | None
    """The owner of the key; None while there are no users."""
    proof: bytes = b""
    """For the welcome."""


class Challenged(NamedTuple):
    """A client that must prove its identity."""

    hello: Hello
    nonce: bytes


class Authentication:
    """The users and their keys. Its errors say what to do, and nothing about which keys exist."""

    def __init__(
        self,
        users: UserDirectory,
        home: DefaultAccount,
        failures: FailedSignatures,
        *,
        link_secret: str,
        open_without_users: bool,
        token: Callable[[int], bytes],
    ) -> None:
        self._users = users
        self._home = home
        self._failures = failures
        self._link_secret = link_secret
        self._open_without_users = open_without_users
        self._token = token
        self._nobodys_secret = token(32).hex()
        """Proofs of unknown keys are compared with this, so that they take as long as others."""
        self._proven: set[str] = set()
        """Keys that were proven before: failures of others do not lock them out."""

    @property
    def is_open(self) -> bool:
        """Whether there are no users, so that everything is allowed."""
        return self._open_without_users and not self._users.has_users()

    def greet(self, hello: Hello, address: str) -> AdmittedClient | Challenged:
        """The answer to a greeting from an address; raises if it is refused."""
        if self.is_open:
            if not is_loopback(address):
                raise _not_from_here()
            if hello.access_key == LINK_KEY:
                return AdmittedClient(None, None)
            user = hello.access_key[:_KEY_CHARACTERS] or ANONYMOUS
            return AdmittedClient(open_session(self._home.account, self._home.region, user), None)
        if not hello.access_key:
            raise _no_key()
        if len(hello.nonce) != NONCE_BYTES:
            raise PenstockError(
                ErrorCode.BAD_REQUEST, f"with an access key goes a nonce of {NONCE_BYTES} bytes"
            )
        return Challenged(hello, self._token(NONCE_BYTES))

    def prove(
        self, challenged: Challenged, said: Prove, channel: bytes, address: str, now_ms: int
    ) -> AdmittedClient:
        """The client that has proven its identity; the error is the same for an unknown key and a wrong secret.

        `channel`: of this end of the connection. Without TLS here a balancer may have terminated it, and the client's end
        is unknown.
        """
        hello, nonce = challenged
        key = hello.access_key
        throttled = self._failures.are_used_up(address, now_ms)
        if throttled and key not in self._proven:
            raise _too_many()
        owner: KeyOwner | None = None
        secret = self._nobodys_secret
        if key == LINK_KEY:
            secret = self._link_secret
        elif (owner := self._users.find_key(key)) is not None:
            secret = owner.secret
        expected = client_proof(secret, key, nonce, hello.nonce, said.channel)
        if not hmac.compare_digest(expected, said.proof):
            if throttled:  # the same for all keys: another answer would tell which ones are in use
                raise _too_many()
            self._failures.count(address, now_ms)
            raise _wrong_link() if key == LINK_KEY else _wrong_key(key)
        if channel and said.channel != channel:
            raise _passed_on()
        if len(self._proven) >= KEYS_REMEMBERED:
            self._proven.clear()
        self._proven.add(key)
        shown = server_proof(secret, key, nonce, hello.nonce, said.channel)
        if owner is None:
            return AdmittedClient(None, None, shown)
        return AdmittedClient(session_of(owner, self._home.region), owner, shown)

    def review(self, admitted: AdmittedClient) -> AdmittedClient:
        """The same client after users, keys or policies have changed; raises if it is no longer admitted."""
        if admitted.session is None:
            if admitted.proof or self.is_open:
                return admitted
            raise _wrong_link()  # it was admitted without users, and must authenticate when it reconnects
        if admitted.owner is None:
            if self.is_open:
                return admitted
            raise _no_key()
        owner = self._users.find_key(admitted.owner.key_id)
        if owner is admitted.owner:
            return admitted
        if owner is None or owner.secret != admitted.owner.secret:
            raise _wrong_key(admitted.owner.key_id)
        return AdmittedClient(session_of(owner, self._home.region), owner)


def _not_from_here() -> PenstockError:
    return PenstockError(
        ErrorCode.UNAUTHENTICATED,
        "there are no users yet, so only clients on the server's own machine are served, also behind a balancer: create a user "
        "with `penstock user create NAME --root`, and connect with its key",
    )


def _no_key() -> PenstockError:
    return PenstockError(
        ErrorCode.UNAUTHENTICATED,
        "this server has users: connect with access_key and secret_key, or set the variables "
        "PENSTOCK_ACCESS_KEY and PENSTOCK_SECRET_KEY. `penstock user key create NAME` creates a key",
    )


def _too_many() -> PenstockError:
    return PenstockError(
        ErrorCode.OVERLOADED, "too many wrong access keys came from your address lately; try again later"
    )


def _passed_on() -> PenstockError:
    return PenstockError(
        ErrorCode.UNAUTHENTICATED,
        "the client did not receive this server's certificate: an intermediary forwards the connection. A balancer must pass TLS through "
        "to servers that have a certificate (native.tls_certificate), and clients of earlier versions must be upgraded",
    )


def _wrong_key(key: str) -> PenstockError:
    return PenstockError(
        ErrorCode.UNAUTHENTICATED,
        f"access key {key[:64]!r} is unknown or disabled, or its secret is wrong. `penstock user key list "
        "NAME` shows the keys of a user, `penstock user key create NAME` creates a new one",
    )


def _wrong_link() -> PenstockError:
    return PenstockError(
        ErrorCode.UNAUTHENTICATED,
        "this front end does not have the server's master key: give it the same `metadata.file` and `metadata.key_file` "
        "as the server has",
    )
