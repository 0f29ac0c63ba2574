"""Passes a request of the native protocol on: the frame as it came, with its decoded head.

Only requests for a ticket, or for a list of queues, are changed.
"""

from __future__ import annotations

import msgspec

from penstock.frontend.native.permissions import Permissions, Visit
from penstock.frontend.native.record import Asked, leaves_rows, queue_of
from penstock.frontend.native.rules import About, Rule
from penstock.wire import messages
from penstock.wire.frames import Frame
from penstock.wire.read_ticket import Holder, encode_holder


def handed_on(
    permissions: Permissions, visit: Visit, rule: Rule, request: messages.Request, frame: Frame, asked: Asked
) -> Frame:
    """The frame for the node or the router, neither of which must decode the head again."""
    request_id, head, body, _ = frame
    if isinstance(request, messages.LocateLog):
        request = _with_holder(visit, request, asked)
        head = memoryview(messages.encode_message(request))
    elif rule.about is About.ALL:
        request = permissions.narrowed(visit, request)
        head = memoryview(messages.encode_message(request))
    return Frame(request_id, head, body, request)


def _with_holder(visit: Visit, request: messages.LocateLog, asked: Asked) -> messages.LocateLog:
    """Says who asks, so that the node can record what is read with the ticket; it knows no users."""
    holder = (
        encode_holder(Holder(visit.session.account, visit.session.user, queue_of(asked)))
        if leaves_rows(asked)
        else b""
    )
    return msgspec.structs.replace(request, holder=holder)
