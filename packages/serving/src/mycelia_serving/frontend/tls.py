"""Certificates of a server: `SSLConfig`, for gRPC and for REST."""

from __future__ import annotations

import os
from pathlib import Path


class SSLConfig:
    """TLS of a server.

    certificate, private_key: PEM files of the server. custom_ca: PEM file of the authority whose certificates
    clients show; required with verify_client, which refuses clients without one.
    Errors: RuntimeError that names the parameter.
    """

    def __init__(
        self,
        certificate: str,
        private_key: str,
        custom_ca: str | None = None,
        verify_client: bool = False,
    ) -> None:
        self.certificate = _file("certificate", certificate)
        self.private_key = _file("private_key", private_key)
        self.custom_ca = None if custom_ca is None else _file("custom_ca", custom_ca)
        if not isinstance(verify_client, bool):
            raise RuntimeError(f"Parameter 'verify_client' should be bool, but got {type(verify_client)}")
        if verify_client and self.custom_ca is None:
            raise RuntimeError("Parameter 'custom_ca' should be given when 'verify_client' is True")
        self.verify_client = verify_client

    def grpc_credentials(self):
        """`grpc.ServerCredentials`."""
        import grpc

        pair = (Path(self.private_key).read_bytes(), Path(self.certificate).read_bytes())
        authority = None if self.custom_ca is None else Path(self.custom_ca).read_bytes()
        return grpc.ssl_server_credentials(
            (pair,), root_certificates=authority, require_client_auth=self.verify_client
        )

    def context(self):
        """`ssl.SSLContext`. Errors: RuntimeError if a file is not what it should be."""
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.private_key)
            if self.custom_ca is not None:
                context.load_verify_locations(self.custom_ca)
        except (OSError, ssl.SSLError) as error:
            raise RuntimeError(
                f"certificate {self.certificate!r} or its key cannot be used: {error}"
            ) from None
        if self.verify_client:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _file(name: str, path: str) -> str:
    if not isinstance(path, str):
        raise RuntimeError(f"Parameter '{name}' should be str, but got {type(path)}")
    if not os.path.isfile(path):
        raise RuntimeError(f"Parameter '{name}': there is no file {path!r}")
    return path
