"""Header names in lower case, with the usual ones made beforehand."""

from __future__ import annotations

HEADER_NAMES = {
    spelling.encode(): name
    for name in (
        *("host", "accept", "accept-encoding", "content-type", "content-length", "user-agent"),
        *("authorization", "x-amz-target", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"),
        *("x-amzn-query-mode", "x-amzn-trace-id", "x-amz-user-agent", "x-forwarded-for"),
        *("x-forwarded-proto", "amz-sdk-invocation-id", "amz-sdk-request", "expect", "transfer-encoding"),
        *("connection", "x-amz-api-version"),
    )
    for spelling in (name, name.title())
}
"""From the usual spellings on the wire to the names, which then need not be made anew: 1 µs a request."""

Pairs = list[tuple[bytes, bytes]]


def headers_of(pairs: Pairs) -> dict[str, str]:
    """The headers as a request has them; those sent twice are joined with a comma."""
    try:
        headers = {HEADER_NAMES[name]: value.rstrip().decode("latin-1") for name, value in pairs}
    except KeyError:
        return _unusual_headers_of(pairs)
    return headers if len(headers) == len(pairs) else _unusual_headers_of(pairs)


def is_signed_twice(pairs: Pairs) -> bool:
    """Whether there is more than one `Authorization` header: others on the way may believe another one of them."""
    return sum(name.lower() == b"authorization" for name, _ in pairs) > 1


def _unusual_headers_of(pairs: Pairs) -> dict[str, str]:
    headers: dict[str, str] = {}
    for spelling, raw_value in pairs:
        name = HEADER_NAMES.get(spelling) or spelling.decode("latin-1").lower()
        value = raw_value.rstrip().decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers
