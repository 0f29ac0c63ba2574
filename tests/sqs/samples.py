"""Random parameters and results of every action, drawn from botocore's model of the service."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.sqs.reference import JSON_MODEL

STATUSES = ("RUNNING", "COMPLETED", "CANCELLING", "CANCELLED", "FAILED")

# What XML can carry; carriage returns and characters that must be escaped come up often.
TEXT = st.text(
    st.one_of(
        st.sampled_from("<>&\"'\r\n\t %+=.;/\\é€😀"),
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cn", "Cs"]),
    ),
    max_size=12,
)
KEYS = TEXT.filter(bool)


def _values(shape: Any) -> st.SearchStrategy[Any]:
    match shape.type_name:
        case "structure":
            return structure(shape)
        case "list":
            return st.lists(_values(shape.member), max_size=3)
        case "map":
            return st.dictionaries(KEYS, _values(shape.value), max_size=3)
        case "blob":
            return st.binary(max_size=8)
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(-(2**31), 2**31 - 1)
        case "long":
            return st.integers(0, 2**53)
        case _:
            return TEXT


def structure(shape: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Parameters or results of a structure: what is required, and some of the rest."""
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for name, member in shape.members.items():
        values = st.sampled_from(STATUSES) if name == "Status" else _values(member)
        if name in shape.required_members or name in ALWAYS.get(shape.name, ()):
            is_empty_refused = member.type_name in ("string", "map") and shape.name.endswith("Request")
            required[name] = values.filter(bool) if is_empty_refused else values
        else:
            optional[name] = values
    return st.fixed_dictionaries(required, optional=optional)


ALWAYS: dict[str, tuple[str, ...]] = {
    "CreateQueueResult": ("QueueUrl",),
    "GetQueueUrlResult": ("QueueUrl",),
    "SendMessageResult": ("MD5OfMessageBody", "MessageId"),
    "Message": ("MessageId", "ReceiptHandle", "MD5OfBody", "Body"),
    "StartMessageMoveTaskResult": ("TaskHandle",),
    "CancelMessageMoveTaskResult": ("ApproximateNumberOfMessagesMoved",),
    "ListMessageMoveTasksResultEntry": (
        "Status",
        "SourceArn",
        "ApproximateNumberOfMessagesMoved",
        "StartedTimestamp",
    ),
}
"""Members the service always sends, though its model does not say so."""


@cache
def parameters(action: str) -> st.SearchStrategy[dict[str, Any]]:
    """Parameters of an action; its queue URL is one that can exist."""
    shape = JSON_MODEL.operation_model(action).input_shape
    drawn = structure(shape)
    if "QueueUrl" not in shape.members:
        return drawn
    return drawn.map(lambda values: {**values, "QueueUrl": "http://127.0.0.1:9324/000000000000/orders"})


@cache
def results(action: str) -> st.SearchStrategy[dict[str, Any]] | None:
    """Results of an action; None for actions without output."""
    shape = JSON_MODEL.operation_model(action).output_shape
    return None if shape is None else structure(shape)


def without_empties(value: Any) -> Any:
    """What both sides agree on: members that are empty are as good as absent."""
    if isinstance(value, dict):
        kept = {key: without_empties(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, "", b"", [], {})}
    if isinstance(value, list):
        return [without_empties(item) for item in value]
    return value
