"""The TLS context for connections to the members of an etcd."""

from __future__ import annotations

import ssl

from penstock.metadata.store.etcd_settings import TlsFiles
from penstock.metadata.store.interface import StoreRefusedError


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Checks the member's certificate and its name, and shows ours if there is one."""
    try:
        context = ssl.create_default_context(cafile=files.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if files.certificate is not None:
            context.load_cert_chain(files.certificate, files.key)
    except (OSError, ssl.SSLError) as error:
        names = ", ".join(str(one) for one in (files.ca, files.certificate, files.key) if one is not None)
        raise StoreRefusedError(f"cannot use the TLS files of etcd ({names}): {error}") from error
    return context
