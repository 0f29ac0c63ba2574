"""Queue names, ARNs, queue URLs and virtual hosts."""

import pytest

from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.names import (
    QueueAddress,
    QueueArn,
    account_of_access_key,
    check_queue_name,
    parse_arn,
    parse_host,
    parse_path,
    parse_queue_url,
    queue_url,
    region_of_host,
)

OWN = QueueAddress(None, "orders")
THEIRS = QueueAddress("123456789012", "orders")


@pytest.mark.parametrize("name", ["a", "Orders_2-x", "x" * 80, "-", "_"])
def test_a_standard_name(name: str) -> None:
    check_queue_name(name, fifo=False)


@pytest.mark.parametrize("name", ["a.fifo", "x" * 75 + ".fifo"])
def test_a_fifo_name(name: str) -> None:
    check_queue_name(name, fifo=True)


@pytest.mark.parametrize(
    ("name", "fifo"),
    [
        ("", False),
        ("x" * 81, False),
        ("a/b", False),
        ("a.b", False),
        ("a b", False),
        ("é", False),
        ("a\n", False),
        ("a.fifo", False),
        ("a", True),
        (".fifo", True),
        ("x" * 76 + ".fifo", True),
        ("a.FIFO", True),
    ],
)
def test_a_bad_name(name: str, fifo: bool) -> None:
    with pytest.raises(SqsError) as caught:
        check_queue_name(name, fifo=fifo)
    assert caught.value.kind is ErrorKind.INVALID_PARAMETER_VALUE
    assert caught.value.message == (
        "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
    )


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:9324/123456789012/orders", THEIRS),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/orders", THEIRS),
        ("https://queue.amazonaws.com/123456789012/orders", THEIRS),
        ("http://host/queue/us-east-1/123456789012/orders", THEIRS),
        ("/123456789012/orders", THEIRS),
        ("123456789012/orders", THEIRS),
        ("orders", OWN),
        ("/orders", OWN),
        ("http://localhost:9324/queue/orders", OWN),
        ("http://h/123456789012/a.fifo", QueueAddress("123456789012", "a.fifo")),
        ("https://orders.123456789012.sqs.example/", THEIRS),
        ("http://orders.123456789012.sqs.example:9324", THEIRS),
        ("http://orders.123456789012.sqs.example/210987654321/b", QueueAddress("210987654321", "b")),
    ],
)
def test_a_queue_url_names_account_and_queue_whatever_its_host(url: str, address: QueueAddress) -> None:
    assert parse_queue_url(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "http://h/123456789012/orders/",
        "http://h/123456789012/orders?x=1",
        "http://h/123456789012/or ders",
        "http://h/abc/orders",
        "http://h",
        "http:///orders",
        "http://h/",
        "/",
        "..",
        "a.b",
        "http://h/12345678901/orders",
        "http://orders.12345678901.sqs.example/",
        "http://orders.123456789012/",
        "http://",
        "x" * 5000,
        "http://h/1/2/3/" + "x" * 81,
    ],
)
def test_any_other_url_names_a_queue_that_does_not_exist(url: str) -> None:
    with pytest.raises(SqsError) as caught:
        parse_queue_url(url)
    assert caught.value.kind is ErrorKind.QUEUE_DOES_NOT_EXIST


def test_urls_and_arns_that_are_given_out_are_understood() -> None:
    url = queue_url("http://127.0.0.1:9324", "123456789012", "orders")
    assert url == "http://127.0.0.1:9324/123456789012/orders"
    assert parse_queue_url(url) == THEIRS
    arn = QueueArn("eu-west-1", "123456789012", "a.fifo")
    assert str(arn) == "arn:aws:sqs:eu-west-1:123456789012:a.fifo"
    assert parse_arn(str(arn)) == arn
    late = arn._replace(name=f"{'x' * 80}.late")
    assert parse_arn(str(late)) == late
    assert parse_arn(str(arn._replace(name="x" * 81))) is None


@pytest.mark.parametrize(
    "arn",
    [
        "",
        "orders",
        "arn:aws:sns:us-east-1:123456789012:orders",
        "arn:aws:sqs:us-east-1:12345:orders",
        "arn:aws:sqs::123456789012:orders",
        "arn:aws:sqs:us-east-1:123456789012:",
        "arn:aws:sqs:us-east-1:123456789012:a:b",
        "arn:aws:sqs:us-east-1:123456789012:a.b",
    ],
)
def test_what_is_no_arn_of_a_queue(arn: str) -> None:
    assert parse_arn(arn) is None


def test_request_paths() -> None:
    assert parse_path("/") is None
    assert parse_path("/123456789012/orders") == THEIRS
    assert parse_path("/health/") is None


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("orders.123456789012.sqs.localhost:9324", THEIRS),
        ("a.fifo.123456789012.queues.example.com", QueueAddress("123456789012", "a.fifo")),
        ("a.fifo.late.123456789012.localhost", QueueAddress("123456789012", "a.fifo.late")),
        ("127.0.0.1:9324", None),
        ("sqs.us-east-1.amazonaws.com", None),
        ("123456789012.localhost", None),
        ("x" * 5000, None),
    ],
)
def test_virtual_hosts(host: str, address: QueueAddress | None) -> None:
    assert parse_host(host) == address


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("sqs.eu-west-1.amazonaws.com", "eu-west-1"),
        ("us-east-2.queue.amazonaws.com", "us-east-2"),
        ("vpce-1.sqs.us-gov-west-1.vpce.amazonaws.com:443", "us-gov-west-1"),
        ("localhost:9324", None),
    ],
)
def test_the_region_a_host_names(host: str, region: str | None) -> None:
    assert region_of_host(host) == region


def test_an_access_key_of_twelve_digits_is_an_account() -> None:
    assert account_of_access_key("123456789012") == "123456789012"
    assert account_of_access_key("AKIDEXAMPLE") == "000000000000"
