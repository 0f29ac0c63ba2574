"""The certificates that a client trusts: from its arguments, its URL or the environment, in this order."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.client.connection.address import PLAIN, SECURE, Address
from penstock.client.connection.failure import Untrusted, refused
from penstock.wire.tls_reasons import is_wrong_name, speaks_no_tls

VARIABLE = "PENSTOCK_CA"
PEM = "-----BEGIN CERTIFICATE-----"

Authority = str | Path
"""A file with certificates in PEM form, or what is in one."""


def trust_at(address: Address, ca: Authority | None = None) -> ssl.SSLContext | None:
    """The TLS context for an address; None: without TLS. Raises if the authority cannot be used."""
    if not address.secure:
        if ca is not None:
            raise refused(f"ca needs TLS, and the url does not use it: begin it with {SECURE}://")
        return None
    return trusting(chosen_authority(ca, address.authority), named=True)


def chosen_authority(
    ca: Authority | None, in_url: str, environment: Mapping[str, str] | None = None
) -> str | None:
    """The authority in PEM form; None: none is given, so the machine's own are used. Raises if it cannot be read."""
    environment = os.environ if environment is None else environment
    named = ca or in_url or environment.get(VARIABLE, "")
    if not named:
        return None
    if PEM in str(named):
        return str(named)
    try:
        authority = Path(named).read_text("ascii")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise refused(f"the authority file {named} cannot be read: {reason}") from None
    if PEM not in authority:
        raise refused(f"the authority file {named} holds no certificates in PEM form")
    return authority


def authorities_of(addresses: Iterable[Address], ca: Authority | None) -> str | None:
    """All whom clients of several servers trust, for others who cannot read the files; None: whom their machines trust."""
    chosen = {chosen_authority(ca, address.authority) for address in addresses if address.secure}
    return "\n".join(sorted(one for one in chosen if one is not None)) or None


def trusting(authority: str | None, *, named: bool) -> ssl.SSLContext:
    """Takes certificates of an authority (PEM) and no others, None: of those that the machine trusts; `named`: only such as name
    who is dialled."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = named
    if authority is None:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=authority)
    except ssl.SSLError as error:
        raise refused(f"the authority's certificates cannot be used: {error.reason or error}") from None
    return context


def why_not(error: ssl.SSLError, address: Address) -> Exception:
    """Why there is no TLS connection, and what to do; a temporary failure is a `ConnectionError`."""
    if isinstance(error, ssl.SSLCertVerificationError) and is_wrong_name(error.verify_code):
        return Untrusted(
            f"{address} has a certificate with another name: {error.verify_message} Connect to a name in the certificate, or "
            "create a certificate for this name"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return Untrusted(
            f"the certificate of {address} is not trusted: {error.verify_message}. If a private authority signed it, name its "
            f"file: ?ca=FILE in the url, ca=, or {VARIABLE}"
        )
    if speaks_no_tls(error.reason):
        return refused(
            f"the program at {address} does not use TLS: connect with {PLAIN}://, or give the server a certificate "
            "(native.tls_certificate)"
        )
    return ConnectionError(f"could not connect over TLS: {error.reason or error}")
