"""Converts between the engine's name of a queue and its region, account and name in SQS.

Queues of the server's own account and region have the same name in both, so that the native protocol and the command line
reach them; others have account and region in front: `123456789012.eu-west-1.orders`. SQS names contain no dot (except for
`.fifo`), so the two forms never collide.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.sqs.names import QueueArn, is_queue_name

_FOREIGN = re.compile(r"([0-9]{12})\.([A-Za-z0-9-]{1,64})\.(.+)")


class DefaultAccount(NamedTuple):
    """The account and region whose queues have plain names."""

    account: str
    region: str


def native_name(home: DefaultAccount, region: str, account: str, name: str) -> str:
    """The engine's name of the queue."""
    if (account, region) == home:
        return name
    return f"{account}.{region}.{name}"


def native_prefix(home: DefaultAccount, region: str, account: str, prefix: str) -> str:
    """The prefix of the engine's names of an account's queues in a region."""
    return native_name(home, region, account, prefix)


def arn_of(home: DefaultAccount, native: str) -> QueueArn | None:
    """The queue as SQS names it, or None for a name that SQS cannot say."""
    if is_queue_name(native):
        return QueueArn(home.region, home.account, native)
    match = _FOREIGN.fullmatch(native)
    if match is None or not is_queue_name(match[3]) or (match[1], match[2]) == home:
        return None
    return QueueArn(match[2], match[1], match[3])
