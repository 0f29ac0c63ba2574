"""Whatever arrives, the answer is a refusal with a 4xx or a call that makes sense: never another exception."""

import json
import random
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sqs.actions import ACTIONS
from penstock.sqs.attributes.changes import changed_attributes, created_attributes
from penstock.sqs.attributes.queue_attributes import QueueAttributes
from penstock.sqs.attributes.redrive import parse_redrive_allow_policy, parse_redrive_policy
from penstock.sqs.attributes.tags import merged_tags
from penstock.sqs.call import Call, read_call
from penstock.sqs.compatibility import EXTENDED, STRICT
from penstock.sqs.errors import SqsError
from penstock.sqs.messages.batches import check_entries, check_send_batch
from penstock.sqs.messages.outgoing import QueueTraits, check_message
from penstock.sqs.messages.stored_attributes import decode_attributes, encode_attributes
from penstock.sqs.paging import decode_token
from penstock.sqs.policies.policy import parse_identity_policy, parse_queue_policy
from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.protocols.protocol import Protocol, protocol_of, refusal
from penstock.sqs.shapes.batches import (
    ChangeMessageVisibilityBatchRequest,
    DeleteMessageBatchRequest,
    SendMessageBatchRequest,
)
from penstock.sqs.shapes.messages import SendMessageRequest
from penstock.sqs.shapes.queues import (
    CreateQueueRequest,
    ListQueuesRequest,
    SetQueueAttributesRequest,
    TagQueueRequest,
)
from penstock.sqs.signing.authorization import read_authorization
from penstock.sqs.signing.signature import verify_signature
from penstock.sqs.signing.signing_keys import SigningKeys
from penstock.sqs.task_handle import decode_task_handle
from tests.sqs.reference import serialized, signed
from tests.sqs.requests import FORM, HOST, get_request

ROUNDS = 15_000
TRAITS = (QueueTraits(False, False, 1024), QueueTraits(True, False, 1024), QueueTraits(True, True, 1_048_576))

SEEDS: list[tuple[str, dict[str, Any]]] = [
    (
        "SendMessage",
        {
            "QueueUrl": f"http://{HOST}/000000000000/orders",
            "MessageBody": "body é\r",
            "DelaySeconds": 5,
            "MessageAttributes": {
                "a": {"DataType": "String", "StringValue": "v"},
                "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
                "n": {"DataType": "Number.int", "StringValue": "12"},
            },
            "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}},
            "MessageGroupId": "g",
        },
    ),
    (
        "SendMessageBatch",
        {
            "QueueUrl": "orders",
            "Entries": [{"Id": f"e{n}", "MessageBody": "b", "MessageGroupId": "g"} for n in range(4)],
        },
    ),
    ("DeleteMessageBatch", {"QueueUrl": "orders", "Entries": [{"Id": "a", "ReceiptHandle": "r"}]}),
    (
        "CreateQueue",
        {
            "QueueName": "a.fifo",
            "Attributes": {"FifoQueue": "true", "DelaySeconds": "5", "RedrivePolicy": "{}"},
            "tags": {"k": "v"},
        },
    ),
    ("ReceiveMessage", {"QueueUrl": "orders", "AttributeNames": ["All"], "MaxNumberOfMessages": 10}),
    ("ListQueues", {"QueueNamePrefix": "a", "MaxResults": 5, "NextToken": "YQ=="}),
    ("AddPermission", {"QueueUrl": "orders", "Label": "l", "AWSAccountIds": ["1"], "Actions": ["*"]}),
]


def examine(request: HttpRequest) -> None:
    """Reads a request and goes on with what it asks for, as far as it can be decided here."""
    protocol = protocol_of(request)
    try:
        go_on(read_call(request, protocol))
    except SqsError as error:
        for one in Protocol:
            response = refusal(one, error, "id")
            assert 400 <= response.status < 500
            assert len(response.body) < 20_000


def go_on(call: Call) -> None:
    match call.parameters:
        case SendMessageRequest() as send:
            for traits in TRAITS:
                message = check_message(send, traits, EXTENDED)
                stored = encode_attributes(message.attributes, message.system)
                assert decode_attributes(stored) == (message.attributes, message.system)
        case SendMessageBatchRequest() as batch:
            for traits in TRAITS:
                check_send_batch(batch.entries, traits, EXTENDED)
        case DeleteMessageBatchRequest() | ChangeMessageVisibilityBatchRequest() as batch:
            check_entries(call.action.name, batch.entries)
        case CreateQueueRequest() as create:
            created_attributes(create.queue_name, create.attributes, STRICT)
        case SetQueueAttributesRequest() as change:
            changed_attributes(QueueAttributes(), change.attributes, EXTENDED)
        case TagQueueRequest() as tag:
            merged_tags({}, tag.tags, "q")
        case ListQueuesRequest(next_token=str() as token):
            decode_token(token)
        case _:
            pass


# --- mutations ----------------------------------------------------------------------------------------------

PIECES = [
    b"null",
    b"{}",
    b"[]",
    b'"',
    b"{",
    b"}",
    b"[" * 50,
    b":",
    b",",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\x00",
    b"&",
    b"=",
    b".",
    b".1.",
    b".99999999.",
    b"%",
    b"%00",
    b"%ff",
    b"+",
    b"-1",
    b"1e999",
    b"9" * 40,
    b"Attribute.1.Name",
    b"Value",
    b"Entries=",
]


def mutated(content: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.randint(1, 4)):
        at = dice.randint(0, len(content))
        match dice.randrange(5):
            case 0:
                content = content[:at] + dice.choice(PIECES) + content[at:]
            case 1:
                content = content[:at] + content[at + dice.randint(1, 8) :]
            case 2:
                content = content[:at] + bytes([dice.randrange(256)]) + content[at + 1 :]
            case 3:
                end = min(len(content), at + dice.randint(1, 40))
                content = content[:end] + content[at:end] + content[end:]
            case _:
                content = content[:at] + dice.choice(PIECES) + content[at + dice.randint(0, 12) :]
    return content


@pytest.mark.parametrize("protocol", ["json", "query"])
def test_mutated_requests(protocol: str) -> None:
    dice = random.Random(f"{protocol} requests")
    seeds = [serialized(protocol, action, parameters) for action, parameters in SEEDS]
    for _ in range(ROUNDS):
        seed = dice.choice(seeds)
        body = mutated(seed.body, dice)
        if protocol == "query" and dice.random() < 0.3:
            text = body.decode("latin-1")
            examine(HttpRequest("GET", dice.choice(["/", "/000000000000/orders"]), text, {"host": HOST}))
        else:
            examine(HttpRequest("POST", "/", "", seed.headers, body))


def authenticate(request: HttpRequest, keys: SigningKeys) -> None:
    authorization = read_authorization(request)
    verify_signature(request, authorization, "not the secret", authorization.signed_at_s, keys)


def test_mutated_signatures() -> None:
    dice = random.Random("signatures")
    keys = SigningKeys()
    seed = serialized("json", *SEEDS[0])
    in_header = signed(seed)
    in_url = signed(get_request(Action="ListQueues"), expires=60)
    for round_number in range(ROUNDS):
        if round_number % 2:
            headers = dict(in_header.headers)
            name = dice.choice(["authorization", "authorization", "x-amz-date", "host", "x-amz-target"])
            headers[name] = mutated(headers[name].encode(), dice).decode("latin-1")
            request = HttpRequest("POST", "/", "", headers, in_header.body)
        else:
            query = mutated(in_url.query.encode(), dice).decode("latin-1")
            request = HttpRequest("GET", "/", query, {"host": HOST})
        with pytest.raises(SqsError) as caught:
            authenticate(request, keys)
        assert 400 <= caught.value.status < 500


# --- anything at all ----------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text() | st.sampled_from(["QueueUrl", "Entries", "Attributes", "DataType"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
NAMES = st.lists(
    st.sampled_from(
        ["Attribute", "Entries", "Tag", "1", "2", "007", "Name", "Value", "", "é", "Action", "QueueUrl"]
    ),
    max_size=9,
).map(".".join)


@settings(max_examples=150)
@given(st.sampled_from(sorted(ACTIONS)), st.one_of(st.binary(), JSON.map(lambda value: _json(value))))
def test_any_json(action: str, body: bytes) -> None:
    examine(HttpRequest("POST", "/000000000000/orders", "", {"x-amz-target": f"AmazonSQS.{action}"}, body))


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


@settings(max_examples=150)
@given(st.sampled_from(sorted(ACTIONS)), st.lists(st.tuples(NAMES, st.text(st.characters(codec="ascii")))))
def test_any_form(action: str, pairs: list[tuple[str, str]]) -> None:
    body = "&".join([f"Action={action}", *(f"{name}={value}" for name, value in pairs)])
    examine(HttpRequest("POST", "/000000000000/orders", "", {"content-type": FORM}, body.encode()))
    examine(HttpRequest("GET", "/000000000000/orders", body, {"accept": "application/json"}))


@settings(max_examples=150)
@given(st.text(st.characters(codec="latin-1")), st.text(string.ascii_letters + "/.%?:@", max_size=40))
def test_any_header_and_any_path(value: str, path: str) -> None:
    for name in ("authorization", "x-amz-date", "x-amz-target", "host", "content-type", "accept"):
        request = HttpRequest(
            "POST", f"/{path}", "", {"x-amz-target": "AmazonSQS.PurgeQueue", name: value}, b"{}"
        )
        examine(request)
        with pytest.raises(SqsError):
            read_authorization(request)


@settings(max_examples=150)
@given(st.one_of(st.text(), JSON.map(lambda value: _json(value).decode())))
def test_any_document(text: str) -> None:
    for parse in (
        parse_queue_policy,
        parse_identity_policy,
        parse_redrive_policy,
        parse_redrive_allow_policy,
        decode_task_handle,
        decode_token,
    ):
        status = 400
        try:
            parse(text)
        except SqsError as error:
            status = error.status
        assert 400 <= status < 500


# --- the largest there can be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b'{"MessageBody": null, "AttributeNames": [' + b"null," * 800_000 + b"null]}",
        b'{"a":' * 800_000,
        b'{"MessageAttributes": {' + b",".join(b'"%d": {}' % n for n in range(300_000)) + b"}}",
        b'{"QueueUrl": "' + b"x" * 4_000_000 + b'"}',
    ],
    ids=["nulls", "deep", "attributes", "url"],
)
def test_large_json(body: bytes) -> None:
    examine(HttpRequest("POST", "/", "", {"x-amz-target": "AmazonSQS.SendMessage"}, body))


@pytest.mark.parametrize(
    "body",
    [
        b"Action=SendMessage&MessageBody=" + b"%41" * 1_300_000,
        b"Action=SendMessage" + b"&a=b" * 1_000_000,
        b"Action=GetQueueAttributes&" + b"&".join(b"AttributeName.%d=x" % n for n in range(1990)),
        b"Action=SendMessage&" + b"." * 4_000_000 + b"=x",
    ],
    ids=["escapes", "parameters", "list", "dots"],
)
def test_large_forms(body: bytes) -> None:
    examine(HttpRequest("POST", "/000000000000/orders", "", {"content-type": FORM}, body))
