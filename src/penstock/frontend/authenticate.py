"""Step 1, authenticate: identifies the caller of a request.

With users, one of their keys must sign every request. Without users (the server then listens on loopback only), any
credentials are accepted: they choose account and region, as developers expect of a local server. Then only this machine is
served (`local_only`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from penstock.frontend.local_only import why_not_served
from penstock.frontend.queues.native_names import DefaultAccount
from penstock.frontend.session import Session
from penstock.frontend.throttle.failed_signatures import FailedSignatures
from penstock.metadata.users.directory import KeyOwner, UserDirectory
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.names import account_of_access_key, region_of_host
from penstock.sqs.policies.evaluation import Caller
from penstock.sqs.policies.policy import parse_identity_policy
from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.refusals import request_throttled
from penstock.sqs.signing.authorization import Authorization, read_authorization
from penstock.sqs.signing.known_signer import KnownSigner, is_usual, start_of
from penstock.sqs.signing.signature import invalid_access_key, verify_signature
from penstock.sqs.signing.signing_keys import SigningKeys

ANONYMOUS = "anonymous"
_SESSIONS = 10_000


class _Known(NamedTuple):
    owner: KeyOwner
    signer: KnownSigner
    session: Session


class Authenticator:
    """The users, and the signing keys that were recently derived from their secrets."""

    def __init__(
        self,
        users: UserDirectory,
        home: DefaultAccount,
        failures: FailedSignatures,
        *,
        open_without_users: bool,
    ) -> None:
        self._users = users
        self._home = home
        self._failures = failures
        self._open_without_users = open_without_users
        self._keys = SigningKeys()
        self._sessions: dict[tuple[str, str], tuple[KeyOwner, Session]] = {}
        self._known: dict[str, _Known] = {}
        """The callers that signed correctly before, by the beginning of their headers."""
        self._proven: set[str] = set()
        """Keys that signed rightly before. Each key is in it once, for all regions, so one user cannot drive others out."""

    def authenticate(self, request: HttpRequest, address: str, wall_ms: int, now_ms: int) -> Session:
        """The caller who signed the request from an address; raises if it is unknown.

        `wall_ms` is the wall clock, `now_ms` a time that never goes back.
        """
        if self._open_without_users and not self._users.has_users():
            return self._anybody(request, address)
        header = request.headers.get("authorization")
        if header is not None:
            known = self._known.get(start_of(header))
            if (
                known is not None
                and self._users.find_key(known.owner.key_id) is known.owner
                and known.signer.has_signed(request, header, wall_ms // 1000)
            ):
                return known.session
        throttled = self._failures.are_used_up(address, now_ms)
        try:
            return self._unknown(request, header, wall_ms // 1000, throttled)
        except SqsError:
            if throttled:
                raise request_throttled() from None
            self._failures.count(address, now_ms)
            raise

    def review(self, request: HttpRequest, session: Session, wall_ms: int) -> Session:
        """The caller of a request that was accepted at that time, after users have changed; raises if it is no longer
        allowed.

        This is not counted as a failure, because it was none when the request arrived.
        """
        if self._open_without_users and not self._users.has_users():
            return session
        header = request.headers.get("authorization")
        known = self._known.get(start_of(header)) if header is not None else None
        if (
            known is not None
            and known.session is session
            and self._users.find_key(known.owner.key_id) is known.owner
        ):
            return session
        return self._unknown(request, header, wall_ms // 1000, throttled=False)

    def _unknown(self, request: HttpRequest, header: str | None, now_s: int, throttled: bool) -> Session:
        """With every question asked, and an answer to each."""
        authorization = read_authorization(request)
        scope = authorization.scope
        owner = self._users.find_key(scope.access_key)
        if owner is None:
            raise invalid_access_key()
        if throttled and owner.key_id not in self._proven:
            # the signature is compared only for addresses that have not failed too often
            raise request_throttled()
        verify_signature(request, authorization, owner.secret, now_s, self._keys)
        if owner.key_id not in self._proven:
            if len(self._proven) >= _SESSIONS:
                self._proven.clear()
            self._proven.add(owner.key_id)
        session = self._session_of(owner, scope.region)
        if header is not None and is_usual(header, scope):
            if len(self._known) >= _SESSIONS:
                self._known.clear()
            key = self._keys.get(owner.secret, scope.day, scope.region)
            self._known[start_of(header)] = _Known(owner, KnownSigner(scope, key), session)
        return session

    def _session_of(self, owner: KeyOwner, region: str) -> Session:
        known = self._sessions.get((owner.key_id, region))
        if known is not None and known[0] is owner:
            return known[1]
        session = session_of(owner, region)
        if len(self._sessions) > _SESSIONS:
            self._sessions.clear()
        self._sessions[owner.key_id, region] = (owner, session)
        return session

    def _anybody(self, request: HttpRequest, address: str) -> Session:
        why_not = why_not_served(request.headers, address)
        if why_not is not None:
            raise SqsError(ErrorKind.ACCESS_DENIED, why_not)
        try:
            authorization: Authorization | None = read_authorization(request)
        except SqsError:
            authorization = None
        if authorization is None:
            region = region_of_host(request.headers.get("host", "")) or self._home.region
            return open_session(self._home.account, region, ANONYMOUS)
        scope = authorization.scope
        account = account_of_access_key(scope.access_key)
        if account != scope.access_key:
            account = self._home.account
        return open_session(account, scope.region, scope.access_key)


@lru_cache(maxsize=4096)
def open_session(account: str, region: str, user: str) -> Session:
    """The session of any caller, while there are no users."""
    caller = Caller(account=account, arn=f"arn:aws:iam::{account}:root", root=True)
    return Session(caller=caller, account=account, region=region, user=user, unrestricted=True)


def session_of(owner: KeyOwner, region: str) -> Session:
    """The rights of a key's owner, by its own policies."""
    user = owner.user
    arn = f"arn:aws:iam::{user.account}:" + ("root" if user.root else f"user/{user.name}")
    caller = Caller(account=user.account, arn=arn, user_name=user.name, root=user.root)
    policies = tuple(map(parse_identity_policy, owner.policies))
    return Session(
        caller=caller,
        account=user.account,
        region=region,
        user=user.name,
        sender_id=None if user.root else user.user_id,  # a root sends as its account
        policies=policies,
        conditional=any(policy.conditional for policy in policies),
    )
