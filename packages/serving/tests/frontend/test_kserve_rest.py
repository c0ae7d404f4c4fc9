"""KServe v2 over HTTP."""

from __future__ import annotations

import http.client
import json

import numpy as np
import pytest

from mycelia_serving.errors import Code
from mycelia_serving.frontend import start_rest
from mycelia_serving.request import ServableInfo


@pytest.fixture
def ask(echo):
    server = start_rest(echo, "127.0.0.1:0", repository=echo)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask(method, path, document=None, binary=b"", headers=()):
        """Status, document and binary part of the reply."""
        headers = dict(headers)
        body = None if document is None else json.dumps(document).encode()
        if binary:
            headers["Inference-Header-Content-Length"] = str(len(body))
            body += binary
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        data = response.read()
        size = int(response.headers.get("Inference-Header-Content-Length", len(data)))
        return response.status, json.loads(data[:size] or b"null"), data[size:]

    yield ask
    connection.close()
    server.stop(0)


def tensor(name, values, datatype="FP32", **more):
    entry = {"name": name, "datatype": datatype, "shape": list(np.shape(values)), **more}
    if "parameters" not in more:
        entry.setdefault("data", values)
    return entry


X = [[[1.0, 2.0], [3.0, 4.0]]]


def test_the_server_and_its_models(ask, echo):
    assert ask("GET", "/v2/health/live")[:2] == (200, {"live": True})
    assert ask("GET", "/v2/health/ready")[:2] == (200, {"ready": True})
    status, server, _ = ask("GET", "/v2")
    assert (
        status == 200 and server["name"] == "mycelia-serving" and "binary_tensor_data" in server["extensions"]
    )
    for path in ("/v2/models/add.add_common/ready", "/v2/models/add.add_common/versions/1/ready"):
        assert ask("GET", path)[0] == 200
    status, metadata, _ = ask("GET", "/v2/models/add.add_common")
    assert (status, metadata["versions"]) == (200, ["1", "2"])
    assert metadata["inputs"][0] == {"name": "x1", "datatype": "FP32", "shape": [-1, 2, 2]}
    assert ask("GET", "/v2/models/single")[1]["inputs"][0]["shape"] == [-1, 3]
    assert ask("GET", "/v2/models/add.add_common/versions/1")[1]["versions"] == ["1"]
    echo.is_ready = False
    assert ask("GET", "/v2/health/ready")[:2] == (503, {"ready": False})


def test_inputs_that_take_any_type_say_so(ask):
    (x,) = ask("GET", "/v2/models/mirror.one")[1]["inputs"]
    assert x == {"name": "x", "datatype": "BYTES", "shape": [-1], "parameters": {"any_datatype": True}}
    for values, datatype in (([1.5], "FP32"), ([7], "INT64"), (["a"], "BYTES")):
        sent = {"inputs": [{"name": "x", "shape": [1], "datatype": datatype, "data": values}]}
        status, reply, _ = ask("POST", "/v2/models/mirror.one/infer", sent)
        assert (status, reply["outputs"][0]["data"]) == (200, values)


def test_model_that_is_loading_is_known_and_not_ready(ask, echo, monkeypatch):
    loading = ServableInfo("late", 1, (), "loading", reason="it is being loaded")
    known = echo.describe()
    monkeypatch.setattr(echo, "describe", lambda: [*known, loading])
    assert ask("GET", "/v2/models/late/ready")[:2] == (503, {"name": "late", "ready": False})
    status, reply, _ = ask("GET", "/v2/models/late")
    assert status == 503 and "being loaded" in reply["error"]
    assert ask("GET", "/v2/models/add.add_common/ready")[0] == 200


@pytest.mark.parametrize("action", ["load", "unload"])
def test_models_are_changed_only_by_those_who_may(echo, action):
    sent = {"authorization": "Bearer admin"}
    for options, status in (
        ({}, 403),
        ({"token": "user"}, 401),
        ({"repository": echo, "admin_token": "admin"}, 200),
        ({"repository": echo, "admin_token": "other"}, 403),
        ({"repository": echo, "admin_token": "admin", "token": "user"}, 200),
        ({"repository": echo, "token": "admin"}, 200),
    ):
        before = len(echo.loaded)
        server = start_rest(echo, "127.0.0.1:0", **options)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", f"/v2/repository/models/add/{action}", headers=sent)
        reply = connection.getresponse()
        text = reply.read()
        assert (reply.status, len(echo.loaded) - before) == (status, status == 200), (options, text)
        if "token" in options and options["token"] != "admin":
            connection.request("GET", "/v2/models/add.add_common", headers=sent)
            assert connection.getresponse().status == (200 if "admin_token" in options else 401)
        connection.close()
        server.stop()


def test_unknown_models_paths_and_verbs(ask):
    for path in (
        "/v2/models/no",
        "/v2/models/add.no",
        "/v2/models/add",
        "/v2/models/add.add_common/versions/8",
    ):
        for end in ("", "/stats"):
            status, reply, _ = ask("GET", path + end)
            assert status == 404 and set(reply) == {"error"}
        name = path.split("/")[3]
        assert ask("GET", path + "/ready")[:2] == (404, {"name": name, "ready": False})
    assert ask("GET", "/v2/models/add.add_common/versions/x/ready")[0] == 400
    assert ask("POST", "/v2/models/no/infer", {"inputs": []})[0] == 404
    assert ask("GET", "/v2/models/add.add_common/versions/x")[0] == 400
    assert ask("GET", "/v2/nothing")[0] == 404
    assert ask("GET", "/v2/models/add.add_common/infer")[0] == 405
    assert ask("POST", "/v2/health/live")[0] == 405


def test_inference_with_json(ask, echo):
    request = {"id": "7", "inputs": [tensor("x1", X), tensor("x2", X)]}
    status, reply, _ = ask("POST", "/v2/models/add.add_common/infer", request)
    assert status == 200 and reply == {
        "model_name": "add.add_common",
        "model_version": "2",
        "id": "7",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 2, 2], "data": [2.0, 4.0, 6.0, 8.0]}],
    }
    flat = {"name": "x1", "datatype": "FP32", "shape": [2, 2, 2], "data": list(range(8))}
    request = {"inputs": [flat, {**flat, "name": "x2"}], "outputs": [{"name": "y"}]}
    status, reply, _ = ask("POST", "/v2/models/add.add_common/versions/1/infer", request)
    assert reply["outputs"][0]["data"] == [2.0 * i for i in range(8)] and reply["model_version"] == "1"
    assert len(echo.requests[-1].instances) == 2 and echo.requests[-1].version == 1


def test_binary_tensors(ask):
    x = np.arange(8, dtype="f4").reshape(2, 2, 2)
    size = {"parameters": {"binary_data_size": x.nbytes}}
    inputs = [tensor("x1", x, **size), tensor("x2", x, **size)]
    for asked in (
        {"parameters": {"binary_data_output": True}},
        {"outputs": [{"name": "y", "parameters": {"binary_data": True}}]},
    ):
        request = {"inputs": inputs, **asked}
        status, reply, binary = ask("POST", "/v2/models/add.add_common/infer", request, x.tobytes() * 2)
        assert status == 200 and reply["outputs"][0]["parameters"] == {"binary_data_size": x.nbytes}
        assert np.array_equal(np.frombuffer(binary, "f4").reshape(2, 2, 2), 2 * x)
    status, reply, binary = ask(
        "POST", "/v2/models/add.add_common/infer", {"inputs": inputs}, x.tobytes() * 2
    )
    assert binary == b"" and reply["outputs"][0]["data"][-1] == 14.0


def test_types_in_json(ask):
    for datatype, values in (
        ("BOOL", [True, False]),
        ("INT8", [-128, 127]),
        ("UINT8", [0, 255]),
        ("INT64", [-(2**63), 2**63 - 1]),
        ("UINT64", [0, 2**64 - 1]),
        ("FP16", [0.5, 2.0]),
        ("FP32", [0.1, 1]),
        ("FP64", [0.1, 1e300]),
        ("BYTES", ["a", "ä"][:1]),
    ):
        status, reply, _ = ask(
            "POST", "/v2/models/mirror.one/infer", {"inputs": [tensor("x", values, datatype)]}
        )
        assert status == 200, reply
        assert (reply["outputs"][0]["datatype"], reply["outputs"][0]["data"]) == (datatype, values)


def test_bytes_that_are_no_text_are_given_in_binary(ask):
    inputs = [tensor("s", ["ä"], "BYTES"), tensor("b", [0], "BYTES", parameters={"binary_data_size": 5})]
    path, element = "/v2/models/mirror.text/infer", b"\x01\0\0\0\xff"
    assert ask("POST", path, {"inputs": inputs}, element)[0] == 400
    outputs = [{"name": "s"}, {"name": "b", "parameters": {"binary_data": True}}]
    status, reply, binary = ask("POST", path, {"inputs": inputs, "outputs": outputs}, element)
    assert (status, reply["outputs"][0]["data"], binary) == (200, ["ä"], element)


@pytest.mark.parametrize(
    "change, text",
    [
        ({"inputs": 3}, "inputs"),
        ({"inputs": [3]}, "name"),
        ({"inputs": [{"name": "x1"}]}, "datatype"),
        ({"inputs": [tensor("x1", X)]}, "'x2' is missing"),
        ({"inputs": [tensor("x1", X), tensor("x2", X), tensor("x3", X)]}, "'x3'"),
        ({"inputs": [tensor("x1", X, shape="2")]}, "shape"),
        ({"inputs": [tensor("x1", X, shape=[1, 2, 3])]}, "takes 6"),
        ({"inputs": [tensor("x1", X, shape=[2**62, 4])]}, "overflows"),
        ({"inputs": [tensor("x1", X, shape=[-1, -4])]}, "negative"),
        ({"inputs": [tensor("x1", [["1"]], "FP32")]}, "no element of FP32"),
        ({"inputs": [tensor("x1", [True], "FP32")]}, "no element of FP32"),
        ({"inputs": [tensor("x1", [1.5], "INT32")]}, "no element of INT32"),
        ({"inputs": [tensor("x1", [2**31], "INT32")]}, "INT32 does not hold"),
        ({"inputs": [tensor("x1", [1e39], "FP32")]}, "FP32 does not hold"),
        ({"inputs": [tensor("x1", [None], "FP32")]}, "no element"),
        ({"inputs": [tensor("x1", [1], "FP8")]}, "unknown datatype"),
        ({"inputs": [tensor("x1", [0.0, 0.0], data=[[1.0], 2.0])]}, "mixes"),
        ({"inputs": [tensor("x1", X, data=3)]}, "'data'"),
        ({"inputs": [tensor("x1", X, parameters={"binary_data_size": 9})]}, "binary_data_size"),
        ({"inputs": [tensor("x1", X, parameters={"binary_data_size": -1})]}, "binary_data_size"),
        ({"inputs": [tensor("x1", X, parameters={"shared_memory_region": "r"})]}, "shared memory"),
        ({"outputs": [{"name": "z"}]}, "'z'"),
        ({"outputs": 1}, "outputs"),
        ({"parameters": []}, "parameters"),
        ({"parameters": {"priority": "x"}}, "priority"),
        ({"parameters": {"sequence_id": 4}}, "sequences"),
    ],
)
def test_what_is_wrong_with_a_request_is_named(ask, change, text):
    request = {"inputs": [tensor("x1", X), tensor("x2", X)], **change}
    status, reply, _ = ask("POST", "/v2/models/add.add_common/infer", request)
    assert status == 400 and text in reply["error"]


def test_a_header_length_that_does_not_fit(ask):
    for length in ("9999", "-1", "x"):
        headers = {"Inference-Header-Content-Length": length}
        assert ask("POST", "/v2/models/add.add_common/infer", {"inputs": []}, headers=headers)[0] == 400
    assert ask("POST", "/v2/models/add.add_common/infer", {"inputs": []}, b"rest")[0] == 400
    assert ask("POST", "/v2/models/add.add_common/infer")[0] == 400


def test_errors_of_the_dispatcher_become_statuses(ask, echo):
    request = {"inputs": [tensor("x", [1], "INT32")]}
    status, reply, _ = ask("POST", "/v2/models/mirror.fail/infer", request)
    assert status == 400 and "x is" in reply["error"]
    request["parameters"] = {"timeout": 100_000, "priority": 1}
    assert ask("POST", "/v2/models/mirror.hang/infer", request)[0] == 504
    for code, status in ((Code.STOPPING, 503), (Code.TOO_MANY, 429), (Code.SYSTEM_ERROR, 500)):
        echo.refusal = code
        assert ask("POST", "/v2/models/mirror.one/infer", request)[0] == status


def test_repository_and_statistics(ask, echo):
    status, models, _ = ask("POST", "/v2/repository/index", {"ready": True})
    assert status == 200
    assert {"name": "add.add_common", "version": "2", "state": "READY", "reason": ""} in models
    assert ask("POST", "/v2/repository/models/add/load")[0] == 200
    assert ask("POST", "/v2/repository/models/add/unload", {"parameters": {}})[0] == 200
    assert echo.loaded == [("load", "add"), ("unload", "add")]
    assert ask("POST", "/v2/repository/models/nobody/load")[0] == 404
    ask("POST", "/v2/models/add.add_common/infer", {"inputs": [tensor("x1", X), tensor("x2", X)]})
    (stats,) = ask("GET", "/v2/models/add.add_common/stats")[1]["model_stats"]
    assert stats["inference_count"] == 1 and stats["inference_stats"]["success"]["count"] == 1
    assert len(ask("GET", "/v2/models/stats")[1]["model_stats"]) > 5
