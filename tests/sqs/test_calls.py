"""Which protocol a request speaks, which action and queue it means, and what is refused before any action."""

import msgspec
import pytest

from penstock.sqs.errors import ErrorKind
from penstock.sqs.names import QueueAddress
from penstock.sqs.protocols.http import HttpRequest, request_of
from penstock.sqs.protocols.protocol import Protocol, protocol_of, refusal
from penstock.sqs.shapes.batches import SendMessageBatchRequest
from penstock.sqs.shapes.messages import ReceiveMessageRequest, SendMessageRequest
from penstock.sqs.shapes.queues import CreateQueueRequest, GetQueueAttributesRequest
from tests.sqs.requests import HOST, QUEUE_URL, form_request, get_request, json_request, read, refused

ORDERS = QueueAddress("000000000000", "orders")


@pytest.mark.parametrize(
    ("request_", "protocol"),
    [
        (json_request("ListQueues", b"{}"), Protocol.JSON),
        (HttpRequest("POST", "/", "", {"x-amz-target": "AmazonSQS.ListQueues"}), Protocol.JSON),
        (
            HttpRequest("POST", "/", "", {"content-type": "application/x-amz-json-1.0; charset=utf-8"}),
            Protocol.JSON,
        ),
        (form_request(Action="ListQueues"), Protocol.QUERY),
        (HttpRequest("POST", "/", "Action=ListQueues", {}), Protocol.QUERY),
        (HttpRequest("POST", "/", "", {}, b"Version=2012-11-05&Action=ListQueues"), Protocol.QUERY),
        (get_request(Action="ListQueues"), Protocol.QUERY),
        (get_request(Action="ListQueues", accept="application/json"), Protocol.QUERY_JSON),
        (get_request(Action="ListQueues", accept="text/html, application/json"), Protocol.QUERY),
        (get_request("/000000000000/orders"), Protocol.NONE),
        (get_request("/000000000000/orders", accept="application/json"), Protocol.NONE),
        (HttpRequest("POST", "/", "", {}), Protocol.NONE),
        (HttpRequest("PUT", "/", "Action=ListQueues", {}), Protocol.NONE),
        (HttpRequest("GET", "/", "Reaction=ListQueues", {}), Protocol.NONE),
    ],
)
def test_the_protocol_of_a_request(request_: HttpRequest, protocol: Protocol) -> None:
    assert protocol_of(request_) is protocol


def test_a_get_without_an_action_is_answered_in_xml_with_404() -> None:
    request = get_request("/000000000000/orders", accept="application/json")
    response = refusal(protocol_of(request), refused(request), "id")
    assert response.status == 404
    assert b"<UnknownOperationException" in response.body
    assert ("Content-Type", "text/xml") in response.headers


def test_requests_as_a_parser_hands_them_over() -> None:
    pairs = [(b"Host", b"a"), (b"X-One", b"1"), (b"x-one", b"2")]
    request = request_of("GET", "/a/b?Action=X&y", pairs)
    assert (request.path, request.query) == ("/a/b", "Action=X&y")
    assert request.headers == {"host": "a", "x-one": "1,2"}
    assert request_of("GET", "http://h:1/p?q", []).path == "/p"
    assert request_of("GET", "http://h:1", []).path == "/"
    assert request_of("GET", "/http://h/p", []).path == "/http://h/p"


# --- addresses ----------------------------------------------------------------------------------------------


def test_the_queue_comes_from_the_parameter_the_path_or_the_host_in_this_order() -> None:
    path = "/000000000000/other"
    assert read(form_request(path, Action="PurgeQueue", QueueUrl=QUEUE_URL)).queue == ORDERS
    assert read(form_request(path, Action="PurgeQueue")).queue == QueueAddress("000000000000", "other")
    assert read(json_request("PurgeQueue", b"{}", path)).queue == QueueAddress("000000000000", "other")
    assert (
        read(json_request("PurgeQueue", b"{}", host="orders.000000000000.sqs.localhost:9324")).queue == ORDERS
    )
    assert read(json_request("PurgeQueue", b'{"QueueUrl": "orders"}')).queue == QueueAddress(None, "orders")


def test_an_action_on_a_queue_needs_one() -> None:
    error = refused(json_request("PurgeQueue", b"{}"))
    assert (error.kind, error.message) == (
        ErrorKind.MISSING_PARAMETER,
        "The request must contain the parameter QueueUrl.",
    )
    assert refused(json_request("PurgeQueue", b"{}", "/nonsense/")).kind is ErrorKind.INVALID_ADDRESS
    assert (
        refused(json_request("PurgeQueue", b'{"QueueUrl": "no/such/queue"}')).kind
        is ErrorKind.QUEUE_DOES_NOT_EXIST
    )


@pytest.mark.parametrize("action", ["CreateQueue", "ListQueues"])
def test_actions_on_no_queue_are_refused_on_a_queue_path(action: str) -> None:
    error = refused(get_request("/000000000000/orders", Action=action, QueueName="x"))
    assert error.query_code == "InvalidAction"
    assert error.message == f"The action {action} is not valid for this endpoint."
    call = read(get_request("/000000000000/orders", Action="GetQueueUrl", QueueName="x"))
    assert call.queue is None


# --- actions and what they miss -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["AmazonSQS.FooBar", "FooBar", "ListQueues", "AmazonSQS.", "SQS.ListQueues"]
)
def test_an_unknown_target(target: str) -> None:
    error = refused(HttpRequest("POST", "/", "", {"x-amz-target": target}, b"{}"))
    assert (error.kind, error.status) == (ErrorKind.UNKNOWN_OPERATION, 400)


def test_an_unknown_action() -> None:
    error = refused(form_request(Action="FooBar"))
    assert (error.query_code, error.status) == ("InvalidAction", 400)
    assert error.message == "The action FooBar is not valid for this endpoint."


MISSING = {
    "CreateQueue": "QueueName",
    "GetQueueUrl": "QueueName",
    "SendMessage": "MessageBody",
    "DeleteMessage": "ReceiptHandle",
    "ChangeMessageVisibility": "ReceiptHandle",
    "SetQueueAttributes": "Attribute.Name",
    "TagQueue": "Tags",
    "AddPermission": "Label",
    "RemovePermission": "Label",
    "StartMessageMoveTask": "SourceArn",
    "ListMessageMoveTasks": "SourceArn",
    "CancelMessageMoveTask": "TaskHandle",
}


@pytest.mark.parametrize(("action", "parameter"), MISSING.items())
def test_what_must_be_given(action: str, parameter: str) -> None:
    body = f'{{"QueueUrl": "{QUEUE_URL}", "QueueName": "", "MessageBody": null, "ReceiptHandle": ""}}'
    for request in (json_request(action, body.encode()), form_request(Action=action, QueueUrl=QUEUE_URL)):
        error = refused(request)
        assert error.kind is ErrorKind.MISSING_PARAMETER
        assert error.message == f"The request must contain the parameter {parameter}."


def test_a_visibility_timeout_of_zero_is_given() -> None:
    body = f'{{"QueueUrl": "{QUEUE_URL}", "ReceiptHandle": "r", "VisibilityTimeout": 0}}'
    read(json_request("ChangeMessageVisibility", body.encode()))
    body = f'{{"QueueUrl": "{QUEUE_URL}", "ReceiptHandle": "r"}}'
    error = refused(json_request("ChangeMessageVisibility", body.encode()))
    assert error.message == "The request must contain the parameter VisibilityTimeout."


# --- JSON ---------------------------------------------------------------------------------------------------


def test_null_means_absent_wherever_it_stands() -> None:
    body = b"""{"QueueUrl": "orders", "MessageBody": "b", "DelaySeconds": null, "MessageGroupId": null,
        "MessageAttributes": {"a": null, "b": {"DataType": "String", "StringValue": "v", "BinaryValue": null,
        "StringListValues": null}}, "MessageSystemAttributes": null, "Unknown": {"x": [null]}}"""
    parameters = read(json_request("SendMessage", body)).parameters
    assert isinstance(parameters, SendMessageRequest)
    assert parameters.delay_seconds is None
    assert list(parameters.message_attributes) == ["b"]


def test_an_empty_body_is_an_empty_object() -> None:
    assert read(json_request("ListQueues", b"")).action.name == "ListQueues"


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b'{"QueueUrl": 5}',
        b'{"QueueUrl": "orders", "MessageBody": ["b"]}',
        b'{"QueueUrl": "orders", "MessageBody": "b", "DelaySeconds": "5"}',
        b'{"QueueUrl": "orders", "MessageBody": "b", "DelaySeconds": 1.5}',
        b'{"QueueUrl": "orders", "MessageBody": "b", "DelaySeconds": true}',
        b'{"QueueUrl": "orders", "MessageBody": "b", "DelaySeconds": 2147483648}',
        b'{"QueueUrl": "orders", "MessageBody": "b", "DelaySeconds": 1e400, "x": null}',
        b'{"QueueUrl": "orders", "MessageBody": "b", "MessageAttributes": []}',
        b'{"QueueUrl": "orders", "MessageBody": "b", "MessageAttributes": {"a": {"BinaryValue": "!"}}}',
        b'{"QueueUrl": "orders", "MessageBody": "\\ud800 "}',
        b'{"x": ' + b"[" * 100_000,
        b'{"MessageBody": null, "MessageAttributes": ' + b'{"a":' * 60 + b"null" + b"}" * 60 + b"}",
        b'{"MessageBody": null, "x": ' + b"[" * 100_000,
    ],
)
def test_malformed_json_is_a_serialization_exception(body: bytes) -> None:
    error = refused(json_request("SendMessage", body))
    assert (error.kind, error.status) == (ErrorKind.SERIALIZATION, 400)


def test_a_request_over_the_size_limit_is_not_parsed() -> None:
    assert refused(json_request("SendMessage", b" " * (4 * 2**20 + 1))).status == 413
    huge = HttpRequest("POST", "/", "Action=ListQueues", {}, b"a" * (4 * 2**20))
    assert refused(huge).status == 413


# --- Query --------------------------------------------------------------------------------------------------


def test_indexes_may_have_gaps_and_decide_the_order() -> None:
    call = read(
        form_request(
            Action="GetQueueAttributes",
            QueueUrl=QUEUE_URL,
            AttributeName__10="c",
            AttributeName__2="b",
            AttributeName__1="a",
            AttributeName__x="ignored",
        )
    )
    assert isinstance(call.parameters, GetQueueAttributesRequest)
    assert call.parameters.attribute_names == ["a", "b", "c"]


def test_old_and_new_names_of_system_attributes() -> None:
    call = read(
        form_request(
            Action="ReceiveMessage",
            QueueUrl=QUEUE_URL,
            AttributeName__1="SentTimestamp",
            MessageSystemAttributeName__1="SenderId",
            MessageAttributeName__1="All",
        )
    )
    assert isinstance(call.parameters, ReceiveMessageRequest)
    assert call.parameters.attribute_names == ["SentTimestamp"]
    assert call.parameters.message_system_attribute_names == ["SenderId"]
    assert call.parameters.message_attribute_names == ["All"]


def test_a_bare_name_is_an_empty_list() -> None:
    call = read(form_request(Action="SendMessageBatch", QueueUrl=QUEUE_URL, Entries=""))
    assert isinstance(call.parameters, SendMessageBatchRequest)
    assert call.parameters.entries == []
    call = read(form_request(Action="GetQueueAttributes", QueueUrl=QUEUE_URL, AttributeNames=""))
    assert isinstance(call.parameters, GetQueueAttributesRequest)
    assert call.parameters.attribute_names == []


def test_get_and_post_read_the_same() -> None:
    wanted = {
        "Action": "CreateQueue",
        "QueueName": "orders",
        "Attribute__1__Name": "DelaySeconds",
        "Attribute__1__Value": "5",
        "Tag__1__Key": "k ä",
        "Tag__1__Value": "v+&=",
        "Version": "2012-11-05",
    }
    by_get, by_post = read(get_request(**wanted)), read(form_request(**wanted))
    assert by_get.parameters == by_post.parameters
    assert by_post.parameters == CreateQueueRequest(
        queue_name="orders", attributes={"DelaySeconds": "5"}, tags={"k ä": "v+&="}
    )


@pytest.mark.parametrize(
    "body",
    [
        b"Action=SendMessage&QueueUrl=orders&MessageBody=%ff",
        b"Action=SendMessage&QueueUrl=orders&MessageBody=\xff",
        b"Action=SendMessage&QueueUrl=orders&MessageBody=b&DelaySeconds=x",
        b"Action=SendMessage&QueueUrl=orders&MessageBody=b&DelaySeconds=1.5",
        b"Action=SendMessage&QueueUrl=orders&MessageBody=b&DelaySeconds=99999999999",
        b"Action=SendMessage&QueueUrl=orders&MessageBody=b&DelaySeconds=%D9%A1",
        (
            b"Action=SendMessage&QueueUrl=orders&MessageBody=b&MessageAttribute.1.Name=a"
            b"&MessageAttribute.1.Value.BinaryValue=!"
        ),
        b"Action=GetQueueAttributes&QueueUrl=orders&AttributeName.1000000=All",
        b"Action=ListQueues" + b"&a=b" * 2000,
    ],
)
def test_malformed_forms(body: bytes) -> None:
    error = refused(HttpRequest("POST", "/", "", {"host": HOST}, body))
    assert (error.query_code, error.status) == ("MalformedInput", 400)


def test_names_that_nobody_knows_are_ignored() -> None:
    request = HttpRequest(
        "POST", "/", "", {}, b"Action=ListQueues&&=x&a.b.c.d.e.f.g.h.i.j=1&.=2&Attribute..=3"
    )
    assert read(request).action.name == "ListQueues"


def test_more_objects_than_any_request_needs_are_not_made() -> None:
    body = b'{"QueueUrl":"orders","Entries":[' + b",".join([b"{ }"] * 100_000) + b"]}"
    assert refused(json_request("SendMessageBatch", body)).kind is ErrorKind.SERIALIZATION
    assert "more than 2000 objects" in refused(json_request("SendMessageBatch", body)).message


@pytest.mark.parametrize("text", ['[{"a":{}}]' * 2_500, "{" * 5_000, '\\"{' * 5_000, "{}\\" * 5_000])
def test_braces_in_a_text_are_no_objects(text: str) -> None:
    body = msgspec.json.encode({"QueueUrl": "orders", "MessageBody": text})
    call = read(json_request("SendMessage", body))
    assert isinstance(call.parameters, SendMessageRequest)
    assert call.parameters.message_body == text
