"""What is done to valid requests: to their values, their bytes, their headers and their signatures."""

from __future__ import annotations

import copy
import random
from typing import Any

Headers = list[tuple[str, str]]

_LONG = "y" * 70_000


def _deep_list() -> Any:
    value: Any = []
    for _ in range(200):
        value = [value]
    return value


def _deep_map() -> Any:
    value: Any = {}
    for _ in range(200):
        value = {"a": value}
    return value


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, -(2**31) - 1, 2**63, 2**64, 10**30, 1.5, -0.0, 1e308, 10**400),
    *("", " ", "0", "-1", "true", "TRUE", "null", "NaN", "99999999999999999999", "1e3", "１２", "+5", "0x10"),
    *(
        "\0",
        "a\0b",
        "\ud800",
        "\udfff\ud800",
        "\ufffe",
        "\uffff",
        "\U0010ffff",
        "é" * 300,
        "\u202e",
        "\x1b[31m",
    ),
    *(
        "../../etc/passwd",
        "%00",
        "%zz",
        "%25%32%35",
        "<x>&amp;",
        "]]>",
        "';--",
        "${jndi:ldap://x}",
        "{}",
        "[]",
    ),
    *(
        '{"Statement":',
        '{"a":' * 200,
        "arn:aws:sqs:::",
        "arn:" * 50,
        "http://",
        "http:///",
        "//",
        "a/b/c/d",
        ".",
    ),
    *("x" * 129, "x" * 81, "x" * 1025, "x" * 5000, _LONG, b"", b"\xff\xfe\x00"),
    *(
        [],
        {},
        [[]],
        [{}],
        {"": ""},
        ["a"] * 11,
        ["a"] * 300,
        _deep_list(),
        _deep_map(),
        {"a": {"b": {"c": 1}}},
    ),
    *({str(number): "v" for number in range(60)}, [None, 1, "x", {}], [{"Id": "e"}] * 12, "All", "*"),
)

PIECES: tuple[bytes, ...] = (
    *(
        b"null",
        b"{}",
        b"[]",
        b'"',
        b"\\",
        b"\\u0000",
        b"\\ud800",
        b"\\udc00\\ud800",
        b"1e999",
        b"-",
        b"0" * 40,
        b",",
    ),
    *(
        b"\0",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\n\n",
        b"%",
        b"%%",
    ),
    *(
        b"%00",
        b"%C3",
        b"%ED%A0%80",
        b"&",
        b"=",
        b"&&",
        b".",
        b"..",
        b".1.",
        b".0.",
        b".-1.",
        b".99999.",
        b".100000.",
    ),
    *(
        b"Action=",
        b"&Action=SendMessage",
        b"Attribute.1.Name=",
        b"Tag.1.Key=",
        b"Entries",
        b"[" * 300,
        b'{"a":' * 300,
    ),
    *(
        b"Credential=",
        b"SignedHeaders=",
        b"Signature=",
        b"host;host",
        b";",
        b"/",
        b"AWS4-HMAC-SHA256",
        b"A" * 5000,
    ),
    *(
        b"X-Amz-Signature=",
        b"X-Amz-Expires=-1",
        b"X-Amz-Date=20261332T256199Z",
        b"<!DOCTYPE a>",
        b"\x7f",
        b" ",
    ),
)

CONTENT_TYPES = (
    *("application/x-amz-json-1.0", "application/x-amz-json-1.1", "application/x-www-form-urlencoded", ""),
    *(
        "application/x-www-form-urlencoded; charset=utf-16",
        "text/xml",
        "application/json",
        "multipart/form-data",
    ),
    *("application/x-amz-json-1.0; charset=latin-1", "\xe9", "application/x-amz-json-9.9", "a" * 3000),
)
TARGETS = (
    *(
        "",
        "SendMessage",
        "AmazonSQS",
        "AmazonSQS.",
        "AmazonSQS..SendMessage",
        "amazonsqs.SendMessage",
        "\xff",
    ),
    *("AmazonSQS.Nothing", "DynamoDB_20120810.GetItem", "AmazonSQS.SendMessage.x", "AmazonSQS. SendMessage"),
    *("AmazonSQS.SendMessage,AmazonSQS.DeleteQueue", "AmazonSQS.__class__", "x" * 5000),
)
PATHS = (
    *(
        "/",
        "//",
        "/000000000000/fuzz-0",
        "/fuzz-1",
        "/queue/fuzz-1",
        "/000000000000/fuzz-0/",
        "/../..",
        "/%2e%2e",
    ),
    *(
        "/000000000000/fuzz-0.fifo",
        "/%66uzz-0",
        "/123456789012/fuzz-0",
        "/a/b/c/d/e",
        "/\xe9",
        "*",
        "/" + "a" * 4000,
    ),
    *(
        "http://other/000000000000/fuzz-0",
        "/.fifo",
        "/000000000000/%00",
        "/000000000000/fuzz-0;x=y",
        "/#fragment",
    ),
)
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")
HOSTS = (
    *(
        "",
        "localhost",
        "fuzz-0.000000000000.sqs.local",
        "sqs.eu-west-1.amazonaws.com",
        "[::1]:9324",
        "a:b:c",
        "\xe9",
    ),
    *("eu-west-1.queue.amazonaws.com", "a" * 2000, "host name", "<script>", "127.0.0.1:99999999"),
)
OTHER_HEADERS = (
    *(
        ("accept", "application/json"),
        ("accept", "*/*"),
        ("x-amzn-trace-id", "Root=1-2-3"),
        ("x-amzn-trace-id", "\xff"),
    ),
    *(
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
    ),
    *(
        ("x-amz-security-token", "token"),
        ("content-encoding", "gzip"),
        ("x-amzn-query-mode", "true"),
        ("date", "now"),
    ),
    *(
        ("x-forwarded-for", "1.2.3.4, x"),
        ("cookie", "c" * 4000),
        ("x-amz-date", "20260101T000000Z"),
        ("origin", "x"),
    ),
)

VERSIONS = (
    *(
        "HTTP/1.1",
        "HTTP/1.1",
        "HTTP/1.1",
        "HTTP/1.0",
        "HTTP/0.9",
        "HTTP/2.0",
        "HTTP/9.9",
        "HTTP/1.2",
        "http/1.1",
    ),
    *("", "HTTP", "HTTP/1", "HTTP/1.1 ", "HTTP/11", "ICE/1.0", "RTSP/1.0"),
)
FRAMING_HEADERS: Headers = [
    *(
        ("transfer-encoding", value)
        for value in ("gzip", "chunked", "gzip, chunked", "chunked, chunked", "x", "")
    ),
    *(
        ("content-length", value)
        for value in ("0", "1", "-1", "+5", "1e3", "99999999999999999999999", "a", "5, 5", "")
    ),
    *(("expect", "100-continue"), ("expect", "200-maybe"), ("upgrade", "h2c"), ("upgrade", "websocket")),
    *(
        ("connection", value)
        for value in ("close", "keep-alive", "upgrade", "Upgrade, HTTP2-Settings", "x", "")
    ),
    *(
        ("te", "trailers"),
        ("trailer", "x-amz-date"),
        ("host", "second"),
        ("", "no name"),
        ("a b", "c"),
        ("x\ty", "z"),
    ),
]


def mutated_values(parameters: Any, dice: random.Random) -> Any:
    """The parameters with one to three of their values replaced, removed, renamed or repeated."""
    changed = copy.deepcopy(parameters)
    for _ in range(dice.randint(1, 3)):
        places = list(_places(changed))
        if not places:
            return _odd(dice)
        container, key = dice.choice(places)
        value = container[key]
        match dice.randrange(6):
            case 0 if isinstance(container, dict):
                del container[key]
            case 1 if isinstance(container, dict):
                container[
                    dice.choice(("", "\0", str(key).lower(), str(key) + "s", "QueueUrl", "Entries"))
                ] = value
            case 2 if isinstance(value, list):
                container[key] = value * dice.choice((2, 5, 40))
            case 3 if isinstance(value, str):
                container[key] = mutated_text(value, dice)
            case 4:
                container[key] = [value] if dice.random() < 0.5 else {"a": value}
            case _:
                container[key] = _odd(dice)
    return changed


def _odd(dice: random.Random) -> Any:
    """A copy, because the next mutation may change what is inside."""
    return copy.deepcopy(dice.choice(ODD_VALUES))


def _places(value: Any) -> Any:
    if isinstance(value, dict):
        for key, item in value.items():
            yield value, key
            yield from _places(item)
    elif isinstance(value, list) and len(value) < 50:
        for index, item in enumerate(value):
            yield value, index
            if not (isinstance(item, list) and len(item) == 1):  # the deep one
                yield from _places(item)


def mutated_text(text: str, dice: random.Random) -> str:
    """A text with a few characters changed; each byte stays one character."""
    return mutated_bytes(text.encode("utf-8", "surrogatepass"), dice).decode("latin-1")


def mutated_bytes(content: bytes, dice: random.Random) -> bytes:
    """Bytes flipped, cut, repeated, replaced."""
    for _ in range(dice.choice((1, 1, 2, 3, 8))):
        at = dice.randrange(len(content) + 1)
        match dice.randrange(7):
            case 0:
                content = content[:at] + dice.choice(PIECES) + content[at:]
            case 1:
                content = content[:at] + content[at + dice.randint(1, 30) :]
            case 2:
                flipped = bytes([content[at] ^ (1 << dice.randrange(8))]) if at < len(content) else b""
                content = content[:at] + flipped + content[at + 1 :]
            case 3:
                end = min(len(content), at + dice.randint(1, 200))
                content = content[:end] + content[at:end] * dice.choice((1, 1, 20)) + content[end:]
            case 4:
                content = content[:at]
            case 5:
                content = content[at:]
            case _:
                content = (
                    content[:at] + dice.randbytes(dice.randint(1, 8)) + content[at + dice.randint(0, 12) :]
                )
    return content


def mutated_headers(headers: Headers, dice: random.Random) -> Headers:
    """One header taken away, doubled, replaced or added."""
    changed = list(headers)
    at = dice.randrange(len(changed))
    name, value = changed[at]
    match dice.randrange(7):
        case 0:
            del changed[at]
        case 1:
            changed.insert(dice.randrange(len(changed)), (name, value))
        case 2:
            changed.append((name, mutated_text(value, dice)))
        case 3:
            changed = _replaced(changed, "content-type", dice.choice(CONTENT_TYPES))
        case 4:
            changed = _replaced(changed, "x-amz-target", dice.choice(TARGETS))
        case 5:
            changed = _replaced(changed, "host", dice.choice(HOSTS))
        case _:
            changed.append(dice.choice(OTHER_HEADERS))
    return changed


def mutated_signature(headers: Headers, dice: random.Random) -> Headers:
    """The Authorization header or the date cut, doubled, spoilt or taken away."""
    named = dict(headers)
    value = named.get("authorization", "")
    match dice.randrange(8):
        case 0:
            parts = value.split(", ")
            del parts[dice.randrange(len(parts))]
            return _replaced(headers, "authorization", ", ".join(parts))
        case 1:
            return _replaced(headers, "authorization", value[: dice.randrange(len(value) + 1)])
        case 2:
            return [*headers, ("authorization", value)]
        case 3:
            return _replaced(headers, "x-amz-date", mutated_text(named.get("x-amz-date", ""), dice))
        case 4:
            parts = value.split("/")
            parts[dice.randrange(len(parts))] = dice.choice(("", "x", "20260101", "s3", "\xe9", "a/b"))
            return _replaced(headers, "authorization", "/".join(parts))
        case 5:
            return [
                (name, value)
                for name, value in headers
                if name != dice.choice(("authorization", "x-amz-date"))
            ]
        case 6:
            scheme = dice.choice(
                ("Basic eDp5", "Bearer x", "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256 x=y", "", ",")
            )
            return _replaced(headers, "authorization", scheme)
        case _:
            return _replaced(headers, "authorization", mutated_text(value, dice))


def _replaced(headers: Headers, name: str, value: str) -> Headers:
    return [(one, old) for one, old in headers if one != name] + [(name, value)]
