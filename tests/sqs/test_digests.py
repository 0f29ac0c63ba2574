"""The MD5 vectors that SDKs agree on."""

import hashlib

import pytest

from penstock.sqs.messages.bodies import attributes_md5, body_md5
from penstock.sqs.shapes.messages import MessageAttributeValue


def text(value: str, data_type: str = "String") -> MessageAttributeValue:
    return MessageAttributeValue(data_type=data_type, string_value=value)


def test_a_body() -> None:
    assert body_md5(b"message") == "78e731027d8fd50ed642340b7c9a63b3"
    assert body_md5("é".encode()) == hashlib.md5("é".encode()).hexdigest()


@pytest.mark.parametrize(
    ("attributes", "digest"),
    [
        ({"timestamp": text("1493147359900", "Number")}, "235c5c510d26fb653d073faed50ae77c"),
        (
            {"timestamp": text("1493147359900", "Number.java.lang.Long")},
            "2e2e4876d8e0bd6b8c2c8f556831c349",
        ),
        (
            {"General": text("Kenobi"), "Hello": text("There"), "Help.Me": text("Me")},
            "4c360f3fdafd970e05fae2f149d997f5",
        ),
        (
            {"Help.Me": text("Me"), "General": text("Kenobi"), "Hello": text("There")},
            "4c360f3fdafd970e05fae2f149d997f5",
        ),
        ({"Hello": text("There")}, "a311262e065454b75da111d535b8dacd"),
        (
            {
                "id": text("453ae55e-f03b-21a6-a4b1-70c2e2e8fe71"),
                "mybin": MessageAttributeValue(data_type="Binary", binary_value=b"kekchebukek"),
                "timestamp": text("1603134247654", "Number.java.lang.Long"),
                "contentType": text("application/json"),
            },
            "049075255ebc53fb95f7f9f3cedf3c50",
        ),
        (
            {
                "AWSTraceHeader": text(
                    "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
                )
            },
            "5ae4d5d7636402d80f4eb6d213245a88",
        ),
    ],
)
def test_attributes(attributes: dict[str, MessageAttributeValue], digest: str) -> None:
    assert attributes_md5(attributes) == digest


def test_no_attributes_have_no_digest() -> None:
    assert attributes_md5({}) is None
