"""What etcd's errors mean for a request: whether another member may be asked, and what may have happened."""

from __future__ import annotations

from penstock.metadata.store.etcd_messages import Problem

INVALID_ARGUMENT = 3
NOT_FOUND = 5
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
UNAUTHENTICATED = 16

_FINAL = {
    INVALID_ARGUMENT,
    NOT_FOUND,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    FAILED_PRECONDITION,
    OUT_OF_RANGE,
    UNIMPLEMENTED,
}


class EtcdError(Exception):
    """A failure between this process and one member of etcd."""


class NotDoneError(EtcdError):
    """Certainly nothing was done: the request may be sent to another member."""


class DistrustError(NotDoneError):
    """The member's certificate is not trusted, or it does not use TLS."""


class PerhapsDoneError(EtcdError):
    """The outcome is unknown: only a request that may be carried out twice may be repeated."""


class TokenRefusedError(EtcdError):
    """The client must authenticate again; nothing was done."""


class RefusedError(EtcdError):
    """Every member would give the same answer, so no other is asked."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class LeaseGoneError(RefusedError):
    """There is no such lease."""


class CompactedError(RefusedError):
    """The revision is no longer kept."""


class TooMuchAtOnceError(RefusedError):
    """The answer would be larger than the gateway of an older etcd can return."""


_NOT_DONE = ("no leader", "too many requests", "not capable")

_ADVICE = {
    "user name is empty": "this etcd asks for a user and a password: write them into its URL",
    "permission denied": "the user of etcd needs a role that may read and write the keys of the namespace",
    "database space exceeded": "etcd's database is full: compact and defragment it or raise its quota, then disarm the alarm",
    "request is too large": "the value is larger than this etcd takes: see its --max-request-bytes",
}


def meaning(status: int, problem: Problem | None) -> EtcdError:
    """The error in an answer."""
    if problem is None or not (problem.message or problem.error):
        if status == 404:
            return RefusedError(
                "it has no JSON gateway: etcd 3.4 or newer is needed, and --enable-grpc-gateway left on",
                NOT_FOUND,
            )
        return PerhapsDoneError(f"it answered with HTTP status {status}")
    text = problem.message or str(problem.error)
    if "lease not found" in text:
        return LeaseGoneError(text, problem.code)
    if "compacted" in text:
        return CompactedError(text, problem.code)
    if "larger than max" in text:
        return TooMuchAtOnceError(text, problem.code)
    if any(one in text for one in _NOT_DONE):
        return NotDoneError(text)
    if "invalid auth token" in text or "auth store is old" in text or "revision in header is old" in text:
        return TokenRefusedError(text)
    if problem.code in _FINAL:
        advice = next((f"; {said}" for words, said in _ADVICE.items() if words in text), "")
        return RefusedError(text + advice, problem.code)
    return PerhapsDoneError(text)
