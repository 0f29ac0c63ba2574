"""Waiting receives that the guard ends because their user lost the right to receive: the answers to their clients."""

from __future__ import annotations

from penstock.frontend.native.answers import messages_in
from penstock.frontend.native.client import Client
from penstock.model.batch import Buffer
from penstock.wire import messages
from penstock.wire.frames import encode_frame, whole_frames

RECEIVES = frozenset({messages.Receive, messages.ReceiveAny, messages.ReadLog})
"""Requests whose answers contain messages, and that may wait for them."""


def without_ended(client: Client, buffers: list[Buffer]) -> list[Buffer]:
    """The answers for a client, in which an ended receive has an error in place of its empty answer.

    Two answers come under its id, in any order: its own, and the `Done` of the `Unsubscribe` with which the guard has
    ended it, which the client does not see. An answer with messages was sent before that, and is passed on.
    """
    kept: list[Buffer] = []
    for request_id, head, frame in whole_frames(buffers):
        ended = client.ended.get(request_id)
        if ended is None:
            kept += frame
            continue
        answer = messages.decode_answer(head)
        if isinstance(answer, messages.Done):
            client.unrecorded.pop(request_id, None)
            ended.is_done = True
        else:
            ended.is_answered = True
            if isinstance(answer, messages.Failed) or messages_in(answer):
                kept += frame
            else:
                failed = messages.Failed(ended.error.code, ended.error.message)
                kept += encode_frame(request_id, messages.encode_message(failed))
        if ended.is_done and ended.is_answered:
            del client.ended[request_id]  # the id is free
    return kept
