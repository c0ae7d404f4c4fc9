"""Large requests are read beside the others, which are answered meanwhile."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import zlib

import grpc
import numpy as np
import pytest

from mycelia_serving.frontend import asgi, json_values, kserve_grpc, large, native, start_grpc, start_rest
from mycelia_serving.frontend.large import Bomb, unpack
from mycelia_serving.wire.predict import parse_reply, request_bytes
from mycelia_serving.wire.proto import inference_pb2 as pb

PREDICT = "/mindspore.serving.proto.MSService/Predict"
INFER = "/inference.GRPCInferenceService/ModelInfer"
SMALL = 20  # requests that are answered while a large one is read
WAIT = 60


class Gate:
    """Holds a function that reads a large request until `opened`."""

    def __init__(self, monkeypatch, module, name: str) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        function = getattr(module, name)

        def held(*arguments, **options):
            self.reached.set()
            assert self.opened.wait(WAIT)
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, held)


@pytest.fixture
def aside():
    """aside(function, *arguments) -> the thread that calls it, and a list that gets its result"""
    threads = []

    def start(function, *arguments):
        results = []
        thread = threading.Thread(target=lambda: results.append(function(*arguments)))
        threads.append(thread)
        thread.start()
        return thread, results

    yield start
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive()


def post(port: int, path: str, body: bytes, headers=()) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    try:
        connection.request("POST", path, body, dict(headers))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def numbers(count: int) -> bytes:
    return json.dumps({"instances": [{"x": [0.5] * count}]}).encode()


@pytest.mark.parametrize("packed", [False, True])
def test_small_requests_of_rest_are_answered_while_a_large_one_is_read(echo, monkeypatch, aside, packed):
    gate = Gate(monkeypatch, asgi if packed else json_values, "unpack" if packed else "_load_large")
    server = start_rest(echo, "127.0.0.1:0", max_msg_mb_size=8)
    try:
        body, headers = numbers(200_000), {}
        if packed:
            body, headers = gzip.compress(body + b" " * 5_000_000), {"Content-Encoding": "gzip"}
        thread, results = aside(post, server.port, "/model/mirror:one", body, headers)
        assert gate.reached.wait(WAIT)
        for _ in range(SMALL):
            assert post(server.port, "/model/mirror:one", numbers(3))[0] == 200
        assert not results
        gate.opened.set()
        thread.join(WAIT)
        status, reply = results[0]
        assert status == 200 and reply["instances"][0]["x"] == [0.5] * 200_000
    finally:
        gate.opened.set()
        server.stop()


@pytest.mark.parametrize(("front_end", "packed"), [("native", False), ("native", True), ("grpcio", False)])
def test_small_calls_are_answered_while_a_large_one_is_read(echo, monkeypatch, aside, front_end, packed):
    if front_end == "native" and native.missing():
        pytest.skip(native.missing())
    gate = Gate(monkeypatch, native if packed else kserve_grpc, "unpack" if packed else "_typed_tensor")
    server = start_grpc(echo, "127.0.0.1:0", native=front_end == "native")
    x = np.arange(300_000, dtype="f4")
    tensor = pb.ModelInferRequest.InferInputTensor(name="x", datatype="FP32", shape=x.shape)
    tensor.contents.fp32_contents.extend(x.tolist())
    request = pb.ModelInferRequest(model_name="mirror.one", inputs=[tensor]).SerializeToString()
    compression = grpc.Compression.Gzip if packed else grpc.Compression.NoCompression
    small = request_bytes("mirror", "one", 0, [{"x": x[:3]}])
    try:
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            call = channel.unary_unary(INFER)
            thread, results = aside(lambda: call(request, timeout=WAIT, compression=compression))
            assert gate.reached.wait(WAIT)
            for _ in range(SMALL):
                (result,) = parse_reply(channel.unary_unary(PREDICT)(small, timeout=WAIT)).results
                assert np.array_equal(result["x"], x[:3])
            assert not results
            gate.opened.set()
            thread.join(WAIT)
            reply = pb.ModelInferResponse.FromString(results[0])
            assert reply.raw_output_contents[0] == x.tobytes()
    finally:
        gate.opened.set()
        server.stop()


def test_python_goes_on_while_arrays_are_read():
    """The interpreter's lock is free: another thread gets it often, not only before and after."""
    body, over, turns = numbers(4_000_000), threading.Event(), 0

    def read() -> None:
        json_values.parse_instances(body)
        over.set()

    thread = threading.Thread(target=read)
    thread.start()
    while not over.wait(0.0005):
        turns += 1
    thread.join()
    assert turns > 20


def test_a_large_call_that_is_cancelled_is_not_answered(echo, monkeypatch):
    if native.missing():
        pytest.skip(native.missing())
    gate = Gate(monkeypatch, native, "unpack")
    server = start_grpc(echo, "127.0.0.1:0", native=True)
    body = request_bytes("mirror", "hang", 0, [{"x": np.random.default_rng(0).random(5000)}])
    small = request_bytes("mirror", "one", 0, [{"x": np.int64(1)}])
    try:
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            call = channel.unary_unary(PREDICT)
            running = call.future(body, timeout=WAIT, compression=grpc.Compression.Gzip)
            assert gate.reached.wait(WAIT)
            running.cancel()
            while server._reading:
                call(small, timeout=WAIT)
            gate.opened.set()
            while not echo.cancelled:
                call(small, timeout=WAIT)
        assert [request.method for request in echo.cancelled] == ["hang"]
    finally:
        gate.opened.set()
        server.stop()


def packed(data: bytes, bits: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("bits", [31, 15])
def test_unpacking_in_pieces(bits):
    rng = np.random.default_rng(1)
    for data in (b"", b"a", rng.bytes(300_000), bytes(5 << 20), rng.bytes(99) * 50_000, bytes(1 << 20)):
        small = packed(data, bits)
        assert unpack(small, bits, len(data)) == data
        if data:
            with pytest.raises(Bomb):
                unpack(small, bits, len(data) - 1)
        for wrong in (small[:-1], small[: len(small) // 2], b"x" + small):
            with pytest.raises(zlib.error):
                unpack(wrong, bits, 10 << 20)


def test_a_bomb_is_not_unpacked(monkeypatch):
    made = []

    class Counting:
        def __init__(self, bits: int, make=zlib.decompressobj) -> None:
            self._unpacker = make(bits)

        def decompress(self, data, most):
            part = self._unpacker.decompress(data, most)
            made.append(len(part))
            return part

        def __getattr__(self, name):
            return getattr(self._unpacker, name)

    bomb = packed(bytes(300 << 20), 15)
    monkeypatch.setattr(large.zlib, "decompressobj", Counting)
    with pytest.raises(Bomb):
        unpack(bomb, 15, 4 << 20)
    assert sum(made) <= 6 << 20


@pytest.mark.parametrize("front_end", ["native", "grpcio"])
def test_bombs_are_refused_by_both_front_ends(echo, front_end):
    if front_end == "native" and native.missing():
        pytest.skip(native.missing())
    server = start_grpc(echo, "127.0.0.1:0", 1, native=front_end == "native")
    body = request_bytes("mirror", "one", 0, [{"x": np.zeros(60 << 20, "u1")}])
    try:
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(f"127.0.0.1:{server.port}", options) as channel:
            call = channel.unary_unary(PREDICT)
            with pytest.raises(grpc.RpcError) as caught:
                call(body, timeout=WAIT, compression=grpc.Compression.Gzip)
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert call(request_bytes("mirror", "one", 0, [{"x": np.int64(1)}]), timeout=WAIT)
    finally:
        server.stop()


def test_requests_of_too_many_instances_are_refused(echo):
    server = start_grpc(echo, "127.0.0.1:0")
    try:
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(PREDICT)(b"\x12\0" * 1_000_000, timeout=WAIT)
            assert "100000 instances" in caught.value.details()
            x = np.zeros((100_001, 3), "f4")
            tensor = pb.ModelInferRequest.InferInputTensor(name="x", datatype="FP32", shape=x.shape)
            request = pb.ModelInferRequest(
                model_name="single", inputs=[tensor], raw_input_contents=[x.tobytes()]
            )
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(INFER)(request.SerializeToString(), timeout=WAIT)
            assert "limit is 100000" in caught.value.details()
        assert not echo.requests
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("datatype", "data", "status"),
    [
        ("FP32", [0.5] * 60_000, 200),
        ("FP32", [1] * 60_000, 200),
        ("FP32", [1, 0.5] * 30_000, 200),
        ("FP64", [1e300] * 60_000, 200),
        ("FP32", [1e300] * 60_000, 400),
        ("INT64", [2**62] * 60_000, 200),
        ("UINT64", [2**63 + 1] * 60_000, 200),
        ("INT64", [2**63] * 60_000, 400),
        ("FP64", [2**70] * 60_000, 200),
        ("UINT64", [2**70] * 60_000, 400),
        ("INT8", [127] * 60_000, 200),
        ("INT8", [128] * 60_000, 400),
        ("BOOL", [True] * 60_000, 200),
        ("BOOL", [1] * 60_000, 400),
        ("INT32", [True] * 60_000, 400),
        ("INT32", [1.0] * 60_000, 400),
        ("BYTES", [1] * 60_000, 400),
        ("FP32", [[0.5] * 30_000, [0.5] * 29_999, [0.5]], 400),
        ("FP32", [[0.5] * 30_000, [0.5] * 30_000], 200),
        ("FP32", [0.5] * 59_999, 400),
    ],
)
@pytest.mark.parametrize("size", [1 << 30, 0], ids=["small", "large"])
def test_tensors_of_kserve_in_large_bodies_are_those_of_small_ones(
    echo, monkeypatch, datatype, data, status, size
):
    monkeypatch.setattr(json_values, "LARGE", size)
    server = start_rest(echo, "127.0.0.1:0")
    try:
        tensor = {"name": "x", "datatype": datatype, "shape": [60_000], "data": data}
        got, reply = post(
            server.port, "/v2/models/mirror.one/infer", json.dumps({"inputs": [tensor]}).encode()
        )
        assert got == status, reply
        if status == 200:
            assert reply["outputs"][0]["data"] == np.ravel(data).tolist()
            assert reply["outputs"][0]["datatype"] == datatype
    finally:
        server.stop()
