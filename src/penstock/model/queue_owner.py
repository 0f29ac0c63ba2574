"""The owner of a queue, by its name: `<account>.<region>.<name>` belongs to the account, any other name to no particular one.

Names without an account belong to the server's own account, which only front ends know; here they have the owner "".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_OWNED = re.compile(r"([0-9]{12})\.[A-Za-z0-9-]{1,64}\..")
NOBODY = ""
"""The owner of names that say none."""


def owner_of(name: str) -> str:
    """The account that a queue's name begins with, or `NOBODY`."""
    match = _OWNED.match(name)
    return match[1] if match is not None else NOBODY


def is_owned(name: str, owners: Sequence[str]) -> bool:
    """Whether a queue is one of these owners'; no owners: all are."""
    return not owners or owner_of(name) in owners
