"""The literal sentences of the SQS API: one function for each error, which returns the exception to raise.

Sentences are the service's own, including odd grammar, because programs compare them. Text of the caller is echoed up to a
limit, so that an answer is never as large as the request.
"""

from __future__ import annotations

from penstock.sqs.errors import ErrorKind, SqsError

ECHO_CHARACTERS = 2048


def _echo(value: object) -> str:
    text = str(value)
    return text if len(text) <= ECHO_CHARACTERS else text[:ECHO_CHARACTERS] + "..."


# --- requests -----------------------------------------------------------------------------------------------


def unknown_operation(action: str) -> SqsError:
    """An action that does not exist, or not at this address."""
    return SqsError(
        ErrorKind.UNKNOWN_OPERATION, f"The action {_echo(action)} is not valid for this endpoint."
    )


def malformed(reason: str) -> SqsError:
    """A request whose form is wrong: not JSON, a wrong type, a broken form."""
    return SqsError(ErrorKind.SERIALIZATION, _echo(reason))


def request_too_large(limit_bytes: int) -> SqsError:
    """A request over the size that is read at all."""
    return SqsError(ErrorKind.REQUEST_TOO_LARGE, f"The request is larger than {limit_bytes} bytes.")


def missing_parameter(name: str) -> SqsError:
    """A required parameter is absent or empty."""
    return SqsError(ErrorKind.MISSING_PARAMETER, f"The request must contain the parameter {name}.")


def invalid_parameter(message: str) -> SqsError:
    """InvalidParameterValue with a special sentence."""
    return SqsError(ErrorKind.INVALID_PARAMETER_VALUE, message)


def invalid_value(value: object, parameter: str, reason: str) -> SqsError:
    """InvalidParameterValue in its usual form."""
    return invalid_parameter(f"Value {_echo(value)} for parameter {parameter} is invalid. Reason: {reason}")


# --- queues -------------------------------------------------------------------------------------------------


def queue_does_not_exist() -> SqsError:
    """The only sentence that differs between the protocols."""
    return SqsError(
        ErrorKind.QUEUE_DOES_NOT_EXIST,
        "The specified queue does not exist.",
        "The specified queue does not exist for this wsdl version.",
    )


def queue_name_exists(attribute: str) -> SqsError:
    """CreateQueue named an existing queue and another value of an attribute."""
    return SqsError(
        ErrorKind.QUEUE_NAME_EXISTS,
        f"A queue already exists with the same name and a different value for attribute {attribute}",
    )


def queue_deleted_recently() -> SqsError:
    """CreateQueue came too soon after DeleteQueue."""
    return SqsError(
        ErrorKind.QUEUE_DELETED_RECENTLY,
        "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
    )


def purge_in_progress(name: str) -> SqsError:
    """A second PurgeQueue within a minute."""
    return SqsError(
        ErrorKind.PURGE_QUEUE_IN_PROGRESS,
        f"Only one PurgeQueue operation on {name} is allowed every 60 seconds.",
    )


def bad_queue_name() -> SqsError:
    """A name outside the rules."""
    return invalid_parameter(
        "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
    )


def unknown_attribute(name: str) -> SqsError:
    """An attribute that does not exist, or not on this kind of queue."""
    return SqsError(ErrorKind.INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {_echo(name)}.")


def invalid_attribute_name(message: str) -> SqsError:
    """InvalidAttributeName with a special sentence."""
    return SqsError(ErrorKind.INVALID_ATTRIBUTE_NAME, message)


def only_with_fifo(name: str) -> SqsError:
    """An attribute that needs a FIFO queue."""
    return invalid_attribute_name(f"You can specify the {name} only when FifoQueue is set to true.")


def one_encryption_only() -> SqsError:
    """Both kinds of server-side encryption in one request."""
    return invalid_attribute_name(
        "You can use one type of server-side encryption (SSE) at one time. "
        "You can either enable KMS SSE or SQS SSE."
    )


def invalid_attribute_value(name: str, reason: str = "") -> SqsError:
    """A value outside the range of its attribute."""
    message = f"Invalid value for the parameter {name}."
    return SqsError(ErrorKind.INVALID_ATTRIBUTE_VALUE, f"{message} Reason: {reason}" if reason else message)


def over_limit(message: str) -> SqsError:
    """A limit of the service is reached."""
    return SqsError(ErrorKind.OVER_LIMIT, message)


# --- messages -----------------------------------------------------------------------------------------------


def invalid_characters() -> SqsError:
    """A body with characters that XML cannot carry."""
    return SqsError(ErrorKind.INVALID_MESSAGE_CONTENTS, INVALID_CHARACTERS)


INVALID_CHARACTERS = (
    "Invalid characters found. Valid unicode characters are "
    "#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
)
WRONG_QUEUE_TYPE = "The request include parameter that is not valid for this queue type"
NO_DEDUPLICATION_ID = (
    "The queue should either have ContentBasedDeduplication enabled or "
    "MessageDeduplicationId provided explicitly"
)


def message_too_long(limit_bytes: int) -> SqsError:
    """A message over the queue's limit."""
    return invalid_parameter(
        f"One or more parameters are invalid. Reason: Message must be shorter than {limit_bytes} bytes."
    )


def entry_too_long(limit_bytes: int) -> SqsError:
    """The same inside a batch, where the service words it differently."""
    return invalid_parameter(
        "One or more parameters cannot be validated. "
        f"Reason: Message must be shorter than {limit_bytes} bytes."
    )


def wrong_for_queue_type(value: object, parameter: str) -> SqsError:
    """A parameter that this kind of queue does not take."""
    return invalid_value(value, parameter, WRONG_QUEUE_TYPE + ".")


def no_deduplication_id() -> SqsError:
    """A FIFO send with neither an id nor content-based deduplication."""
    return invalid_parameter(NO_DEDUPLICATION_ID)


def bad_receipt_handle(handle: str) -> SqsError:
    """A receipt handle that was never given out."""
    return SqsError(
        ErrorKind.RECEIPT_HANDLE_IS_INVALID,
        f'The input receipt handle "{_echo(handle)}" is not a valid receipt handle.',
    )


def expired_receipt_handle(handle: str) -> SqsError:
    """A receipt handle whose lease has ended, on a FIFO queue."""
    return invalid_value(handle, "ReceiptHandle", "The receipt handle has expired.")


def message_not_available(handle: str) -> SqsError:
    """ChangeMessageVisibility of a message that is gone."""
    return invalid_value(
        handle,
        "ReceiptHandle",
        "Message does not exist or is not available for visibility timeout change.",
    )


def attempt_not_retryable(attempt_id: str) -> SqsError:
    """A ReceiveRequestAttemptId whose messages have moved on."""
    return invalid_value(
        attempt_id,
        "ReceiveRequestAttemptId",
        "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable.",
    )


# --- move tasks ---------------------------------------------------------------------------------------------


def source_is_no_dead_letter_queue() -> SqsError:
    """StartMessageMoveTask from a queue that no other queue names."""
    return invalid_parameter("Source queue must be configured as a Dead Letter Queue.")


def resource_not_found(parameter: str) -> SqsError:
    """A queue named by ARN that does not exist."""
    return SqsError(
        ErrorKind.RESOURCE_NOT_FOUND,
        f"The resource that you specified for the {parameter} parameter doesn't exist.",
    )


def task_already_running() -> SqsError:
    """A second task for one source."""
    return invalid_parameter(
        "There is already a task running. "
        "Only one active task is allowed for a source queue arn at a given time."
    )


def bad_task_handle() -> SqsError:
    """A task handle that was never given out."""
    return invalid_parameter("Value for parameter TaskHandle is invalid.")


def task_does_not_exist() -> SqsError:
    """A task handle of no known task."""
    return SqsError(ErrorKind.RESOURCE_NOT_FOUND, "Task does not exist.")


# --- the service itself -------------------------------------------------------------------------------------


def access_denied(resource: str) -> SqsError:
    """No policy allows it, or one forbids it; the sentence never says which."""
    return SqsError(ErrorKind.ACCESS_DENIED, f"Access to the resource {_echo(resource)} is denied.")


def request_throttled() -> SqsError:
    """Too many requests; SDKs back off and send it again."""
    return SqsError(ErrorKind.REQUEST_THROTTLED, "Rate exceeded. Slow down and try again.")


def unsupported_operation(message: str) -> SqsError:
    """Something this queue cannot do."""
    return SqsError(ErrorKind.UNSUPPORTED_OPERATION, message)


def internal_failure() -> SqsError:
    """A defect of ours; the log says more, the caller never."""
    return SqsError(
        ErrorKind.INTERNAL_FAILURE,
        "We encountered an internal error. Please try again.",
    )


def service_unavailable(
    message: str = "The service is temporarily unavailable. Please try again.",
) -> SqsError:
    """Stopping, full or overloaded; SDKs send it again."""
    return SqsError(ErrorKind.SERVICE_UNAVAILABLE, message)
