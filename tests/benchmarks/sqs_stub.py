"""A server that answers the requests of the SQS load, verifies every signature, and can be told to lie."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import msgspec

from benchmarks.sqs.tasks import Endpoint
from penstock.sqs.protocols.http import HttpRequest, request_of
from penstock.sqs.signing.authorization import read_authorization
from penstock.sqs.signing.signature import verify_signature
from penstock.sqs.signing.signing_keys import SigningKeys

SECRET = "a secret of the test"


class SqsStub:
    """One queue in memory; `md5` may be replaced with a liar."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque()
        self.leased: dict[str, str] = {}
        self.actions: list[str] = []
        self.status = "200 OK"
        self._keys = SigningKeys()
        self._arrived = asyncio.Event()

    def md5(self, text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await self._head(reader):
            lines = head.decode("latin-1").split("\r\n")
            headers = [line.split(": ", 1) for line in lines[1:] if line]
            length = next(int(value) for name, value in headers if name == "Content-Length")
            pairs = [(name.encode(), value.encode()) for name, value in headers]
            request = request_of("POST", "/", pairs, await reader.readexactly(length))
            verify_signature(request, read_authorization(request), SECRET, int(time.time()), self._keys)
            body = msgspec.json.encode(await self._answer(request))
            # In two pieces, as a large answer arrives.
            writer.write(f"HTTP/1.1 {self.status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body[:5])
            await writer.drain()
            writer.write(body[5:])
        writer.close()

    async def _head(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def _answer(self, request: HttpRequest) -> dict[str, Any]:
        action = request.headers["x-amz-target"].removeprefix("AmazonSQS.")
        self.actions.append(action)
        parameters = msgspec.json.decode(request.body)
        match action:
            case "CreateQueue":
                return {"QueueUrl": f"http://here/000000000000/{parameters['QueueName']}"}
            case "GetQueueAttributes":
                return {"Attributes": {"QueueArn": "arn"}}
            case "SendMessage":
                return self._sent(parameters["MessageBody"])
            case "SendMessageBatch":
                entries = parameters["Entries"]
                return {"Successful": [{"Id": e["Id"], **self._sent(e["MessageBody"])} for e in entries]}
            case "ReceiveMessage":
                return await self._received(parameters["MaxNumberOfMessages"], parameters["WaitTimeSeconds"])
            case _:
                for entry in parameters["Entries"]:
                    del self.leased[entry["ReceiptHandle"]]
                return {"Successful": [{"Id": entry["Id"]} for entry in parameters["Entries"]]}

    def _sent(self, text: str) -> dict[str, str]:
        self.waiting.append(text)
        self._arrived.set()
        return {"MD5OfMessageBody": self.md5(text), "MessageId": str(uuid4())}

    async def _received(self, most: int, wait_seconds: int) -> dict[str, Any]:
        while wait_seconds and not self.waiting:
            self._arrived.clear()
            await self._arrived.wait()
        messages: list[dict[str, str]] = []
        while self.waiting and len(messages) < most:
            text, handle = self.waiting.popleft(), str(uuid4())
            self.leased[handle] = text
            messages.append(
                {
                    "MessageId": str(uuid4()),
                    "ReceiptHandle": handle,
                    "Body": text,
                    "MD5OfBody": self.md5(text),
                }
            )
        return {"Messages": messages} if messages else {}


@asynccontextmanager
async def running_stub() -> AsyncIterator[tuple[SqsStub, Endpoint]]:
    """The stub and where it is."""
    stub = SqsStub()
    async with await asyncio.start_server(stub.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield (
            stub,
            Endpoint(host="127.0.0.1", port=port, access_key="KEY", secret=SECRET, queue_url="load"),
        )
