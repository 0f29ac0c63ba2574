"""Users and their access keys as they are stored: `users/<name>` and `keys/<access key id>`."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

import msgspec

from penstock.metadata.seals.master_key import MasterKey, Token, WrongMasterKeyError
from penstock.model.document import Document, DocumentReader, UnsealedError

USERS = "users/"
KEYS = "keys/"
USER_NAME = re.compile(r"[A-Za-z0-9_+=,.@-]{1,64}")
POLICY_NAME = re.compile(r"[A-Za-z0-9_+=,.@-]{1,128}")
ACCOUNT = re.compile(r"[0-9]{12}")
KEY_ID = re.compile(r"[A-Z0-9]{16,128}")
DEFAULT_ACCOUNT = "000000000000"


class User(Document, frozen=True, kw_only=True):
    """A user who may sign requests."""

    name: str
    account: str
    """Twelve digits."""
    user_id: str
    """Never used again, so that a new user with an old name does not inherit keys."""
    root: bool = False
    """May do everything in its account; no policy can forbid it anything there."""
    policies: dict[str, str] = msgspec.field(default_factory=dict)
    """By name: the JSON text of each."""
    enabled: bool = True
    created_ms: int
    number: int = 0
    """Rises with every record of users and keys that is written (`user_register`)."""


class AccessKey(Document, frozen=True, kw_only=True):
    """An access key; the secret is encrypted."""

    key_id: str
    user: str
    user_id: str
    secret: bytes
    enabled: bool = True
    created_ms: int
    number: int = 0
    """As with users."""


_encoder = msgspec.json.Encoder()
_users: DocumentReader[User] = DocumentReader(User)
_keys: DocumentReader[AccessKey] = DocumentReader(AccessKey)


def encode(stored: User | AccessKey) -> bytes:
    """The bytes to store."""
    return _encoder.encode(stored)


def decode_user(stored: bytes) -> User:
    """A stored user; raises `msgspec.MsgspecError` on anything else."""
    return _users.decode(stored)


def decode_key(stored: bytes) -> AccessKey:
    """A stored access key; raises `msgspec.MsgspecError` on anything else."""
    return _keys.decode(stored)


def is_proper(place: str, record: User | AccessKey) -> bool:
    """Whether a record is one that an administrator can have made, and is stored under its own key.

    Seals show that; if an operator must confirm a record without one, this check prevents it from looking like another.
    """
    if isinstance(record, User):
        return (
            place == USERS + record.name
            and USER_NAME.fullmatch(record.name) is not None
            and ACCOUNT.fullmatch(record.account) is not None
            and all(POLICY_NAME.fullmatch(name) for name in record.policies)
        )
    return place == KEYS + record.key_id and KEY_ID.fullmatch(record.key_id) is not None


def opens_any(master_key: MasterKey, stored: Iterable[bytes]) -> bool:
    """Whether a master key is the one that any of these access keys was encrypted and sealed with; so it is where there are
    none."""
    nothing = True
    for one in stored:
        try:
            key = decode_key(one)
            master_key.decrypt(key.secret, key.key_id)
        except (WrongMasterKeyError, UnsealedError):
            nothing = False
        except msgspec.MsgspecError:
            continue
        else:
            return True
    return nothing


def new_user_id(token: Token) -> str:
    """`AIDA` and 17 more characters."""
    return "AIDA" + base64.b32encode(token(11)).decode()[:17]


def new_access_key(user: User, master_key: MasterKey, token: Token, now_ms: int) -> tuple[AccessKey, str]:
    """A key of a user, and its secret, which is nowhere in clear but in this answer."""
    key_id = "AKIA" + base64.b32encode(token(10)).decode()
    secret = base64.b64encode(token(30)).decode()
    encrypted = master_key.encrypt(secret.encode(), key_id, token)
    key = AccessKey(key_id=key_id, user=user.name, user_id=user.user_id, secret=encrypted, created_ms=now_ms)
    return key, secret
