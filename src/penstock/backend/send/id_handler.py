"""Requests of front ends about deduplication ids of a queue with several partitions."""

from __future__ import annotations

from penstock.backend.node.parts import NodeParts
from penstock.queue.state import id_claims
from penstock.wire.deduplication_messages import ClaimedIds, ClaimIds, FindIds, FoundIds


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
