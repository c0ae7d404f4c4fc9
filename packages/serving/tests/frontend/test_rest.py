"""The REST port: MindSpore's paths, statuses, and clients that misbehave."""

from __future__ import annotations

import gc
import gzip
import http.client
import json
import socket
import zlib

import numpy as np
import pytest

from mycelia_serving.errors import Code
from mycelia_serving.frontend import start_rest

ADD = {"instances": [{"x1": [[1.0, 2.0], [3.0, 4.0]], "x2": [[1.0, 1.0], [1.0, 1.0]]}]}


@pytest.fixture
def server(echo):
    server = start_rest(echo, "127.0.0.1:0", max_msg_mb_size=1, repository=echo)
    yield server
    server.stop(0)


@pytest.fixture
def ask(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask(method, path, body=None, headers=()):
        """Status and document of the reply."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        data = response.read()
        ask.headers = response.headers
        json_type = response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(data) if data and json_type else data

    yield ask
    connection.close()


def raw(server, data: bytes, *, end: bool = False) -> bytes:
    """Everything that the server says to these bytes until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(data)
        if end:
            sock.shutdown(socket.SHUT_WR)
        found = b""
        while part := sock.recv(1 << 16):
            found += part
        return found


@pytest.mark.parametrize(
    "path",
    [
        "/model/add:add_common",
        "/model/add/version/2:add_common",
        "/version/2/model/add:add_common",
        "/model/add/version/0:add_common",
        "/model/add:add_common?x=1:other",
        "/model/%61dd:add%5fcommon",
    ],
)
def test_every_form_of_the_url(ask, path):
    assert ask("POST", path, ADD) == (200, {"instances": [{"y": [[2.0, 3.0], [4.0, 5.0]]}]})
    assert ask.headers["Content-Type"] == "application/json"


def test_version_reaches_the_dispatcher_and_words_of_the_url_are_names_too(ask, echo):
    ask("POST", "/model/add/version/1:add_common", ADD)
    assert echo.requests[-1].version == 1
    for path in ("/model/model:version", "/model/model/version/1:version", "/version/1/model/model:version"):
        assert ask("POST", path, {"instances": {"x": 1}}) == (200, {"instances": [{"x": 1}]})


def test_an_instance_that_fails_among_others_and_all_that_fail(ask):
    x = {"x": 1}
    status, reply = ask("POST", "/model/mirror:one", {"instances": [x, {"x": None}, x, {}]})
    assert status == 200 and reply["instances"][0] == x and "error_msg" in reply["instances"][1]
    assert "missing" in reply["instances"][3]["error_msg"]
    status, reply = ask("POST", "/model/mirror:fail", {"instances": [x, x]})
    assert status == 400 and "x is 1" in reply["error_msg"]


@pytest.mark.parametrize(
    "path",
    [
        "/model/add",
        "/model/:add_common",
        "/model/add:",
        "/model/add/version/-1:add_common",
        "/model/add/version/x:add_common",
        "/model/add/version/4294967296:add_common",
        "/model/add/version/:add_common",
        "/model/add/extra:add_common",
        "/add:add_common",
        "/model/add/version/1/2:add_common",
        "/somewhere",
        "//",
    ],
)
def test_urls_that_are_wrong(ask, path):
    status, reply = ask("POST", path, ADD)
    assert status == 400 and set(reply) == {"error_msg"}


def test_statuses(ask, echo):
    for path in ("/model/no:add_common", "/model/add:no", "/model/add/version/9:add_common"):
        status, reply = ask("POST", path, ADD)
        assert status == 404 and "unknown" in reply["error_msg"]
    for body in ("", "{", "[]", "{}", '{"instances": []}', "\x00"):
        assert ask("POST", "/model/add:add_common", body)[0] == 400
    for code, status in (
        (Code.TOO_MANY, 429),
        (Code.STOPPING, 503),
        (Code.SERVABLE_UNAVAILABLE, 503),
        (Code.DEADLINE, 504),
    ):
        echo.refusal = code
        assert ask("POST", "/model/add:add_common", ADD)[0] == status


@pytest.mark.parametrize("verb", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_verbs(ask, verb):
    status, reply = ask(verb, "/model/add:add_common")
    assert status == 405 and ask.headers["Allow"] == "POST"
    assert reply == b"" if verb == "HEAD" else "error_msg" in reply
    assert ask("POST", "/metrics")[0] == 405
    assert ask("GET", "/nowhere")[0] == 404
    assert ask("HEAD", "/model")[0] == 200


def test_deadline_priority_and_trace_of_headers(ask, echo):
    headers = {"mycelia-timeout-ms": "100", "mycelia-priority": "3", "traceparent": "00-a-b-01"}
    assert ask("POST", "/model/mirror:hang", {"instances": {"x": 1}}, headers)[0] == 504
    assert (echo.requests[-1].priority, echo.requests[-1].traceparent) == (3, "00-a-b-01")
    for name in ("mycelia-timeout-ms", "mycelia-priority"):
        assert ask("POST", "/model/mirror:one", {"instances": {"x": 1}}, {name: "soon"})[0] == 400


def test_nan_is_null_or_a_literal(ask):
    nan = {"b64": "AADAfw==", "type": "float32"}
    assert ask("POST", "/model/mirror:one", {"instances": {"x": nan}})[1] == {"instances": [{"x": None}]}
    headers = {"Accept": "application/json; nan=literal"}
    reply = ask("POST", "/model/mirror:one", {"instances": {"x": nan}}, headers)[1]
    assert np.isnan(reply["instances"][0]["x"])


def test_what_is_served(ask, echo):
    status, reply = ask("GET", "/model")
    add = [s for s in reply["servables"] if s["name"] == "add"]
    assert status == 200 and [s["version"] for s in add] == [1, 2]
    assert add[0]["methods"][0]["inputs"][0] == {
        "name": "x1",
        "dtype": "float32",
        "shape": [2, 2],
        "batched": True,
    }
    assert add[0]["workers"][0]["state"] == "ready"
    status, document = ask("GET", "/openapi.json")
    assert status == 200 and document["openapi"].startswith("3.")
    schema = document["paths"]["/model/add/version/1:add_common"]["post"]["requestBody"]
    assert schema["content"]["application/json"]["schema"]["required"] == ["instances"]
    status, page = ask("GET", "/")
    assert status == 200 and b"curl" in page and b"add_common" in page


def test_metrics(ask):
    ask("POST", "/model/add:add_common", ADD)
    ask("POST", "/model/add:add_common", {"instances": [{}, *ADD["instances"]]})
    ask("POST", "/model/" + "x" * 50 + ":y", ADD)
    status, page = ask("GET", "/metrics")
    lines = page.decode().splitlines()
    labels = 'servable="add",method="add_common",version="2",protocol="rest"'
    labels = 'method="add_common",outcome="{}",protocol="rest",servable="add",version="2"'

    def value(name, outcome):
        wanted = set(labels.format(outcome).split(","))
        for line in lines:
            if line.startswith(name + "{"):
                inside, _, number = line.removeprefix(name + "{").partition("} ")
                if set(inside.split(",")) == wanted:
                    return float(number)
        return None

    assert status == 200 and ask.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert value("mycelia_serving_requests_total", "success") == 1
    assert value("mycelia_serving_requests_total", "partial") == 1
    assert value("mycelia_serving_instances_total", "success") == 2
    assert value("mycelia_serving_instances_total", "failed") == 1
    assert any(line.startswith("mycelia_serving_request_seconds_bucket") for line in lines)
    assert any(line.startswith("mycelia_serving_received_bytes_total") for line in lines)
    assert 'outcome="not_found"' in page.decode() and "xxxxx" not in page.decode()


def test_token(echo):
    server = start_rest(echo, "127.0.0.1:0", token="secret")
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

        def status(path, **headers):
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            response.read()
            return response.status

        for path in ("/model", "/metrics", "/v2", "/v2/models/add.add_common", "/nowhere"):
            assert status(path) == 401 and status(path, Authorization="Bearer no") == 401
        assert status("/model", Authorization="Bearer secret") == 200
        assert status("/v2/health/live") == status("/v2/health/ready") == 200
        connection.close()
    finally:
        server.stop(0)


def test_start_errors(echo, server):
    with pytest.raises(RuntimeError, match=f"{server.port}.*in use"):
        start_rest(echo, f"127.0.0.1:{server.port}")
    for address in ("", "127.0.0.1", "unix:/tmp/x", ":80", 80, "127.0.0.1:99999", "no such host:80"):
        with pytest.raises(RuntimeError, match="address|listen"):
            start_rest(echo, address)
    for size in (0, 513, None):
        with pytest.raises(RuntimeError, match="max_msg_mb_size"):
            start_rest(echo, "127.0.0.1:0", max_msg_mb_size=size)


# ---- clients that misbehave --------------------------------------------------------------------------------


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(server, echo, monkeypatch):
    monkeypatch.setattr("mycelia_serving.frontend.asgi._LINGER_S", 0.2)
    head = b"POST /model/add:add_common HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (2 << 20)
    assert raw(server, head).startswith(b"HTTP/1.1 413 ")
    chunked = b"POST /model/add:add_common HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"80000\r\n" + bytes(0x80000) + b"\r\n"
    assert raw(server, chunked + 3 * chunk).startswith(b"HTTP/1.1 413 ")
    assert not echo.requests


@pytest.mark.parametrize(
    "data, status",
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"a: %s\r\n" % (b"y" * 70_000) + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: y\r\n" % i for i in range(300)) + b"\r\n", 431),
    ],
)
def test_what_is_no_request(server, data, status):
    assert raw(server, data).startswith(b"HTTP/1.1 %d " % status)


def test_slow_clients_are_not_waited_for(echo):
    server = start_rest(echo, "127.0.0.1:0", stall_s=0.2, idle_s=0.2)
    try:
        assert raw(server, b"") == b""  # nothing is ever sent
        assert raw(server, b"POST /model/add:add_common HT").startswith(b"HTTP/1.1 408 ")
        half = b"POST /model/add:add_common HTTP/1.1\r\nContent-Length: 10\r\n\r\n12345"
        assert raw(server, half).startswith(b"HTTP/1.1 408 ")
    finally:
        server.stop(0)


def test_keep_alive_pipelines_and_clients_of_http_1_0(server):
    one = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert raw(server, 20 * one + last).count(b"HTTP/1.1 200 ") == 21
    assert raw(server, b"GET /v2/health/live HTTP/1.0\r\n\r\n").count(b"HTTP/1.1 200 ") == 1
    kept = raw(server, b"GET /v2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + last)
    assert kept.startswith(b"HTTP/1.1 200 ") and b"connection: close" in kept
    mixed = raw(server, one + b"nonsense\r\n\r\n")
    assert mixed.count(b"HTTP/1.1 400 ") == 1
    upgrade = b"GET /v2 HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n\r\n"
    assert raw(server, upgrade).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_asks_before_it_sends(server):
    body = json.dumps(ADD).encode()
    head = b"POST /model/add:add_common HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(head)
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(body)
        assert sock.recv(100).startswith(b"HTTP/1.1 200 ")


def test_compressed_bodies(ask, server):
    body = json.dumps(ADD).encode()
    path = "/model/add:add_common"
    bodies = {"gzip": gzip.compress(body), "deflate": zlib.compress(body), "identity": body}
    for encoding, packed in bodies.items():
        assert ask("POST", path, packed, {"Content-Encoding": encoding})[0] == 200

    def refused(packed: bytes, encoding: str) -> bytes:
        head = f"POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Encoding: {encoding}\r\n"
        head += f"Content-Length: {len(packed)}\r\n\r\n"
        return raw(server, head.encode() + packed)[:13]

    assert refused(gzip.compress(bytes(8 << 20)), "gzip") == b"HTTP/1.1 413 "
    assert refused(gzip.compress(body)[:-9], "gzip") == b"HTTP/1.1 400 "
    assert refused(body, "deflate") == b"HTTP/1.1 400 "
    assert refused(body, "br") == b"HTTP/1.1 415 "


def test_a_client_that_leaves_cancels_its_request(server, echo, wait_for):
    body = b'{"instances": {"x": 1}}'
    head = b"POST /model/mirror:hang HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    sock.sendall(head + body)
    wait_for(lambda: echo.requests)
    sock.close()
    wait_for(lambda: echo.cancelled)
    half = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    half.sendall(head + body[:5])
    half.close()
    assert raw(server, b"GET /v2 HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_a_client_that_leaves_several_requests_makes_no_noise(server, echo, wait_for, caplog):
    one = b'POST /model/mirror:hang HTTP/1.1\r\nContent-Length: 23\r\n\r\n{"instances": {"x": 1}}'
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    sock.sendall(3 * one)
    wait_for(lambda: echo.requests)
    sock.close()
    wait_for(lambda: echo.cancelled)
    assert raw(server, b"GET /v2 HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    server.stop(5)
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_stop_with_grace_answers_what_is_there(server, echo, wait_for):
    body = b'{"instances": {"x": 1}}'
    head = b"POST /model/mirror:hang HTTP/1.1\r\nmycelia-timeout-ms: 300\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(head + body)
        wait_for(lambda: echo.requests)
        server.stop(30)
        answer = sock.recv(1000)
    assert answer.startswith(b"HTTP/1.1 504 ") and b"connection: close" in answer
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_large_bodies_and_replies(echo):
    server = start_rest(echo, "127.0.0.1:0", max_msg_mb_size=16)
    try:
        values = np.arange(300_000).reshape(300, 1000)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/model/mirror:one", json.dumps({"instances": {"x": values.tolist()}}))
        reply = json.loads(connection.getresponse().read())
        assert reply["instances"][0]["x"] == values.tolist()
        connection.close()
    finally:
        server.stop(0)
