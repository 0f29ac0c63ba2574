"""Step 1, validate: which protocol a request speaks, which action it asks for, with which parameters."""

from __future__ import annotations

from typing import NamedTuple

from penstock.sqs.call import Call, read_call
from penstock.sqs.errors import SqsError
from penstock.sqs.http import HttpRequest
from penstock.sqs.protocol import Protocol, protocol_of


class Validated(NamedTuple):
    """A request as far as it could be read; either a call or what is wrong with it."""

    protocol: Protocol
    call: Call | None
    refused: SqsError | None


def validate(request: HttpRequest) -> Validated:
    """Never raises: who may not ask at all is told that, and not what is wrong with the question."""
    protocol = protocol_of(request)
    try:
        return Validated(protocol, read_call(request, protocol), None)
    except SqsError as refused:
        return Validated(protocol, None, refused)
