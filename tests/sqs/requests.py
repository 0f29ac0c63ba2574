"""Requests written by hand, for what no SDK would send."""

from urllib.parse import urlencode

from penstock.sqs.call import Call, read_call
from penstock.sqs.errors import SqsError
from penstock.sqs.protocols.http import HttpRequest
from penstock.sqs.protocols.protocol import protocol_of

HOST = "127.0.0.1:9324"
QUEUE_URL = f"http://{HOST}/000000000000/orders"
FORM = "application/x-www-form-urlencoded; charset=utf-8"


def json_request(action: str, body: bytes, path: str = "/", **headers: str) -> HttpRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpRequest(
        "POST",
        path,
        "",
        {
            "host": HOST,
            "x-amz-target": f"AmazonSQS.{action}",
            "content-type": "application/x-amz-json-1.0",
            **named,
        },
        body,
    )


def form_request(path: str = "/", **parameters: str) -> HttpRequest:
    """Parameters with dots in their names are written with two underscores."""
    return HttpRequest(
        "POST", path, "", {"host": HOST, "content-type": FORM}, form_body(**parameters).encode()
    )


def get_request(path: str = "/", accept: str = "*/*", **parameters: str) -> HttpRequest:
    return HttpRequest("GET", path, form_body(**parameters), {"host": HOST, "accept": accept})


def form_body(**parameters: str) -> str:
    return urlencode({name.replace("__", "."): value for name, value in parameters.items()})


def read(request: HttpRequest) -> Call:
    return read_call(request, protocol_of(request))


def refused(request: HttpRequest) -> SqsError:
    try:
        call = read(request)
    except SqsError as error:
        return error
    raise AssertionError(f"{call} was not refused")
