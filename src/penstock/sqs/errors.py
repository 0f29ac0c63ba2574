"""One table of every error that the SQS API can answer, in both protocols.

A row has the name of the error in JSON and in Query answers, its HTTP status and whether the sender or the server is at
fault. The literal sentences are in `refusals`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple

Fault = Literal["Sender", "Receiver"]

MODELLED = "com.amazonaws.sqs#"
"""The namespace of the errors in the service's model."""
GENERIC = "com.amazon.coral.service#"
"""Namespace of those that every service of AWS can answer."""


class ErrorKind(StrEnum):
    """The closed set; each value is the shape's name in JSON answers."""

    QUEUE_DOES_NOT_EXIST = "QueueDoesNotExist"
    QUEUE_NAME_EXISTS = "QueueNameExists"
    QUEUE_DELETED_RECENTLY = "QueueDeletedRecently"
    PURGE_QUEUE_IN_PROGRESS = "PurgeQueueInProgress"
    INVALID_ATTRIBUTE_NAME = "InvalidAttributeName"
    INVALID_ATTRIBUTE_VALUE = "InvalidAttributeValue"
    INVALID_MESSAGE_CONTENTS = "InvalidMessageContents"
    RECEIPT_HANDLE_IS_INVALID = "ReceiptHandleIsInvalid"
    INVALID_ID_FORMAT = "InvalidIdFormat"
    MESSAGE_NOT_IN_FLIGHT = "MessageNotInflight"
    OVER_LIMIT = "OverLimit"
    EMPTY_BATCH_REQUEST = "EmptyBatchRequest"
    TOO_MANY_ENTRIES_IN_BATCH_REQUEST = "TooManyEntriesInBatchRequest"
    BATCH_ENTRY_IDS_NOT_DISTINCT = "BatchEntryIdsNotDistinct"
    BATCH_REQUEST_TOO_LONG = "BatchRequestTooLong"
    INVALID_BATCH_ENTRY_ID = "InvalidBatchEntryId"
    UNSUPPORTED_OPERATION = "UnsupportedOperation"
    RESOURCE_NOT_FOUND = "ResourceNotFoundException"
    REQUEST_THROTTLED = "RequestThrottled"
    INVALID_ADDRESS = "InvalidAddress"
    INVALID_SECURITY = "InvalidSecurity"
    KMS_DISABLED = "KmsDisabled"
    KMS_INVALID_STATE = "KmsInvalidState"
    KMS_NOT_FOUND = "KmsNotFound"
    KMS_THROTTLED = "KmsThrottled"
    KMS_ACCESS_DENIED = "KmsAccessDenied"
    KMS_INVALID_KEY_USAGE = "KmsInvalidKeyUsage"
    KMS_OPT_IN_REQUIRED = "KmsOptInRequired"
    INVALID_PARAMETER_VALUE = "InvalidParameterValueException"
    MISSING_PARAMETER = "MissingRequiredParameterException"
    UNKNOWN_OPERATION = "UnknownOperationException"
    SERIALIZATION = "SerializationException"
    REQUEST_TOO_LARGE = "RequestEntityTooLargeException"
    ACCESS_DENIED = "AccessDeniedException"
    INVALID_CLIENT_TOKEN_ID = "UnrecognizedClientException"
    SIGNATURE_DOES_NOT_MATCH = "InvalidSignatureException"
    INCOMPLETE_SIGNATURE = "IncompleteSignatureException"
    MISSING_AUTHENTICATION_TOKEN = "MissingAuthenticationTokenException"
    REQUEST_EXPIRED = "RequestExpired"
    INTERNAL_FAILURE = "InternalFailure"
    SERVICE_UNAVAILABLE = "ServiceUnavailable"


class ErrorRow(NamedTuple):
    """How one error looks on the wire."""

    query_code: str
    status: int = 400
    fault: Fault = "Sender"
    namespace: str = MODELLED


_LEGACY = "AWS.SimpleQueueService."

ERRORS: dict[ErrorKind, ErrorRow] = {
    ErrorKind.QUEUE_DOES_NOT_EXIST: ErrorRow(_LEGACY + "NonExistentQueue"),
    ErrorKind.QUEUE_NAME_EXISTS: ErrorRow("QueueAlreadyExists"),
    ErrorKind.QUEUE_DELETED_RECENTLY: ErrorRow(_LEGACY + "QueueDeletedRecently"),
    ErrorKind.PURGE_QUEUE_IN_PROGRESS: ErrorRow(_LEGACY + "PurgeQueueInProgress", 403),
    ErrorKind.INVALID_ATTRIBUTE_NAME: ErrorRow("InvalidAttributeName"),
    ErrorKind.INVALID_ATTRIBUTE_VALUE: ErrorRow("InvalidAttributeValue"),
    ErrorKind.INVALID_MESSAGE_CONTENTS: ErrorRow("InvalidMessageContents"),
    # 404 in the current model; the emulators still say 400.
    ErrorKind.RECEIPT_HANDLE_IS_INVALID: ErrorRow("ReceiptHandleIsInvalid", 404),
    ErrorKind.INVALID_ID_FORMAT: ErrorRow("InvalidIdFormat"),
    ErrorKind.MESSAGE_NOT_IN_FLIGHT: ErrorRow(_LEGACY + "MessageNotInflight"),
    ErrorKind.OVER_LIMIT: ErrorRow("OverLimit", 403),
    ErrorKind.EMPTY_BATCH_REQUEST: ErrorRow(_LEGACY + "EmptyBatchRequest"),
    ErrorKind.TOO_MANY_ENTRIES_IN_BATCH_REQUEST: ErrorRow(_LEGACY + "TooManyEntriesInBatchRequest"),
    ErrorKind.BATCH_ENTRY_IDS_NOT_DISTINCT: ErrorRow(_LEGACY + "BatchEntryIdsNotDistinct"),
    ErrorKind.BATCH_REQUEST_TOO_LONG: ErrorRow(_LEGACY + "BatchRequestTooLong"),
    ErrorKind.INVALID_BATCH_ENTRY_ID: ErrorRow(_LEGACY + "InvalidBatchEntryId"),
    ErrorKind.UNSUPPORTED_OPERATION: ErrorRow(_LEGACY + "UnsupportedOperation"),
    ErrorKind.RESOURCE_NOT_FOUND: ErrorRow("ResourceNotFoundException", 404),
    ErrorKind.REQUEST_THROTTLED: ErrorRow("RequestThrottled", 403),
    ErrorKind.INVALID_ADDRESS: ErrorRow("InvalidAddress", 404),
    ErrorKind.INVALID_SECURITY: ErrorRow("InvalidSecurity", 403),
    ErrorKind.KMS_DISABLED: ErrorRow("KMS.DisabledException"),
    ErrorKind.KMS_INVALID_STATE: ErrorRow("KMS.InvalidStateException"),
    ErrorKind.KMS_NOT_FOUND: ErrorRow("KMS.NotFoundException"),
    ErrorKind.KMS_THROTTLED: ErrorRow("KMS.ThrottlingException"),
    ErrorKind.KMS_ACCESS_DENIED: ErrorRow("KMS.AccessDeniedException"),
    ErrorKind.KMS_INVALID_KEY_USAGE: ErrorRow("KMS.InvalidKeyUsageException"),
    ErrorKind.KMS_OPT_IN_REQUIRED: ErrorRow("KMS.OptInRequired", 403),
    ErrorKind.INVALID_PARAMETER_VALUE: ErrorRow("InvalidParameterValue", namespace=GENERIC),
    ErrorKind.MISSING_PARAMETER: ErrorRow("MissingParameter", namespace=GENERIC),
    ErrorKind.UNKNOWN_OPERATION: ErrorRow("InvalidAction", namespace=GENERIC),
    ErrorKind.SERIALIZATION: ErrorRow("MalformedInput", namespace=GENERIC),
    ErrorKind.REQUEST_TOO_LARGE: ErrorRow("RequestEntityTooLarge", 413, namespace=GENERIC),
    ErrorKind.ACCESS_DENIED: ErrorRow("AccessDenied", 403, namespace=GENERIC),
    ErrorKind.INVALID_CLIENT_TOKEN_ID: ErrorRow("InvalidClientTokenId", 403, namespace=GENERIC),
    ErrorKind.SIGNATURE_DOES_NOT_MATCH: ErrorRow("SignatureDoesNotMatch", 403, namespace=GENERIC),
    ErrorKind.INCOMPLETE_SIGNATURE: ErrorRow("IncompleteSignature", namespace=GENERIC),
    ErrorKind.MISSING_AUTHENTICATION_TOKEN: ErrorRow("MissingAuthenticationToken", 403, namespace=GENERIC),
    ErrorKind.REQUEST_EXPIRED: ErrorRow("RequestExpired", namespace=GENERIC),
    ErrorKind.INTERNAL_FAILURE: ErrorRow("InternalError", 500, "Receiver", GENERIC),
    ErrorKind.SERVICE_UNAVAILABLE: ErrorRow("ServiceUnavailable", 503, "Receiver", GENERIC),
}


class SqsError(Exception):
    """Any error for a caller of the SQS API; `kind` is a row of the table above."""

    def __init__(self, kind: ErrorKind, message: str, query_message: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        # One sentence differs between the protocols; everything else is the same text twice.
        self.query_message = message if query_message is None else query_message

    @property
    def query_code(self) -> str:
        """The name in Query answers, in `x-amzn-query-error` and in batch failures."""
        return ERRORS[self.kind].query_code

    @property
    def json_type(self) -> str:
        """The name in JSON answers, with its namespace."""
        return ERRORS[self.kind].namespace + self.kind.value

    @property
    def status(self) -> int:
        """The HTTP status."""
        return ERRORS[self.kind].status

    @property
    def fault(self) -> Fault:
        """Whether the caller or the service is to blame."""
        return ERRORS[self.kind].fault

    @property
    def sender_fault(self) -> bool:
        """The same as a batch entry says it."""
        return ERRORS[self.kind].fault == "Sender"

    def __str__(self) -> str:
        return f"{self.message} [{self.query_code}]"
