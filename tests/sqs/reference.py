"""botocore as a second opinion: its serializers, response parsers and signer, in both protocols.

Its model of SQS is JSON only. The Query model is made from it with the names that the last Query model had.
"""

import copy
from typing import Any

import botocore.session
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.model import ServiceModel
from botocore.parsers import create_parser
from botocore.serialize import create_serializer

from penstock.sqs.protocols.http import HttpRequest, HttpResponse

ACCESS_KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
HOST = "127.0.0.1:9324"

_ELEMENT_NAMES = {
    "AttributeNameList": "AttributeName",
    "MessageSystemAttributeList": "MessageSystemAttributeName",
    "MessageAttributeNameList": "MessageAttributeName",
    "TagKeyList": "TagKey",
    "AWSAccountIdList": "AWSAccountId",
    "ActionNameList": "ActionName",
    "QueueUrlList": "QueueUrl",
    "MessageList": "Message",
    "StringList": "StringListValue",
    "BinaryList": "BinaryListValue",
    "SendMessageBatchRequestEntryList": "SendMessageBatchRequestEntry",
    "DeleteMessageBatchRequestEntryList": "DeleteMessageBatchRequestEntry",
    "ChangeMessageVisibilityBatchRequestEntryList": "ChangeMessageVisibilityBatchRequestEntry",
    "SendMessageBatchResultEntryList": "SendMessageBatchResultEntry",
    "DeleteMessageBatchResultEntryList": "DeleteMessageBatchResultEntry",
    "ChangeMessageVisibilityBatchResultEntryList": "ChangeMessageVisibilityBatchResultEntry",
    "BatchResultErrorEntryList": "BatchResultErrorEntry",
    "ListMessageMoveTasksResultEntryList": "ListMessageMoveTasksResultEntry",
}
_MAP_NAMES = {
    "QueueAttributeMap": ("Attribute", "Name", "Value"),
    "MessageSystemAttributeMap": ("Attribute", "Name", "Value"),
    "MessageBodyAttributeMap": ("MessageAttribute", "Name", "Value"),
    "MessageBodySystemAttributeMap": ("MessageSystemAttribute", "Name", "Value"),
    "TagMap": ("Tag", "Key", "Value"),
}

JSON_MODEL = botocore.session.get_session().get_service_model("sqs")


def _query_model() -> Any:
    document = copy.deepcopy(JSON_MODEL._service_description)
    metadata = document["metadata"]
    for name in ("awsQueryCompatible", "jsonVersion", "targetPrefix", "protocols"):
        metadata.pop(name, None)
    metadata["protocol"] = "query"
    metadata["xmlNamespace"] = "http://queue.amazonaws.com/doc/2012-11-05/"
    shapes = document["shapes"]
    for name, element in _ELEMENT_NAMES.items():
        shapes[name]["flattened"] = True
        shapes[name]["member"]["locationName"] = element
    for name, (_, key, value) in _MAP_NAMES.items():
        shapes[name]["flattened"] = True
        shapes[name]["key"]["locationName"] = key
        shapes[name]["value"]["locationName"] = value
    for shape in shapes.values():
        for member in shape.get("members", {}).values():
            if member["shape"] in _MAP_NAMES:
                member["locationName"] = _MAP_NAMES[member["shape"]][0]
    for name, operation in document["operations"].items():
        if "output" in operation:
            operation["output"]["resultWrapper"] = f"{name}Result"
    return ServiceModel(document, "sqs")


QUERY_MODEL = _query_model()
MODELS = {"json": JSON_MODEL, "query": QUERY_MODEL}


SERIALIZERS = {name: create_serializer(name, include_validation=False) for name in MODELS}
PARSERS = {name: create_parser(name) for name in MODELS}


def serialized(protocol: str, action: str, parameters: dict[str, Any]) -> HttpRequest:
    """The request botocore would send."""
    model = MODELS[protocol].operation_model(action)
    parts = SERIALIZERS[protocol].serialize_to_request(parameters, model)
    prepared = AWSRequest(
        parts["method"], f"http://{HOST}/", data=parts["body"], headers=parts["headers"]
    ).prepare()
    sent = prepared.body or b""
    headers = {
        name.lower(): value.decode() if isinstance(value, bytes) else value
        for name, value in prepared.headers.items()
    }
    headers["host"] = HOST
    return HttpRequest("POST", "/", "", headers, sent.encode() if isinstance(sent, str) else sent)


def parsed(protocol: str, action: str, response: HttpResponse) -> dict[str, Any]:
    """What a program on top of botocore would see of an answer."""
    shape = MODELS[protocol].operation_model(action).output_shape
    answer: dict[str, Any] = PARSERS[protocol].parse(
        {
            "status_code": response.status,
            "headers": {name.lower(): value for name, value in response.headers},
            "body": response.body,
        },
        shape,
    )
    return answer


def _credentials(secret: str, token: str | None) -> Any:
    return Credentials(ACCESS_KEY, secret, token)


def signed(
    request: HttpRequest,
    *,
    region: str = "us-east-1",
    service: str = "sqs",
    secret: str = SECRET,
    token: str | None = None,
    expires: int | None = None,
) -> HttpRequest:
    """The request as botocore signs it: in a header, or as a presigned URL when it expires."""
    url = f"http://{request.headers.get('host', HOST)}{request.path}"
    url += f"?{request.query}" if request.query else ""
    unsigned = {name: value for name, value in request.headers.items() if name != "host"}
    outgoing = AWSRequest(request.method, url, data=request.body, headers=unsigned)
    if expires is None:
        signer = SigV4Auth(_credentials(secret, token), service, region)
    else:
        signer = SigV4QueryAuth(_credentials(secret, token), service, region, expires=expires)
    signer.add_auth(outgoing)
    headers = {name.lower(): value for name, value in outgoing.headers.items()}
    headers["host"] = request.headers.get("host", HOST)
    _, _, query = outgoing.url.partition("?")
    return HttpRequest(request.method, request.path, query, headers, request.body)
