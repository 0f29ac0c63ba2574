"""Names and addresses of queues: name rules, ARNs, queue URLs, accounts and regions.

A queue URL is opaque to clients; the server only uses its account and name. An invalid address is answered like that of a
queue that does not exist.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from penstock.sqs.refusals import bad_queue_name, queue_does_not_exist

DEFAULT_ACCOUNT = "000000000000"
DEFAULT_REGION = "us-east-1"

URL_CHARACTERS = 1024
FIFO_SUFFIX = ".fifo"
LATE_SUFFIX = ".late"
"""The engine creates such a queue for messages that came too late for their position in the order of another."""

_STANDARD_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")
_ACCOUNT = re.compile(r"[0-9]{12}")
_ARN = re.compile(r"arn:(aws[a-z-]{0,20}):sqs:([a-z0-9-]{1,40}):([0-9]{12}):([A-Za-z0-9_.-]{1,85})")
_VIRTUAL_HOST = re.compile(
    r"([A-Za-z0-9_-]{1,80}(?:\.fifo)?(?:\.late)?)\.([0-9]{12})\.[A-Za-z0-9.-]+(?::[0-9]+)?"
)
_REGION = r"[a-z]{2}-[a-z-]{1,30}-[0-9]"
_REGION_IN_HOST = re.compile(rf"(?:^|\.)(?:sqs\.({_REGION})|({_REGION})\.queue)\.")


class QueueAddress(NamedTuple):
    """Account and name; no account means the caller's own."""

    account: str | None
    name: str


class QueueArn(NamedTuple):
    """A queue's Amazon Resource Name."""

    region: str
    account: str
    name: str
    partition: str = "aws"

    def __str__(self) -> str:
        return f"arn:{self.partition}:sqs:{self.region}:{self.account}:{self.name}"


def is_queue_name(name: str) -> bool:
    """Whether a queue of either kind could have this name, or the queue of its late messages."""
    name = name.removesuffix(LATE_SUFFIX)
    return bool(_STANDARD_NAME.fullmatch(name) or _FIFO_NAME.fullmatch(name))


def check_queue_name(name: str, *, fifo: bool) -> None:
    """Raises unless a queue of this kind may be created under the name."""
    if not (_FIFO_NAME if fifo else _STANDARD_NAME).fullmatch(name):
        raise bad_queue_name()


def is_account(text: str) -> bool:
    """Whether the text is an account id: twelve digits."""
    return bool(_ACCOUNT.fullmatch(text))


def account_of_access_key(access_key: str) -> str:
    """The account of a key that no user owns: a key of twelve digits names its account, as emulators do."""
    return access_key if _ACCOUNT.fullmatch(access_key) else DEFAULT_ACCOUNT


def parse_arn(text: str) -> QueueArn | None:
    """The queue that an ARN names, or None when it names none."""
    match = _ARN.fullmatch(text)
    if match is None or not is_queue_name(match[4]):
        return None
    return QueueArn(match[2], match[3], match[4], match[1])


def queue_url(endpoint: str, account: str, name: str) -> str:
    """The URL that is given out; `endpoint` is scheme, host and port, as the caller reached us."""
    return f"{endpoint}/{account}/{name}"


def parse_queue_url(url: str) -> QueueAddress:
    """The queue of a `QueueUrl`: a full URL with any host, one of a virtual host, a path, or only a queue name."""
    # The length is checked before the cache, so that the cache cannot be filled with megabytes.
    if len(url) > URL_CHARACTERS:
        raise queue_does_not_exist()
    address = _parse_queue_url(url)
    if address is None:
        raise queue_does_not_exist()
    return address


@lru_cache(maxsize=4096)
def _parse_queue_url(url: str) -> QueueAddress | None:
    _, scheme, rest = url.partition("://")
    if not scheme:
        return _parse_path(url)
    host, _, path = rest.partition("/")
    if not path:
        return parse_host(host)
    return _parse_path(path) if host else None


def parse_path(path: str) -> QueueAddress | None:
    """The queue that a request path addresses; None for `/` and for what addresses no queue."""
    return None if path == "/" or len(path) > URL_CHARACTERS else _parse_path(path)


def _parse_path(path: str) -> QueueAddress | None:
    """Last segment = name, last but one = account; a lone name is the caller's own queue."""
    segments = path.removeprefix("/").split("/")
    name = segments[-1]
    if not is_queue_name(name):
        return None
    if len(segments) == 1:
        return QueueAddress(None, name)
    account = segments[-2]
    if _ACCOUNT.fullmatch(account):
        return QueueAddress(account, name)
    # ElasticMQ gives out /queue/<name>; programs keep such URLs in their configuration.
    return QueueAddress(None, name) if len(segments) == 2 and account == "queue" else None


def parse_host(host: str) -> QueueAddress | None:
    """The queue that a virtual host addresses: `<name>.<account>.<any domain>`."""
    match = _VIRTUAL_HOST.fullmatch(host) if len(host) <= URL_CHARACTERS else None
    return QueueAddress(match[2], match[1]) if match else None


def region_of_host(host: str) -> str | None:
    """The region a host names, as `sqs.<region>.<domain>` or `<region>.queue.<domain>`."""
    match = _REGION_IN_HOST.search(host) if len(host) <= URL_CHARACTERS else None
    return (match[1] or match[2]) if match else None
