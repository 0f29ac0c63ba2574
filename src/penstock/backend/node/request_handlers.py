"""Dispatches requests to their handlers."""

from __future__ import annotations

from typing import assert_never

from penstock.backend.admin import administration
from penstock.backend.admin.description import describe_node
from penstock.backend.logs import membership as log_membership
from penstock.backend.logs.reading import LogReads, find_offset
from penstock.backend.node.clock_handler import ClockHandler
from penstock.backend.node.environment import Environment
from penstock.backend.node.parts import NodeParts
from penstock.backend.receive import browsing, group_receiving, traffic
from penstock.backend.receive.settlements import Settlements
from penstock.backend.send import sends
from penstock.model.errors import ErrorCode, PenstockError
from penstock.queue.state import id_claims
from penstock.wire import messages
from penstock.wire.deduplication_messages import ClaimedIds, ClaimIds, FindIds, FoundIds
from penstock.wire.refusals import hello_first


class RequestHandlers:
    """The handler of each request."""

    def __init__(
        self,
        parts: NodeParts,
        environment: Environment,
        log_reads: LogReads,
        clock_handler: ClockHandler,
        settlements: Settlements,
        connections: dict[int, bool],
        node: str,
        started_ms: int,
    ) -> None:
        self._parts = parts
        self._environment = environment
        self._log_reads = log_reads
        self._clock_handler = clock_handler
        self._settlements = settlements
        self._connections = connections
        """Open connections, and whether each has sent its hello."""
        self._node = node
        self._started_ms = started_ms

    def take(
        self, connection: int, request_id: int, request: messages.Request, body: memoryview, now_ms: int
    ) -> None:
        """Answers a request, now or later; raises where it is wrong."""
        parts = self._parts
        if not self._connections[connection] and not isinstance(request, messages.Hello):
            raise hello_first()
        if isinstance(request, messages.Send):  # the most frequent one
            sends.send(parts, connection, request_id, request, body, now_ms)
            return
        answer: messages.Answer
        about: int | list[int] = queue_of(request)
        match request:
            case messages.Delete() | messages.Release() | messages.Extend():
                self._settlements.begin(connection, request_id, request, now_ms)
                return
            case messages.Receive():
                traffic.receive(parts, connection, request_id, request, now_ms)
                return
            case messages.ReceiveAny():
                group_receiving.receive_any(parts, connection, request_id, request, now_ms)
                return
            case messages.AddCredit():
                traffic.add_credit(parts, connection, request)
                return
            case messages.Subscribe():
                traffic.subscribe(parts, connection, request_id, request)
                return
            case messages.Unsubscribe():
                self._log_reads.cancel(connection, request.subscription)
                answer = traffic.unsubscribe(parts, connection, request)
            case messages.Peek():
                peeked, pieces = browsing.peek(parts, request, now_ms)
                parts.answer(connection, request_id, peeked, pieces, about=request.queue_id)
                return
            case messages.Redrive():
                answer = browsing.redrive(parts, request, now_ms)
            case messages.Purge():
                answer = administration.purge(parts, request, now_ms)
            case messages.Hello():
                answer = self._hello(connection, request, now_ms)
            case messages.Ping():
                answer = messages.Done()
            case messages.ReadLog():
                self._log_reads.read(connection, request_id, request, now_ms)
                return
            case messages.FindOffset():
                answer = find_offset(parts, request)
            case (
                messages.CommitOffset()
                | messages.JoinGroup()
                | messages.LeaveGroup()
                | messages.ListGroups()
                | messages.SeekGroup()
                | messages.DeleteGroup()
            ):
                answer = log_membership.answer_group(parts, request, now_ms)
            case messages.ClaimIds() | messages.FindIds():
                answer = answer_ids(parts, request, now_ms)
            case messages.LocateLog():
                answer = messages.LogAddress()  # here
            case messages.ReadClock():
                self._clock_handler.ask(connection, request_id)
                return
            case messages.TakeIds():
                answer = self._clock_handler.take_ids(request.count)
            case messages.CreateQueue():
                answer = administration.create_queue(parts, request, now_ms)
            case messages.AlterQueue():
                answer = administration.alter_queue(parts, request, now_ms)
            case messages.DeleteQueue():
                answer = administration.delete_queue(parts, request, now_ms)
            case messages.ListQueues():
                answer = administration.list_queues(parts, request)
                about = [queue.queue_id for queue in answer.queues]
            case messages.DescribeQueue():
                answer = administration.describe_queue(
                    parts, parts.catalogue.find(request.name, request.queue_id)
                )
                about = answer.queue_id
            case messages.DescribeNode():
                clients, owners = len(self._connections), request.owners
                answer = describe_node(parts, self._environment, self._started_ms, clients, owners)
            case _ as unreachable:
                assert_never(unreachable)
        parts.answer(connection, request_id, answer, about=about)

    def _hello(self, connection: int, request: messages.Hello, now_ms: int) -> messages.Welcome:
        if messages.PROTOCOL_VERSION not in request.versions:
            raise PenstockError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the client uses protocol versions {request.versions}, this server uses {messages.PROTOCOL_VERSION}",
            )
        self._connections[connection] = True
        self._parts.clients[connection] = request.client
        server = f"penstock {self._environment.version}"
        return messages.Welcome(messages.PROTOCOL_VERSION, server, self._node, now_ms)


def answer_ids(parts: NodeParts, request: ClaimIds | FindIds, now_ms: int) -> ClaimedIds | FoundIds:
    """Claims ids here, at their home, or looks for them among what was sent here."""
    partition = parts.catalogue.usable(request.queue_id)
    match request:
        case ClaimIds():
            claims = parts.carry_out(
                partition,
                id_claims.claim(partition, request.ids, request.owners, request.instead_of, now_ms),
            )
            return ClaimedIds(claims.owners, claims.versions)
        case FindIds():
            found = id_claims.find(partition, request.ids, request.versions, now_ms, lift=request.lift)
            return FoundIds(parts.carry_out(partition, found))


def queue_of(request: messages.Request | None) -> int:
    """The queue that a request names; 0: none."""
    partition_id = getattr(request, "queue_id", 0)
    return partition_id if isinstance(partition_id, int) else 0
