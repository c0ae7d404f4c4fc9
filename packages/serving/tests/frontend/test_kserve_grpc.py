"""KServe v2 over gRPC, and what generic gRPC tools ask for: health and reflection."""

from __future__ import annotations

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from mycelia_serving.errors import Code
from mycelia_serving.frontend import native, start_grpc
from mycelia_serving.wire.proto import inference_pb2 as pb


@pytest.fixture
def call(channel):
    def call(rpc, request=None, /, **fields):
        request = request or getattr(pb, rpc + "Request")(**fields)
        body = channel.unary_unary(f"/inference.GRPCInferenceService/{rpc}")(
            request.SerializeToString(), timeout=30
        )
        return getattr(pb, rpc + "Response").FromString(body)

    return call


def fails(call, rpc, code, text, /, **fields):
    with pytest.raises(grpc.RpcError) as caught:
        call(rpc, **fields)
    assert caught.value.code() == getattr(grpc.StatusCode, code)
    assert text in caught.value.details()


def tensor(name, values, datatype="FP32", **more):
    return pb.ModelInferRequest.InferInputTensor(name=name, datatype=datatype, shape=np.shape(values), **more)


def add_request(n=1, **more):
    x = np.arange(n * 4, dtype="f4").reshape(n, 2, 2)
    return {
        "model_name": "add.add_common",
        "inputs": [tensor("x1", x), tensor("x2", x)],
        "raw_input_contents": [x.tobytes(), x.tobytes()],
        **more,
    }


def test_the_server_and_its_models(call, echo):
    assert call("ServerLive").live and call("ServerReady").ready
    assert call("ServerMetadata").name == "mycelia-serving"
    assert "binary_tensor_data" in call("ServerMetadata").extensions
    assert call("ModelReady", name="add.add_common", version="2").ready
    metadata = call("ModelMetadata", name="add.add_common")
    assert list(metadata.versions) == ["1", "2"]
    assert [(i.name, i.datatype, list(i.shape)) for i in metadata.inputs] == [
        ("x1", "FP32", [-1, 2, 2]),
        ("x2", "FP32", [-1, 2, 2]),
    ]
    text = call("ModelMetadata", name="mirror.text")
    assert [(i.datatype, list(i.shape)) for i in text.inputs] == [("BYTES", [-1]), ("BYTES", [-1])]
    assert call("ModelMetadata", name="single").inputs[0].name == "x"
    echo.is_ready = False
    assert not call("ServerReady").ready


def test_unknown_models_and_versions(call):
    for name, version in (("no", ""), ("no.add", ""), ("add.no", ""), ("add.add_common", "7"), ("add", "")):
        assert not call("ModelReady", name=name, version=version).ready
        for rpc in ("ModelMetadata", "ModelStatistics"):
            fails(call, rpc, "NOT_FOUND", name, name=name, version=version)
    fails(call, "ModelReady", "INVALID_ARGUMENT", "version", name="add.add_common", version="x")
    fails(call, "ModelInfer", "NOT_FOUND", "nobody", model_name="nobody")


@pytest.mark.parametrize("n", [1, 3])
def test_inference_splits_a_batch_into_instances(call, echo, n):
    reply = call("ModelInfer", **add_request(n, id="seven"))
    assert len(echo.requests[-1].instances) == n
    assert (reply.id, reply.model_name, reply.model_version) == ("seven", "add.add_common", "2")
    (output,) = reply.outputs
    assert (output.name, output.datatype, list(output.shape)) == ("y", "FP32", [n, 2, 2])
    assert np.frombuffer(reply.raw_output_contents[0], "f4").tolist() == [2.0 * i for i in range(4 * n)]


def test_contents_of_every_type(call):
    values = {
        "BOOL": ("bool_contents", [True, False]),
        "INT8": ("int_contents", [-128, 127]),
        "INT16": ("int_contents", [-32768, 1]),
        "INT32": ("int_contents", [-(2**31), 1]),
        "INT64": ("int64_contents", [-(2**63), 1]),
        "UINT8": ("uint_contents", [0, 255]),
        "UINT16": ("uint_contents", [0, 65535]),
        "UINT32": ("uint_contents", [0, 2**32 - 1]),
        "UINT64": ("uint64_contents", [0, 2**64 - 1]),
        "FP32": ("fp32_contents", [0.5, float("inf")]),
        "FP64": ("fp64_contents", [0.1, 1e300]),
    }
    for datatype, (field, sent) in values.items():
        contents = pb.InferTensorContents(**{field: sent})
        reply = call(
            "ModelInfer", model_name="mirror.one", inputs=[tensor("x", sent, datatype, contents=contents)]
        )
        assert reply.outputs[0].datatype == datatype
        from mycelia_serving.frontend.kserve import NUMBERS

        assert np.frombuffer(reply.raw_output_contents[0], NUMBERS[datatype]).tolist() == sent


def test_strings_and_bytes(call):
    def raw(*elements):
        return b"".join(len(e).to_bytes(4, "little") + e for e in elements)

    s, b = ["ä", "b"], [b"\xff", b""]
    reply = call(
        "ModelInfer",
        model_name="mirror.text",
        inputs=[tensor("s", s, "BYTES"), tensor("b", b, "BYTES")],
        raw_input_contents=[raw("ä".encode(), b"b"), raw(*b)],
    )
    assert [list(o.shape) for o in reply.outputs] == [[2], [2]]
    assert list(reply.raw_output_contents) == [raw("ä".encode(), b"b"), raw(*b)]
    one = {"model_name": "mirror.text", "inputs": [tensor("s", ["x"], "BYTES"), tensor("b", ["x"], "BYTES")]}
    bad = raw(b"\xff"), raw(b"x")
    fails(call, "ModelInfer", "INVALID_ARGUMENT", "'s'", **one, raw_input_contents=bad)
    for cut in (raw(b"x")[:-1], raw(b"x") + b"y", b"", b"\xff\xff\xff\xffx"):
        fails(call, "ModelInfer", "INVALID_ARGUMENT", "b:", **one, raw_input_contents=[raw(b"x"), cut])


def test_an_input_without_batch_dimension_goes_to_every_instance(call, echo):
    x, k = np.arange(6, dtype="i4").reshape(2, 3), np.array([7, 8])
    reply = call(
        "ModelInfer",
        model_name="mirror.whole",
        inputs=[tensor("x", x, "INT32"), tensor("k", k, "INT64")],
        raw_input_contents=[x.tobytes(), k.tobytes()],
    )
    assert [i["k"].tolist() for i in echo.requests[-1].instances] == [[7, 8], [7, 8]]
    assert list(reply.outputs[1].shape) == [2, 2]


def test_what_is_wrong_with_a_request_is_named(call):
    x = np.zeros((1, 2, 2), "f4")

    def refused(text, inputs, raws=None, **more):
        raws = [np.zeros(i.shape, "f4").tobytes() for i in inputs] if raws is None else raws
        request = {"model_name": "add.add_common", "inputs": inputs, "raw_input_contents": raws, **more}
        fails(call, "ModelInfer", "INVALID_ARGUMENT", text, **request)

    both = [tensor("x1", x), tensor("x2", x)]
    refused("'x2' is missing", both[:1])
    refused("no input 'x3'", [*both, tensor("x3", x)])
    refused("'x1' is given twice", [both[0], both[0]])
    refused("x2: 3 bytes", both, [x.tobytes(), b"123"])
    refused("raw_input_contents for 2", both, [x.tobytes()])
    refused("'x1' is FP32, got INT32", [tensor("x1", x, "INT32"), both[1]])
    refused("unknown datatype 'FP8'", [tensor("x1", x, "FP8"), both[1]])
    refused("'x1': shape", [tensor("x1", np.zeros((1, 3)), "FP32"), both[1]])
    refused("batch", [tensor("x1", np.zeros((0, 2, 2), "f4")), both[1]])
    refused("a batch of 1, another input has 2", [tensor("x1", np.zeros((2, 2, 2))), both[1]])
    refused("no output 'z'", both, outputs=[pb.ModelInferRequest.InferRequestedOutputTensor(name="z")])
    huge = pb.ModelInferRequest.InferInputTensor(name="x1", datatype="FP32", shape=[2**62, 4])
    refused("overflows", [huge, both[1]], [b"", x.tobytes()])
    negative = pb.ModelInferRequest.InferInputTensor(name="x1", datatype="FP32", shape=[-1, 2, 2])
    refused("negative", [negative, both[1]], [b"", x.tobytes()])
    region = {"shared_memory_region": pb.InferParameter(string_param="/etc")}
    refused("shared memory", [tensor("x1", x, parameters=region), both[1]])
    contents = pb.InferTensorContents(int_contents=[1])
    fails(
        call,
        "ModelInfer",
        "INVALID_ARGUMENT",
        "fp32_contents",
        model_name="mirror.one",
        inputs=[tensor("x", [1.0], contents=contents)],
    )
    over = pb.InferTensorContents(int_contents=[128])
    request = {"model_name": "mirror.one", "inputs": [tensor("x", [1], "INT8", contents=over)]}
    fails(call, "ModelInfer", "INVALID_ARGUMENT", "INT8", **request)


def test_errors_of_the_dispatcher_become_statuses(call, echo):
    x = np.zeros(1, "f4")
    request = {"model_name": "mirror.fail", "inputs": [tensor("x", x)], "raw_input_contents": [x.tobytes()]}
    fails(call, "ModelInfer", "INVALID_ARGUMENT", "x is", **request)
    for code, status in (
        (Code.STOPPING, "UNAVAILABLE"),
        (Code.SERVABLE_UNAVAILABLE, "UNAVAILABLE"),
        (Code.TOO_MANY, "RESOURCE_EXHAUSTED"),
        (Code.SYSTEM_ERROR, "INTERNAL"),
    ):
        echo.refusal = code
        fails(call, "ModelInfer", status, "refused", **add_request())


def test_priority_and_timeout_of_a_request(call, echo):
    parameters = {
        "priority": pb.InferParameter(uint64_param=1),
        "timeout": pb.InferParameter(int64_param=200_000),
    }
    x = np.zeros(1, "f4")
    hang = {"model_name": "mirror.hang", "inputs": [tensor("x", x)], "raw_input_contents": [x.tobytes()]}
    fails(call, "ModelInfer", "DEADLINE_EXCEEDED", "deadline", **hang, parameters=parameters)
    assert echo.requests[-1].priority > 0


def test_repository(call, echo):
    models = {(m.name, m.version): m.state for m in call("RepositoryIndex").models}
    assert models["add.add_common", "2"] == "READY" and ("mirror.text", "1") in models
    call("RepositoryModelLoad", model_name="add")
    call("RepositoryModelUnload", model_name="add")
    assert echo.loaded == [("load", "add"), ("unload", "add")]
    fails(call, "RepositoryModelLoad", "NOT_FOUND", "nobody", model_name="nobody")


@pytest.mark.parametrize("native_front_end", [True, False])
def test_models_are_changed_only_by_those_who_may(echo, native_front_end):
    if native_front_end and native.missing():
        pytest.skip(native.missing())
    load = pb.RepositoryModelLoadRequest(model_name="add").SerializeToString()
    for options, code in (
        ({}, "PERMISSION_DENIED"),
        ({"repository": echo, "admin_token": "admin"}, None),
        ({"repository": echo, "admin_token": "other"}, "PERMISSION_DENIED"),
        ({"repository": echo, "token": "user", "admin_token": "admin"}, None),
        ({"repository": echo, "token": "user"}, "UNAUTHENTICATED"),
    ):
        server = start_grpc(echo, "127.0.0.1:0", native=native_front_end, **options)
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            for rpc in ("Load", "Unload"):
                ask = channel.unary_unary(f"/inference.GRPCInferenceService/RepositoryModel{rpc}")
                before, got = len(echo.loaded), None
                try:
                    ask(load, timeout=30, metadata=[("authorization", "Bearer admin")])
                except grpc.RpcError as error:
                    got = error.code().name
                assert (got, len(echo.loaded) - before) == (code, code is None), options
        server.stop()


def test_index_lists_what_could_be_loaded(call, echo, monkeypatch):
    monkeypatch.setattr(echo, "unloaded", lambda: [("add", 7)])
    listed = [(m.name, m.version, m.state, m.reason) for m in call("RepositoryIndex").models]
    assert ("add", "7", "UNAVAILABLE", "unloaded") in listed
    assert ("add", "7") not in [(m.name, m.version) for m in call("RepositoryIndex", ready=True).models]


def test_statistics(call):
    for _ in range(3):
        call("ModelInfer", **add_request(2))
    (stats,) = call("ModelStatistics", name="add.add_common", version="2").model_stats
    assert (stats.inference_count, stats.inference_stats.success.count) == (6, 3)
    assert stats.inference_stats.success.ns > 0 and stats.last_inference > 0
    assert len(call("ModelStatistics").model_stats) > 5


def test_malformed_messages(channel):
    for name in ("ModelInfer", "ModelReady", "RepositoryIndex"):
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(f"/inference.GRPCInferenceService/{name}")(b"\xff\xff", timeout=30)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_health_is_checked_and_watched(channel, echo):
    stub = health_pb2_grpc.HealthStub(channel)
    serving, not_serving = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
    for service in ("", "inference.GRPCInferenceService", "mindspore.serving.proto.MSService"):
        assert stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=30).status == serving
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(health_pb2.HealthCheckRequest(service="no"), timeout=30)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=60)
    assert next(watch).status == serving
    echo.is_ready = False
    assert next(watch).status == not_serving
    assert stub.Check(health_pb2.HealthCheckRequest(), timeout=30).status == not_serving
    watch.cancel()


def test_reflection_tells_the_services_and_their_messages(channel):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    ask = reflection_pb2.ServerReflectionRequest
    answers = list(
        stub.ServerReflectionInfo(
            iter(
                (
                    ask(list_services=""),
                    ask(file_containing_symbol="mindspore.serving.proto.MSService"),
                    ask(file_containing_symbol="inference.ModelInferRequest"),
                )
            ),
            timeout=30,
        )
    )
    names = {s.name for s in answers[0].list_services_response.service}
    assert {"mindspore.serving.proto.MSService", "inference.GRPCInferenceService"} <= names
    assert all(a.file_descriptor_response.file_descriptor_proto for a in answers[1:])
