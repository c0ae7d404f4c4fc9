"""KServe v2 means the same over gRPC and over REST."""

from __future__ import annotations

import http.client
import json

import grpc
import numpy as np
import pytest
from google.protobuf.json_format import MessageToDict

from mycelia_serving.cluster.node import Node
from mycelia_serving.frontend import start_grpc, start_rest
from mycelia_serving.frontend.kserve import Repository
from mycelia_serving.frontend.status import STATUS
from mycelia_serving.wire.proto import inference_pb2 as pb

HTTP = {"INVALID_ARGUMENT": 400, "NOT_FOUND": 404, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504}
SERVICE = pb.ModelInferRequest.DESCRIPTOR.file.services_by_name["GRPCInferenceService"]


@pytest.fixture
def wires(echo):
    """`grpc(call, **fields)` and `rest(method, path, document)`: fields of the answer, or an HTTP status."""
    ports = start_grpc(echo, "127.0.0.1:0", repository=echo), start_rest(echo, "127.0.0.1:0", repository=echo)
    channel = grpc.insecure_channel(f"127.0.0.1:{ports[0].port}")
    connection = http.client.HTTPConnection("127.0.0.1", ports[1].port, timeout=60)

    def by_grpc(call: str, **fields):
        request, response = getattr(pb, f"{call}Request"), getattr(pb, f"{call}Response")
        ask = channel.unary_unary(
            f"/{SERVICE.full_name}/{call}", request.SerializeToString, response.FromString
        )
        try:
            answer = ask(request(**fields), timeout=30)
        except grpc.RpcError as error:
            return HTTP[error.code().name]
        return MessageToDict(
            answer, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )

    def by_rest(method: str, path: str, document=None):
        connection.request(method, path, None if document is None else json.dumps(document))
        response = connection.getresponse()
        told = json.loads(response.read())
        return told if response.status == 200 else response.status

    yield by_grpc, by_rest
    channel.close()
    connection.close()
    for port in ports:
        port.stop(0)


def plain(told):
    """Without what only one of the wires has: 64 bits are text in JSON of messages, times go on."""
    if isinstance(told, dict):
        skipped = ("parameters", "last_inference", "ns", "compute_input", "compute_output")
        return {key: plain(value) for key, value in told.items() if key not in skipped}
    if isinstance(told, list):
        return [plain(value) for value in told]
    return str(told) if type(told) is int else told


def test_every_call_of_the_protocol_has_its_path(echo):
    from mycelia_serving.frontend.service import Service

    assert {f"/{SERVICE.full_name}/{method.name}" for method in SERVICE.methods} <= set(Service(echo).paths)
    assert "NOT_FOUND" in STATUS


def test_what_is_told_of_server_and_models_is_the_same(wires):
    by_grpc, by_rest = wires
    assert plain(by_grpc("ServerMetadata")) == plain(by_rest("GET", "/v2"))
    models = by_grpc("RepositoryIndex")["models"]
    assert models == by_rest("POST", "/v2/repository/index") and len(models) > 3
    assert plain(by_grpc("ModelStatistics")) == plain(by_rest("GET", "/v2/models/stats"))
    names = [(m["name"], m["version"]) for m in models] + [("add.nothing", ""), ("add.add_common", "9")]
    for name, version in [*names, ("add.add_common", "x"), ("add", "")]:
        path = f"/v2/models/{name}/versions/{version}" if version else f"/v2/models/{name}"
        fields = {"name": name, "version": version}
        assert plain(by_grpc("ModelMetadata", **fields)) == plain(by_rest("GET", path)), path
        assert plain(by_grpc("ModelStatistics", **fields)) == plain(by_rest("GET", f"{path}/stats")), path
        ready, told = by_grpc("ModelReady", **fields), by_rest("GET", f"{path}/ready")
        if ready in (400, {"ready": False}):
            assert told == (400 if ready == 400 else 404), path
        else:
            assert told == {"name": name, **ready}


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"wanted": ["y"]},
        {"wanted": ["z"]},
        {"model": "add.nothing"},
        {"version": "9"},
        {"parameters": {"priority": 3, "timeout": 60_000_000}},
        {"parameters": {"priority": "high"}},
        {"parameters": {"sequence_id": 7}},
        {"inputs": ["x1"]},
        {"inputs": ["x1", "x2", "x3"]},
        {"tensor": {"shared_memory_region": "r"}},
        {"output": {"classification": 3}},
    ],
    ids=lambda case: "-".join(f"{key}={value}" for key, value in case.items()) or "plain",
)
def test_inference_is_the_same(wires, echo, case):
    by_grpc, by_rest = wires
    model, version = case.get("model", "add.add_common"), case.get("version", "")
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    inputs, wanted = case.get("inputs", ["x1", "x2"]), case.get("wanted", ["y"] if "output" in case else [])
    path = f"/v2/models/{model}/versions/{version}/infer" if version else f"/v2/models/{model}/infer"
    document = {
        "id": "7",
        "inputs": [
            {"name": name, "datatype": "FP32", "shape": [2, 2, 2], "data": x.ravel().tolist()}
            | ({"parameters": case["tensor"]} if "tensor" in case else {})
            for name in inputs
        ],
        "outputs": [
            {"name": name} | ({"parameters": case["output"]} if "output" in case else {}) for name in wanted
        ],
        "parameters": case.get("parameters", {}),
    }
    told = by_rest("POST", path, document)
    rest = echo.requests[-1] if echo.requests else None

    def parameter(value):
        return pb.InferParameter(**{"string_param" if isinstance(value, str) else "int64_param": value})

    def parameters(of: dict) -> dict:
        return {name: parameter(value) for name, value in of.items()}

    tensor = pb.ModelInferRequest.InferInputTensor
    output = pb.ModelInferRequest.InferRequestedOutputTensor
    answer = by_grpc(
        "ModelInfer",
        model_name=model,
        model_version=version,
        id="7",
        inputs=[
            tensor(
                name=name,
                datatype="FP32",
                shape=[2, 2, 2],
                contents=pb.InferTensorContents(fp32_contents=x.ravel()),
                parameters=parameters(case.get("tensor", {})),
            )
            for name in inputs
        ],
        outputs=[output(name=name, parameters=parameters(case.get("output", {}))) for name in wanted],
        parameters=parameters(case.get("parameters", {})),
    )
    if isinstance(told, int):
        assert answer == told and not echo.requests
        return
    assert (answer["model_name"], answer["model_version"], answer["id"]) == (
        told["model_name"],
        told["model_version"],
        told["id"],
    )
    assert [o["name"] for o in answer["outputs"]] == [o["name"] for o in told["outputs"]]
    other = echo.requests[-1]
    assert other is not rest and (other.priority, other.version, len(other.instances)) == (
        rest.priority,
        rest.version,
        len(rest.instances),
    )
    assert (rest.deadline is not None) == ("timeout" in case.get("parameters", {}))


def test_a_server_is_a_repository():
    assert Repository(Node()).unloaded() == []
