"""The engine's errors as errors of the SQS API.

The table is the default; a step that knows more (which receipt, which parameter) raises a sentence from `refusals`
instead. Texts of retryable failures come from the engine, texts of defects never do.
"""

from __future__ import annotations

from penstock.model.errors import ErrorCode, PenstockError
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.refusals import internal_failure, queue_does_not_exist, service_unavailable

KIND_OF: dict[ErrorCode, ErrorKind] = {
    ErrorCode.BAD_REQUEST: ErrorKind.INVALID_PARAMETER_VALUE,
    ErrorCode.BAD_FRAME: ErrorKind.INTERNAL_FAILURE,
    ErrorCode.UNSUPPORTED_VERSION: ErrorKind.SERVICE_UNAVAILABLE,  # another front end may be newer
    ErrorCode.UNKNOWN_REQUEST: ErrorKind.INTERNAL_FAILURE,
    ErrorCode.UNAUTHENTICATED: ErrorKind.SERVICE_UNAVAILABLE,  # the back end does not take this front end's word
    ErrorCode.ACCESS_DENIED: ErrorKind.ACCESS_DENIED,
    ErrorCode.QUEUE_NOT_FOUND: ErrorKind.QUEUE_DOES_NOT_EXIST,
    ErrorCode.QUEUE_EXISTS: ErrorKind.QUEUE_NAME_EXISTS,
    ErrorCode.QUEUE_DAMAGED: ErrorKind.SERVICE_UNAVAILABLE,
    ErrorCode.QUEUE_FULL: ErrorKind.OVER_LIMIT,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorKind.INVALID_PARAMETER_VALUE,
    ErrorCode.BAD_RECEIPT: ErrorKind.RECEIPT_HANDLE_IS_INVALID,
    ErrorCode.STALE_RECEIPT: ErrorKind.INVALID_PARAMETER_VALUE,
    ErrorCode.ATTEMPT_CHANGED: ErrorKind.INVALID_PARAMETER_VALUE,
    ErrorCode.NO_DEAD_LETTER_QUEUE: ErrorKind.INVALID_PARAMETER_VALUE,
    ErrorCode.UNSUPPORTED: ErrorKind.UNSUPPORTED_OPERATION,
    ErrorCode.CLOCK_UNCERTAIN: ErrorKind.REQUEST_THROTTLED,
    ErrorCode.STAMP_IN_FUTURE: ErrorKind.INVALID_PARAMETER_VALUE,
    ErrorCode.OFFSET_GONE: ErrorKind.INVALID_PARAMETER_VALUE,
    ErrorCode.NOT_A_MEMBER: ErrorKind.INVALID_PARAMETER_VALUE,
    ErrorCode.NOT_PRIMARY: ErrorKind.SERVICE_UNAVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorKind.SERVICE_UNAVAILABLE,
    ErrorCode.METADATA_UNAVAILABLE: ErrorKind.SERVICE_UNAVAILABLE,
    ErrorCode.OUT_OF_ORDER: ErrorKind.SERVICE_UNAVAILABLE,
    ErrorCode.TOO_MANY_WAITING: ErrorKind.REQUEST_THROTTLED,
    ErrorCode.LIMIT_REACHED: ErrorKind.OVER_LIMIT,
    ErrorCode.DISK_FULL: ErrorKind.SERVICE_UNAVAILABLE,
    ErrorCode.OVERLOADED: ErrorKind.REQUEST_THROTTLED,
    ErrorCode.THROTTLED: ErrorKind.REQUEST_THROTTLED,
    ErrorCode.SHUTTING_DOWN: ErrorKind.SERVICE_UNAVAILABLE,
    ErrorCode.INTERNAL: ErrorKind.INTERNAL_FAILURE,
    ErrorCode.UNREACHABLE: ErrorKind.SERVICE_UNAVAILABLE,
    ErrorCode.NO_REPLY: ErrorKind.INTERNAL_FAILURE,  # the client makes these two, no front end sees them
    ErrorCode.REQUEST_FAILED: ErrorKind.INTERNAL_FAILURE,
}


def sqs_error_of(error: PenstockError) -> SqsError:
    """The same refusal in the words of the SQS API."""
    kind = KIND_OF[error.code]
    match kind:
        case ErrorKind.QUEUE_DOES_NOT_EXIST:
            return queue_does_not_exist()
        case ErrorKind.INTERNAL_FAILURE:
            return internal_failure()
        case ErrorKind.SERVICE_UNAVAILABLE:
            return service_unavailable()
        case _:
            return SqsError(kind, error.message)
