"""Handles all frames of a native client until it is admitted."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.frontend.native.authentication import AdmittedClient, Authentication, Challenged
from penstock.frontend.native.client import Client
from penstock.frontend.native.permissions import Visit
from penstock.frontend.native.record import NativeRecord
from penstock.frontend.native.rules import CONNECTED
from penstock.frontend.native.sides import Inside, Outside
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import FRAME_BYTES
from penstock.wire import messages
from penstock.wire.credentials import GREETING_BYTES, Prove, read_greeting
from penstock.wire.frames import Frame, encode_frame, frames_in

_NOTHING = memoryview(b"")
GREETINGS_AT_MOST = 8
"""Two are enough. Each costs time, and a client that is no user could send them for ever."""


class Greeter:
    """Admits clients, or refuses them."""

    def __init__(
        self,
        authentication: Authentication,
        record: NativeRecord,
        outside: Outside,
        now_ms: Callable[[], int],
    ) -> None:
        self.authentication = authentication
        self._record = record
        self._outside = outside
        self._now_ms = now_ms

    def connected(self, connection: int) -> None:
        """A client has connected."""
        if not self.authentication.is_open:
            self._outside.allow(connection, GREETING_BYTES)

    def greet(self, connection: int, client: Client, frame: Frame, inside: Inside) -> None:
        """Handles a frame of a client that is not admitted yet."""
        now_ms = self._now_ms()
        asked = self._record.asked(CONNECTED, "", frame, now_ms, self._record.timer_us())
        client.greetings += 1
        try:
            if client.greetings > GREETINGS_AT_MOST:
                raise PenstockError(ErrorCode.BAD_REQUEST, "the client does not authenticate; connect again")
            said = read_greeting(frame.head)
            if said is None or (isinstance(said, Prove) and client.challenged is None):
                client.proven = client.proven or self._outside.expect(connection)
                inside.handle(connection, (frame,))  # which says that one greets first
                return
            if isinstance(said, Prove):
                assert client.challenged is not None
                admitted = self.authentication.prove(
                    client.challenged, said, self._outside.channel_of(connection), client.peer.address, now_ms
                )
                hello = client.challenged.hello
            else:
                outcome = self.authentication.greet(said, client.peer.address)
                if isinstance(outcome, Challenged):
                    client.challenged = outcome
                    client.proven = client.proven or self._outside.expect(connection)
                    head = messages.encode_message(messages.Challenge(outcome.nonce))
                    self._outside.write(connection, encode_frame(frame.request_id, head))
                    return
                admitted, hello = outcome, said
        except PenstockError as error:
            failed = messages.Failed(error.code, error.message)
            self._record.refused(asked, client.who, failed, now_ms)
            self._outside.refuse(connection, error, frame.request_id)
            return
        self._let_in(connection, client, admitted, hello)
        if client.visit is not None:
            client.asked[frame.request_id] = asked
        plain = messages.encode_message(messages.Hello(hello.versions, hello.client))
        inside.handle(connection, (Frame(frame.request_id, memoryview(plain), _NOTHING),))

    def _let_in(
        self, connection: int, client: Client, admitted: AdmittedClient, hello: messages.Hello
    ) -> None:
        client.admitted, client.challenged, client.name = admitted, None, hello.client
        client.proof = admitted.proof
        self._outside.allow(connection, FRAME_BYTES)
        if client.proven is not None:
            client.proven()
            client.proven = None
        if admitted.session is not None:
            client.visits(Visit(admitted.session, client.peer, hello.client))


def with_proof(client: Client, buffers: list[Buffer]) -> list[Buffer]:
    """The welcome, with what the client asked for in turn; it is the first that is answered."""
    proof, client.proof = client.proof, b""
    request_id, head, _ = next(frames_in(buffers))
    answer = messages.decode_answer(head)
    if not isinstance(answer, messages.Welcome):
        return buffers
    welcome = msgspec.structs.replace(answer, proof=proof)
    return [*encode_frame(request_id, messages.encode_message(welcome)), *buffers[1:]]
