"""What the native guard hands on: the frame, and the request in it, which say the same."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.frontend.authenticate import open_session
from penstock.frontend.native.handing_on import handed_on
from penstock.frontend.native.permissions import Permissions, Visit
from penstock.frontend.native.rules import RULES
from penstock.frontend.queues.directory import QueueDirectory
from penstock.metadata.mirror.cache import MetadataCache
from penstock.sqs.protocols.http import Peer
from penstock.wire import messages
from penstock.wire.frames import Frame
from penstock.wire.messages import request_of
from tests.frontend.harness import HOME

BODY = memoryview(b"body")
ASKED = ("LocateLog", "an arn", 1, 1, 1, 0, False)


class _Names:
    def name_of(self, queue_id: int) -> str | None:
        return None

    def id_of(self, name: str) -> int | None:
        return None

    def may_be_new(self, queue_id: int) -> bool:
        return False


def _handed_on(request: messages.Request, *, unrestricted: bool) -> Frame:
    session = open_session("111111111111", HOME.region, "ada")
    if not unrestricted:
        changes: dict[str, Any] = {"unrestricted": False}
        session = type(session)(
            **{name: getattr(session, name) for name in session.__struct_fields__} | changes
        )
    visit = Visit(session, Peer("127.0.0.1", secure=False), "a test")
    permissions = Permissions(HOME, QueueDirectory(HOME, MetadataCache()), _Names())
    frame = Frame(7, memoryview(messages.encode_message(request)), BODY)
    return handed_on(permissions, visit, RULES[type(request)], request, frame, ASKED)


@pytest.mark.parametrize("unrestricted", [True, False])
@pytest.mark.parametrize(
    "request_", [messages.Send(1), messages.LocateLog(1), messages.ListQueues("", "", 10)], ids=repr
)
def test_the_head_and_what_was_decoded_of_it_are_the_same_request(
    request_: messages.Request, unrestricted: bool
) -> None:
    frame = _handed_on(request_, unrestricted=unrestricted)
    assert (frame.request_id, frame.body) == (7, BODY)
    assert messages.decode_request(frame.head) == frame.request


def test_a_head_that_was_decoded_is_not_decoded_again() -> None:
    frame = _handed_on(messages.Send(1), unrestricted=True)
    assert request_of(frame._replace(head=memoryview(b"unreadable"))) is frame.request


def test_a_user_is_shown_the_queues_of_its_account_alone() -> None:
    listed = _handed_on(messages.ListQueues("", "", 10), unrestricted=False).request
    assert listed.owners == ["111111111111"]
