"""The two kinds of shape, requests and results, and the numbers they hold."""

from __future__ import annotations

from typing import Annotated

import msgspec

Integer = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""An `Integer` of the service's model; a larger number is a malformed request, not a value out of range."""


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """The input of an action; unknown members are ignored."""


class QueueRequest(Request, frozen=True, kw_only=True):
    """The input of an action on one queue; the address of the request may replace `QueueUrl`."""

    queue_url: str = ""


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """The output of an action; empty members are left out. The order is that of the XML elements."""
