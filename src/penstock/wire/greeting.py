"""The greeting of the native protocol at the client's side. `credentials.py` defines its messages."""

from __future__ import annotations

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.credentials import Credentials, Prove, check_server, client_proof
from penstock.wire.messages import PROTOCOL_VERSION, Answer, Challenge, Failed, Hello, Welcome
from penstock.wire.refusals import error_of

NO_SERVER = "the program there is not a Penstock server"
"""The beginning of the error if no Penstock server answers."""


class Greeting:
    """Returns the next message until the server has welcomed the client. Nonces are arguments."""

    def __init__(
        self,
        name: str,
        credentials: Credentials | None,
        nonce: bytes,
        server: object,
        *,
        must_prove: bool = False,
    ) -> None:
        """`server` is how people call it. `must_prove`: it has shown before that it knows our secret, so that one that does not is
        another, also on this machine."""
        self._name = name
        self._credentials = credentials
        self._nonce = nonce if credentials is not None else b""
        self._server = server
        self._must_prove = must_prove
        self._server_nonce: bytes | None = None

    def hello(self) -> Hello:
        """The first message."""
        key = self._credentials.access_key if self._credentials is not None else ""
        return Hello([PROTOCOL_VERSION], self._name, key, self._nonce)

    def heard(self, answer: Answer, peer: str, channel: bytes = b"") -> Prove | Welcome:
        """The reply to an answer, or the welcome that ends the greeting. `peer` is the server's address without the port,
        `channel` the `channel_of` this end of the connection.

        Raises `PenstockError` if the server refuses, is no Penstock server, or is not the expected one.
        """
        shown = self._credentials
        match answer:
            case Failed():
                raise error_of(answer)
            case Challenge() if shown is not None and self._server_nonce is None:
                self._server_nonce = answer.nonce
                proof = client_proof(shown.secret, shown.access_key, answer.nonce, self._nonce, channel)
                return Prove(proof, channel)
            case Welcome():
                if shown is not None:
                    near = "" if self._must_prove else peer
                    check_server(
                        shown, self._server_nonce, self._nonce, answer.proof, self._server, near, channel
                    )
                return answer
            case _:
                raise PenstockError(
                    ErrorCode.BAD_FRAME,
                    f"{NO_SERVER}: it answers a greeting with {type(answer).__name__}",
                )
