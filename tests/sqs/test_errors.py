"""The table of errors is the service's, row by row, and every refusal of the engine has a place in it."""

import pytest

from penstock.model.errors import ERRORS as MODEL_ERRORS
from penstock.model.errors import ErrorCode, PenstockError
from penstock.sqs import refusals
from penstock.sqs.errors import ERRORS, ErrorKind, SqsError
from penstock.sqs.model_errors import KIND_OF, sqs_error_of

TABLE = """
QueueDoesNotExist                   AWS.SimpleQueueService.NonExistentQueue              400
QueueNameExists                     QueueAlreadyExists                                   400
QueueDeletedRecently                AWS.SimpleQueueService.QueueDeletedRecently          400
PurgeQueueInProgress                AWS.SimpleQueueService.PurgeQueueInProgress          403
InvalidAttributeName                InvalidAttributeName                                 400
InvalidAttributeValue               InvalidAttributeValue                                400
InvalidMessageContents              InvalidMessageContents                               400
ReceiptHandleIsInvalid              ReceiptHandleIsInvalid                               404
InvalidIdFormat                     InvalidIdFormat                                      400
MessageNotInflight                  AWS.SimpleQueueService.MessageNotInflight            400
OverLimit                           OverLimit                                            403
EmptyBatchRequest                   AWS.SimpleQueueService.EmptyBatchRequest             400
TooManyEntriesInBatchRequest        AWS.SimpleQueueService.TooManyEntriesInBatchRequest  400
BatchEntryIdsNotDistinct            AWS.SimpleQueueService.BatchEntryIdsNotDistinct      400
BatchRequestTooLong                 AWS.SimpleQueueService.BatchRequestTooLong           400
InvalidBatchEntryId                 AWS.SimpleQueueService.InvalidBatchEntryId           400
UnsupportedOperation                AWS.SimpleQueueService.UnsupportedOperation          400
ResourceNotFoundException           ResourceNotFoundException                            404
RequestThrottled                    RequestThrottled                                     403
InvalidAddress                      InvalidAddress                                       404
InvalidSecurity                     InvalidSecurity                                      403
KmsDisabled                         KMS.DisabledException                                400
KmsInvalidState                     KMS.InvalidStateException                            400
KmsNotFound                         KMS.NotFoundException                                400
KmsThrottled                        KMS.ThrottlingException                              400
KmsAccessDenied                     KMS.AccessDeniedException                            400
KmsInvalidKeyUsage                  KMS.InvalidKeyUsageException                         400
KmsOptInRequired                    KMS.OptInRequired                                    403
InvalidParameterValueException      InvalidParameterValue                                400
MissingRequiredParameterException   MissingParameter                                     400
UnknownOperationException           InvalidAction                                        400
SerializationException              MalformedInput                                       400
AccessDeniedException               AccessDenied                                         403
UnrecognizedClientException         InvalidClientTokenId                                 403
InvalidSignatureException           SignatureDoesNotMatch                                403
MissingAuthenticationTokenException MissingAuthenticationToken                           403
InternalFailure                     InternalError                                        500
ServiceUnavailable                  ServiceUnavailable                                   503
"""
OURS = {
    ErrorKind.REQUEST_TOO_LARGE: ("RequestEntityTooLarge", 413),
    ErrorKind.INCOMPLETE_SIGNATURE: ("IncompleteSignature", 400),
    ErrorKind.REQUEST_EXPIRED: ("RequestExpired", 400),
}
"""Errors every service of AWS has, beside the table."""


def test_every_row_is_as_documented() -> None:
    rows = [line.split() for line in TABLE.split("\n") if line]
    expected = {ErrorKind(shape): (code, int(status)) for shape, code, status in rows} | OURS
    assert {kind: (row.query_code, row.status) for kind, row in ERRORS.items()} == expected


def test_only_server_errors_are_the_receivers_fault() -> None:
    for kind in ErrorKind:
        error = SqsError(kind, "")
        assert (error.fault == "Receiver") is (error.status >= 500)
        assert error.sender_fault is (error.fault == "Sender")


def test_generic_errors_have_the_generic_namespace() -> None:
    assert SqsError(ErrorKind.QUEUE_DOES_NOT_EXIST, "").json_type == "com.amazonaws.sqs#QueueDoesNotExist"
    assert (
        SqsError(ErrorKind.MISSING_PARAMETER, "").json_type
        == "com.amazon.coral.service#MissingRequiredParameterException"
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (refusals.missing_parameter("MessageBody"), "The request must contain the parameter MessageBody."),
        (refusals.unknown_operation("FooBar"), "The action FooBar is not valid for this endpoint."),
        (refusals.unknown_attribute("X"), "Unknown Attribute X."),
        (refusals.unknown_attribute(""), "Unknown Attribute ."),
        (refusals.invalid_attribute_value("X"), "Invalid value for the parameter X."),
        (
            refusals.queue_name_exists("DelaySeconds"),
            "A queue already exists with the same name and a different value for attribute DelaySeconds",
        ),
        (
            refusals.queue_deleted_recently(),
            "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
        ),
        (
            refusals.purge_in_progress("orders"),
            "Only one PurgeQueue operation on orders is allowed every 60 seconds.",
        ),
        (
            refusals.bad_receipt_handle("garbage"),
            'The input receipt handle "garbage" is not a valid receipt handle.',
        ),
        (
            refusals.expired_receipt_handle("h"),
            "Value h for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.",
        ),
        (
            refusals.message_not_available("h"),
            (
                "Value h for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not "
                "available for visibility timeout change."
            ),
        ),
        (
            refusals.attempt_not_retryable("a"),
            (
                "Value a for parameter ReceiveRequestAttemptId is invalid. Reason: The receiveRequestAttemptId is "
                "not valid anymore since the receive call is not retryable."
            ),
        ),
        (
            refusals.source_is_no_dead_letter_queue(),
            "Source queue must be configured as a Dead Letter Queue.",
        ),
        (
            refusals.resource_not_found("SourceArn"),
            "The resource that you specified for the SourceArn parameter doesn't exist.",
        ),
        (
            refusals.task_already_running(),
            (
                "There is already a task running. Only one active task is allowed for a source queue arn at a "
                "given time."
            ),
        ),
        (refusals.bad_task_handle(), "Value for parameter TaskHandle is invalid."),
        (refusals.task_does_not_exist(), "Task does not exist."),
    ],
)
def test_sentences_are_literal(error: SqsError, message: str) -> None:
    assert error.message == message


def test_an_answer_never_repeats_a_large_value() -> None:
    assert len(refusals.invalid_value("x" * 10**6, "P", "R.").message) < 3000


@pytest.mark.parametrize("code", ErrorCode)
def test_every_refusal_of_the_engine_has_a_name_in_sqs(code: ErrorCode) -> None:
    error = sqs_error_of(PenstockError(code, "the engine's own words"))
    assert error.kind is KIND_OF[code]
    if error.status >= 500:
        assert "engine" not in error.message
    # Whoever may try again is told so in a way that SDKs understand.
    if MODEL_ERRORS[code].retryable and code is not ErrorCode.QUEUE_FULL:
        assert error.status >= 500 or error.kind is ErrorKind.REQUEST_THROTTLED
