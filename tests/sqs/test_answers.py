"""Answers to the byte: JSON, XML, and the XML's structure as JSON."""

from xml.etree import ElementTree as ET

import msgspec
import pytest

from penstock.sqs.actions import ACTIONS
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.protocols.http import HttpResponse
from penstock.sqs.protocols.protocol import Protocol, answer, refusal
from penstock.sqs.protocols.xml_answers import escape
from penstock.sqs.refusals import queue_does_not_exist, unknown_operation
from penstock.sqs.shapes.batches import (
    BatchResultErrorEntry,
    DeleteMessageBatchResult,
    DeleteMessageBatchResultEntry,
    SendMessageBatchResult,
    SendMessageBatchResultEntry,
)
from penstock.sqs.shapes.kinds import Result
from penstock.sqs.shapes.messages import (
    Message,
    MessageAttributeValue,
    ReceiveMessageResult,
    SendMessageResult,
)
from penstock.sqs.shapes.moves import ListMessageMoveTasksResult, ListMessageMoveTasksResultEntry
from penstock.sqs.shapes.queues import (
    GetQueueAttributesResult,
    ListDeadLetterSourceQueuesResult,
    ListQueuesResult,
    ListQueueTagsResult,
)

PROLOGUE = '<?xml version="1.0"?>'
NAMESPACE = 'xmlns="http://queue.amazonaws.com/doc/2012-11-05/"'
METADATA = "<ResponseMetadata><RequestId>rid</RequestId></ResponseMetadata>"

MESSAGE = Message(
    message_id="m",
    receipt_handle="r",
    md5_of_body="5",
    body='a\r\n<&>"',
    attributes={"SentTimestamp": "1"},
    md5_of_message_attributes="6",
    message_attributes={
        "s": MessageAttributeValue(data_type="String", string_value="v"),
        "b": MessageAttributeValue(data_type="Binary", binary_value=b"abc"),
    },
)


def respond(action: str, result: Result | None, protocol: Protocol = Protocol.QUERY) -> HttpResponse:
    return answer(protocol, ACTIONS[action], result, "rid")


def xml(action: str, result: Result | None) -> str:
    body = respond(action, result).body.decode()
    start = f"{PROLOGUE}<{action}Response {NAMESPACE}>"
    end = f"{METADATA}</{action}Response>"
    assert body.startswith(start)
    assert body.endswith(end)
    return body[len(start) : -len(end)]


# --- XML ----------------------------------------------------------------------------------------------------


def test_actions_without_output_have_only_metadata() -> None:
    for action in ACTIONS.values():
        if action.result is None:
            assert xml(action.name, None) == ""


def test_results_without_content_are_still_there() -> None:
    assert xml("ReceiveMessage", ReceiveMessageResult()) == "<ReceiveMessageResult/>"
    assert xml("ListQueues", ListQueuesResult()) == "<ListQueuesResult/>"


@pytest.mark.parametrize(
    ("action", "result", "content"),
    [
        (
            "ListQueues",
            ListQueuesResult(queue_urls=["u1", "u2"], next_token="t"),
            "<QueueUrl>u1</QueueUrl><QueueUrl>u2</QueueUrl><NextToken>t</NextToken>",
        ),
        (
            "ListDeadLetterSourceQueues",
            ListDeadLetterSourceQueuesResult(queue_urls=["u"]),
            "<QueueUrl>u</QueueUrl>",
        ),
        (
            "GetQueueAttributes",
            GetQueueAttributesResult(attributes={"QueueArn": "a", "DelaySeconds": "0"}),
            (
                "<Attribute><Name>QueueArn</Name><Value>a</Value></Attribute>"
                "<Attribute><Name>DelaySeconds</Name><Value>0</Value></Attribute>"
            ),
        ),
        (
            "ListQueueTags",
            ListQueueTagsResult(tags={"k": ""}),
            "<Tag><Key>k</Key><Value></Value></Tag>",
        ),
        (
            "SendMessage",
            SendMessageResult(
                md5_of_message_body="1",
                md5_of_message_attributes="2",
                md5_of_message_system_attributes="3",
                message_id="m",
                sequence_number="18849496460467696128",
            ),
            (
                "<MD5OfMessageBody>1</MD5OfMessageBody><MD5OfMessageAttributes>2</MD5OfMessageAttributes>"
                "<MD5OfMessageSystemAttributes>3</MD5OfMessageSystemAttributes><MessageId>m</MessageId>"
                "<SequenceNumber>18849496460467696128</SequenceNumber>"
            ),
        ),
        (
            "ReceiveMessage",
            ReceiveMessageResult(messages=[MESSAGE]),
            (
                "<Message><MessageId>m</MessageId><ReceiptHandle>r</ReceiptHandle><MD5OfBody>5</MD5OfBody>"
                '<Body>a&#xD;\n&lt;&amp;&gt;"</Body>'
                "<Attribute><Name>SentTimestamp</Name><Value>1</Value></Attribute>"
                "<MD5OfMessageAttributes>6</MD5OfMessageAttributes>"
                "<MessageAttribute><Name>s</Name><Value><StringValue>v</StringValue><DataType>String</DataType>"
                "</Value></MessageAttribute><MessageAttribute><Name>b</Name><Value><BinaryValue>YWJj</BinaryValue>"
                "<DataType>Binary</DataType></Value></MessageAttribute></Message>"
            ),
        ),
        (
            "SendMessageBatch",
            SendMessageBatchResult(
                successful=[SendMessageBatchResultEntry(id="a", message_id="m", md5_of_message_body="1")],
                failed=[BatchResultErrorEntry(id="b", sender_fault=True, code="C", message="M")],
            ),
            (
                "<SendMessageBatchResultEntry><Id>a</Id><MessageId>m</MessageId>"
                "<MD5OfMessageBody>1</MD5OfMessageBody></SendMessageBatchResultEntry>"
                "<BatchResultErrorEntry><Id>b</Id><SenderFault>true</SenderFault><Code>C</Code>"
                "<Message>M</Message></BatchResultErrorEntry>"
            ),
        ),
        (
            "DeleteMessageBatch",
            DeleteMessageBatchResult(successful=[DeleteMessageBatchResultEntry(id="a")]),
            "<DeleteMessageBatchResultEntry><Id>a</Id></DeleteMessageBatchResultEntry>",
        ),
        (
            "ListMessageMoveTasks",
            ListMessageMoveTasksResult(
                results=[
                    ListMessageMoveTasksResultEntry(
                        status="COMPLETED",
                        source_arn="s",
                        approximate_number_of_messages_moved=2,
                        started_timestamp=1700000000000,
                    )
                ]
            ),
            (
                "<ListMessageMoveTasksResultEntry><Status>COMPLETED</Status><SourceArn>s</SourceArn>"
                "<ApproximateNumberOfMessagesMoved>2</ApproximateNumberOfMessagesMoved>"
                "<StartedTimestamp>1700000000000</StartedTimestamp></ListMessageMoveTasksResultEntry>"
            ),
        ),
    ],
)
def test_elements_of_a_result(action: str, result: Result, content: str) -> None:
    assert xml(action, result) == f"<{action}Result>{content}</{action}Result>"


def test_an_xml_error() -> None:
    response = refusal(Protocol.QUERY, queue_does_not_exist(), "rid")
    assert response.status == 400
    assert dict(response.headers) == {"Content-Type": "text/xml", "x-amzn-RequestId": "rid"}
    assert response.body.decode() == (
        f"{PROLOGUE}<ErrorResponse {NAMESPACE}><Error><Type>Sender</Type>"
        "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"
        "<Message>The specified queue does not exist for this wsdl version.</Message><Detail/></Error>"
        "<RequestId>rid</RequestId></ErrorResponse>"
    )


def test_what_xml_cannot_carry_is_replaced_so_that_it_stays_xml() -> None:
    nasty = "".join(map(chr, range(0xD800))) + "".join(map(chr, range(0xE000, 0x10010)))
    element = ET.fromstring(f"<a>{escape(nasty)}</a>")
    assert element.text is not None
    assert len(element.text) == len(nasty)
    assert element.text.count("\ufffd") == 29 + 2 + 1
    response = refusal(Protocol.QUERY, unknown_operation("\x00<\ufffe"), "rid")
    ET.fromstring(response.body)


# --- JSON ---------------------------------------------------------------------------------------------------


def test_empty_members_are_left_out_of_json() -> None:
    assert respond("ReceiveMessage", ReceiveMessageResult(), Protocol.JSON).body == b"{}"
    assert respond("GetQueueAttributes", GetQueueAttributesResult(), Protocol.JSON).body == b"{}"
    assert respond("DeleteMessageBatch", DeleteMessageBatchResult(), Protocol.JSON).body == b"{}"
    assert (
        respond(
            "ListDeadLetterSourceQueues", ListDeadLetterSourceQueuesResult(queue_urls=[]), Protocol.JSON
        ).body
        == b'{"queueUrls":[]}'
    )
    assert respond("DeleteQueue", None, Protocol.JSON).body == b""


def test_a_json_answer() -> None:
    response = respond(
        "SendMessage", SendMessageResult(md5_of_message_body="1", message_id="m"), Protocol.JSON
    )
    assert response.status == 200
    assert dict(response.headers) == {
        "Content-Type": "application/x-amz-json-1.0",
        "x-amzn-RequestId": "rid",
    }
    assert msgspec.json.decode(response.body) == {"MD5OfMessageBody": "1", "MessageId": "m"}


def test_json_types() -> None:
    entry = ListMessageMoveTasksResultEntry(
        status="RUNNING",
        source_arn="s",
        task_handle="t",
        approximate_number_of_messages_moved=0,
        started_timestamp=1700000000000,
    )
    body = respond("ListMessageMoveTasks", ListMessageMoveTasksResult(results=[entry]), Protocol.JSON).body
    assert msgspec.json.decode(body)["Results"][0]["StartedTimestamp"] == 1700000000000
    body = respond("ReceiveMessage", ReceiveMessageResult(messages=[MESSAGE]), Protocol.JSON).body
    message = msgspec.json.decode(body)["Messages"][0]
    assert message["MessageAttributes"]["b"] == {"BinaryValue": "YWJj", "DataType": "Binary"}
    assert message["Body"] == MESSAGE.body


def test_a_json_error() -> None:
    response = refusal(Protocol.JSON, queue_does_not_exist(), "rid")
    assert response.status == 400
    assert dict(response.headers) == {
        "Content-Type": "application/x-amz-json-1.0",
        "x-amzn-RequestId": "rid",
        "x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender",
    }
    assert msgspec.json.decode(response.body) == {
        "__type": "com.amazonaws.sqs#QueueDoesNotExist",
        "message": "The specified queue does not exist.",
    }
    response = refusal(Protocol.JSON, SqsError(ErrorKind.INTERNAL_FAILURE, "x"), "rid")
    assert ("x-amzn-query-error", "InternalError;Receiver") in response.headers


# --- the XML's structure as JSON ----------------------------------------------------------------------------


def query_json(action: str, result: Result | None) -> object:
    response = respond(action, result, Protocol.QUERY_JSON)
    assert ("Content-Type", "application/json") in response.headers
    return msgspec.json.decode(response.body)


def test_query_answers_as_json() -> None:
    metadata = {"ResponseMetadata": {"RequestId": "rid"}}
    assert query_json("PurgeQueue", None) == {"PurgeQueueResponse": metadata}
    assert query_json("ListQueues", ListQueuesResult(queue_urls=["u"])) == {
        "ListQueuesResponse": {"ListQueuesResult": {"queueUrls": ["u"], "NextToken": None}, **metadata}
    }
    assert query_json("GetQueueAttributes", GetQueueAttributesResult(attributes={"QueueArn": "a"})) == {
        "GetQueueAttributesResponse": {
            "GetQueueAttributesResult": {"Attributes": [{"Name": "QueueArn", "Value": "a"}]},
            **metadata,
        }
    }
    assert query_json("SendMessage", SendMessageResult(md5_of_message_body="1", message_id="m")) == {
        "SendMessageResponse": {
            "SendMessageResult": {
                "MD5OfMessageBody": "1",
                "MD5OfMessageAttributes": None,
                "MD5OfMessageSystemAttributes": None,
                "MessageId": "m",
                "SequenceNumber": None,
            },
            **metadata,
        }
    }
    assert query_json("ReceiveMessage", ReceiveMessageResult()) == {
        "ReceiveMessageResponse": {"ReceiveMessageResult": {"messages": None}, **metadata}
    }


def test_query_receive_as_json() -> None:
    body = respond("ReceiveMessage", ReceiveMessageResult(messages=[MESSAGE]), Protocol.QUERY_JSON).body
    (message,) = msgspec.json.decode(body)["ReceiveMessageResponse"]["ReceiveMessageResult"]["messages"]
    assert message["Body"] == MESSAGE.body
    assert message["Attributes"] == [{"Name": "SentTimestamp", "Value": "1"}]


def test_query_errors_as_json() -> None:
    response = refusal(Protocol.QUERY_JSON, unknown_operation("ListQueues"), "rid")
    assert response.status == 400
    error = msgspec.json.decode(response.body)["Error"]
    assert error["Code"] == "InvalidAction"
    assert error["Message"] == "The action ListQueues is not valid for this endpoint."
