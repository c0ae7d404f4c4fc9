"""TLS and mutual TLS of both ports."""

from __future__ import annotations

import http.client
import ssl

import numpy as np
import pytest

from mycelia_serving.client import Client
from mycelia_serving.client import SSLConfig as ClientSSLConfig
from mycelia_serving.frontend import start_grpc, start_rest
from mycelia_serving.frontend.tls import SSLConfig

X = np.ones((2, 2), "f4")


@pytest.fixture(params=[False, True], ids=["tls", "mutual"])
def config(request, certificates):
    ca = certificates["ca"] if request.param else None
    return SSLConfig(certificates["server"], certificates["server_key"], ca, request.param)


def _asks(port: int, ssl_config) -> bool:
    """Whether a client gets an answer."""
    with Client(f"127.0.0.1:{port}", "add", "add_common", ssl_config=ssl_config, timeout=20) as client:
        return isinstance(client.infer({"x1": X, "x2": X}), list)


def test_grpc(echo, certificates, config):
    server = start_grpc(echo, "127.0.0.1:0", ssl_config=config)
    ca = certificates["ca"]
    try:
        assert _asks(server.port, ClientSSLConfig(certificates["client"], certificates["client_key"], ca))
        assert _asks(server.port, ClientSSLConfig(custom_ca=ca)) != config.verify_client
        assert not _asks(server.port, None)
        stranger = ClientSSLConfig(certificates["stranger"], certificates["stranger_key"], ca)
        assert _asks(server.port, stranger) != config.verify_client
        assert not _asks(server.port, ClientSSLConfig(custom_ca=certificates["stranger"]))
    finally:
        server.stop(0)


def test_rest(echo, certificates, config):
    server = start_rest(echo, "127.0.0.1:0", ssl_config=config)

    def status(client: str | None, ca: str = "ca", version=None):
        context = ssl.create_default_context(cafile=certificates[ca])
        if client:
            context.load_cert_chain(certificates[client], certificates[client + "_key"])
        if version:
            context.maximum_version = version
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60, context=context)
        try:
            connection.request("GET", "/v2/health/live")
            return connection.getresponse().status
        except OSError:  # ssl.SSLError is one
            return None
        finally:
            connection.close()

    try:
        assert status("client") == 200
        assert status(None) == status("stranger") == (None if config.verify_client else 200)
        assert status("client", ca="stranger") is None
        with pytest.warns(DeprecationWarning):
            assert status("client", version=ssl.TLSVersion.TLSv1_1) is None
    finally:
        server.stop(0)


def test_wrong_parameters(echo, certificates, tmp_path):
    certificate, key = certificates["server"], certificates["server_key"]
    for arguments in (
        (None, key),
        (certificate, None),
        ("no such file", key),
        (certificate, key, "no such file"),
        (certificate, key, None, True),
        (certificate, key, certificates["ca"], 1),
    ):
        with pytest.raises(RuntimeError):
            SSLConfig(*arguments)
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    for config in (SSLConfig(str(broken), key), SSLConfig(certificate, certificates["client_key"])):
        for start in (start_grpc, start_rest):
            with pytest.raises(RuntimeError, match="certificate"):
                start(echo, "127.0.0.1:0", ssl_config=config)
    for start in (start_grpc, start_rest):
        with pytest.raises(RuntimeError, match="ssl_config"):
            start(echo, "127.0.0.1:0", ssl_config="config")
