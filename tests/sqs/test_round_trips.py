"""What botocore sends is what we read, and what we answer is what botocore reads: every action, both protocols."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sqs.actions import ACTIONS
from penstock.sqs.call import read_call
from penstock.sqs.errors import ERRORS, ErrorKind, SqsError
from penstock.sqs.protocols.protocol import Protocol, answer, protocol_of, refusal
from penstock.sqs.refusals import queue_does_not_exist
from tests.sqs.reference import JSON_MODEL, parsed, serialized
from tests.sqs.samples import parameters, results, without_empties

PROTOCOLS = {"json": Protocol.JSON, "query": Protocol.QUERY}
REQUEST_ID = "5b1c0c2e-7a6f-5f6e-8b1e-0d6d1a1f1b1c"


def builtins(shape: msgspec.Struct) -> Any:
    return msgspec.to_builtins(shape, builtin_types=(bytes,))


def test_there_are_23_actions_with_the_members_of_the_model() -> None:
    assert set(ACTIONS) == set(JSON_MODEL.operation_names)
    assert len(ACTIONS) == 23
    for action in ACTIONS.values():
        model = JSON_MODEL.operation_model(action.name)
        members = {field.encode_name for field in msgspec.structs.fields(action.request)}
        assert members == set(model.input_shape.members)
        if model.output_shape is None:
            assert action.result is None
        else:
            assert action.result is not None
            members = {field.encode_name for field in msgspec.structs.fields(action.result)}
            assert members == set(model.output_shape.members)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("action", ACTIONS)
@settings(max_examples=12)
@given(st.data())
def test_parameters_arrive_as_botocore_sends_them(protocol: str, action: str, data: st.DataObject) -> None:
    sent = data.draw(parameters(action))
    request = serialized(protocol, action, sent)
    assert protocol_of(request) is PROTOCOLS[protocol]
    call = read_call(request, PROTOCOLS[protocol])
    assert call.action.name == action
    assert without_empties(builtins(call.parameters)) == without_empties(sent)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("action", ACTIONS)
@settings(max_examples=12)
@given(st.data())
def test_results_arrive_at_botocore_as_they_were(protocol: str, action: str, data: st.DataObject) -> None:
    row, strategy = ACTIONS[action], results(action)
    expected = None if strategy is None else data.draw(strategy)
    result = None if row.result is None else msgspec.convert(expected, row.result)
    response = answer(PROTOCOLS[protocol], row, result, REQUEST_ID)
    seen = parsed(protocol, action, response)
    metadata = seen.pop("ResponseMetadata")
    assert response.status == 200
    assert metadata["RequestId"] == REQUEST_ID
    assert without_empties(seen) == without_empties(expected or {})


@pytest.mark.parametrize("kind", ErrorKind)
def test_errors_arrive_at_botocore_with_code_message_and_fault(kind: ErrorKind) -> None:
    error = SqsError(kind, "A <sentence> & more.\r")
    in_json = parsed("json", "SendMessage", refusal(Protocol.JSON, error, REQUEST_ID))
    in_query = parsed("query", "SendMessage", refusal(Protocol.QUERY, error, REQUEST_ID))
    row = ERRORS[kind]
    assert in_json["Error"]["Code"] == in_query["Error"]["Code"] == row.query_code
    assert in_json["Error"]["Message"] == in_query["Error"]["Message"] == error.message
    assert in_json["Error"]["Type"] == in_query["Error"]["Type"] == row.fault
    assert in_json["Error"]["QueryErrorCode"] == kind.value
    assert "QueryErrorCode" not in in_query["Error"]
    assert in_query["Error"]["Detail"] is None
    assert "Detail" not in in_json["Error"]
    for seen in (in_json, in_query):
        assert seen["ResponseMetadata"]["HTTPStatusCode"] == row.status
        assert seen["ResponseMetadata"]["RequestId"] == REQUEST_ID


def test_one_sentence_differs_between_the_protocols() -> None:
    error = queue_does_not_exist()
    in_json = parsed("json", "DeleteQueue", refusal(Protocol.JSON, error, REQUEST_ID))
    in_query = parsed("query", "DeleteQueue", refusal(Protocol.QUERY, error, REQUEST_ID))
    assert in_json["Error"]["Message"] == "The specified queue does not exist."
    assert in_query["Error"]["Message"] == "The specified queue does not exist for this wsdl version."
