"""A fuzzer: requests that break rules, sent to a running server. It needs hypothesis.

    from mycelia_serving.testing import Target, fuzz
    outcomes = fuzz(Target(grpc_port, rest_port, "add", "add_common", ("x1", "x2")), 1000)

Requests go over gRPC and REST, in MindSpore's protocol and in KServe's. Most are refused, some happen to be
right; an answer that says the fault lies inside of the server, no answer, or one that is no message is an
AssertionError with the smallest request that has it.
"""

from __future__ import annotations

import json
import socket
from collections import Counter
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from mycelia_serving.wire.proto import inference_pb2, serving_pb2

PREDICT = "/mindspore.serving.proto.MSService/Predict"
INFER = "/inference.GRPCInferenceService/ModelInfer"
ANSWER_S = 30.0  # for one request, on a busy machine
_INSIDE = {"INTERNAL", "UNKNOWN", "DATA_LOSS"}  # gRPC statuses that no request should bring about
_SYSTEM_ERROR = 3

_numbers = st.one_of(
    st.integers(-3, 40),
    st.sampled_from([2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63), -1]),
)
_dims = st.one_of(
    st.sampled_from([[2, 2], [1, 28, 28], [4], [], [2**32, 2**32], [2**62, 4], [-2, -2], [0, 3], [1] * 65]),
    st.lists(_numbers, max_size=5),
)
_data = st.one_of(st.sampled_from([bytes(16), bytes(3136), b"\xff" * 16, b""]), st.binary(max_size=64))
_TYPES = ("FP32", "FP16", "INT64", "BOOL", "BYTES", "UINT8", "fp32", "", "COMPLEX64")


@dataclass(frozen=True)
class Target:
    """A running server on this machine, and a method with the names of its inputs."""

    grpc_port: int
    rest_port: int
    servable: str
    method: str
    inputs: tuple[str, ...]


def _names(right: str) -> st.SearchStrategy[str]:
    """Mostly the right name."""
    wrong = st.one_of(st.text(max_size=12), st.sampled_from(["x" * 5000, "..", "a/b", "\0", "é", "version"]))
    return st.one_of(st.just(right), st.just(right), st.just(right), wrong)


# ---- gRPC --------------------------------------------------------------------------------------------------


@st.composite
def _tensors(draw):
    tensor = serving_pb2.Tensor(dtype=draw(st.one_of(st.just(11), st.integers(-1, 20), st.just(99))))
    tensor.shape.dims.extend(max(-(2**63), min(n, 2**63 - 1)) for n in draw(_dims))
    kind = draw(st.integers(0, 5))
    if kind < 3:
        tensor.data = draw(_data)
    elif kind == 3:
        tensor.bytes_val.extend(draw(st.lists(st.binary(max_size=8), max_size=3)))
    elif kind == 4:
        tensor.shm_data.memory_key = draw(st.text(max_size=8))
        tensor.shm_data.data_size = draw(st.integers(0, 2**64 - 1))
    return tensor


@st.composite
def predict_requests(draw, target: Target) -> bytes:
    """`PredictRequest`s, some with damaged bytes."""
    request = serving_pb2.PredictRequest()
    request.servable_spec.name = draw(_names(target.servable))
    request.servable_spec.method_name = draw(_names(target.method))
    request.servable_spec.version_number = draw(st.sampled_from([0, 0, 0, 1, 7, 2**64 - 1]))
    for field in draw(st.sampled_from([(2,), (2,), (3,), (2, 3), ()])):
        instances = request.instances if field == 2 else request.instances_of_1_1
        for _ in range(draw(st.integers(0, 3))):
            instance = instances.add()
            for name in target.inputs:
                if draw(st.integers(0, 5)):
                    instance.items[draw(_names(name))].CopyFrom(draw(_tensors()))
    return draw(_damaged(request.SerializeToString()))


@st.composite
def infer_requests(draw, target: Target) -> bytes:
    """KServe's `ModelInferRequest`s, some with damaged bytes."""
    request = inference_pb2.ModelInferRequest(
        model_name=draw(_names(f"{target.servable}.{target.method}")),
        model_version=draw(st.sampled_from(["", "", "1", "7", "-1", "x", "9" * 40])),
        id=draw(st.text(max_size=5)),
    )
    raw = draw(st.booleans())
    for name in target.inputs:
        if not draw(st.integers(0, 5)):
            continue
        tensor = request.inputs.add(name=draw(_names(name)), datatype=draw(st.sampled_from(_TYPES)))
        tensor.shape.extend(max(-(2**63), min(n, 2**63 - 1)) for n in draw(_dims))
        if raw or draw(st.integers(0, 4)) == 0:
            request.raw_input_contents.append(draw(_data))
        if not raw or draw(st.integers(0, 4)) == 0:
            tensor.contents.fp32_contents.extend(draw(st.lists(st.floats(width=32), max_size=9)))
            tensor.contents.bytes_contents.extend(draw(st.lists(st.binary(max_size=5), max_size=2)))
    return draw(_damaged(request.SerializeToString()))


@st.composite
def _damaged(draw, body: bytes) -> bytes:
    """Mostly as it is; else cut off, with a changed byte, with more behind it, or something else."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.binary(max_size=200))
    if kind == 1 and body:
        return body[: draw(st.integers(0, len(body) - 1))]
    if kind == 2 and body:
        at = draw(st.integers(0, len(body) - 1))
        return body[:at] + bytes((draw(st.integers(0, 255)),)) + body[at + 1 :]
    if kind == 3:
        return body + draw(st.binary(max_size=20))
    return body


# ---- REST --------------------------------------------------------------------------------------------------

_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    st.text(max_size=5),
    st.fixed_dictionaries({"b64": st.text(max_size=8)}),
    st.fixed_dictionaries(
        {"b64": st.sampled_from(["AAAAAAAAAAAAAAAAAAAAAA==", "AAA", "", "!!!!"])},
        optional={"type": st.sampled_from(["fp32", "str", "int8", "complex", 3]), "shape": _dims},
    ),
)
_values = st.recursive(
    st.one_of(_leaves, st.just([[1.5, 2.5], [3.5, 4.5]])),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


@st.composite
def rest_bodies(draw, target: Target) -> bytes:
    """Bodies for `/model/...`."""
    instance = st.dictionaries(st.sampled_from([*target.inputs, "other", ""]), _values, max_size=3)
    document = draw(
        st.one_of(
            st.fixed_dictionaries(
                {"instances": st.one_of(st.lists(instance, max_size=3), instance, _values)}
            ),
            st.dictionaries(st.text(max_size=9), _values, max_size=2),
            _values,
        )
    )
    return draw(_damaged(json.dumps(document).encode()))


@st.composite
def infer_bodies(draw, target: Target) -> bytes:
    """Bodies for `/v2/models/.../infer`."""
    tensors = [
        draw(
            st.fixed_dictionaries(
                {
                    "name": _names(name),
                    "shape": st.one_of(_dims, _values),
                    "datatype": st.sampled_from([*_TYPES, 7, None]),
                },
                optional={
                    "data": _values,
                    "parameters": st.fixed_dictionaries({"binary_data_size": _numbers}),
                },
            )
        )
        for name in target.inputs
    ]
    document = {"inputs": draw(st.one_of(st.just(tensors), st.just(tensors[:1]), _values))}
    if draw(st.booleans()):
        document["outputs"] = draw(
            st.one_of(_values, st.lists(st.fixed_dictionaries({"name": st.text(max_size=3)})))
        )
    return draw(_damaged(json.dumps(document).encode()))


@st.composite
def http_requests(draw, target: Target) -> bytes:
    """Whole HTTP requests."""
    which = draw(st.integers(0, 9))
    right = f"/model/{target.servable}:{target.method}"
    body, path = draw(rest_bodies(target)), right
    if which < 4:
        path = f"/v2/models/{target.servable}.{target.method}/infer"
        body = draw(infer_bodies(target))
    elif which == 9:
        version = draw(st.sampled_from(["1", "0", "-1", "99999999999", "x", ""]))
        path = draw(
            st.sampled_from(
                [f"/model/{target.servable}/version/{version}:{target.method}", "/model/", "/", "//"]
            )
        )
        path += draw(st.sampled_from(["", "?a=b", ":", "/..", "%00", "%"]))
    verb = draw(st.sampled_from(["POST"] * 8 + ["GET", "PUT", "HEAD", "DELETE", "BREW"]))
    length = draw(st.sampled_from([len(body)] * 8 + [0, len(body) - 1]))
    more = draw(
        st.sampled_from(
            [""] * 6
            + ["Content-Type: text/plain\r\n", "Inference-Header-Content-Length: 10\r\n", "Accept: */*\r\n"]
            + ["Inference-Header-Content-Length: -1\r\n", "Inference-Header-Content-Length: 99999\r\n"]
            + ["Content-Encoding: gzip\r\n", f"X: {'y' * 3000}\r\n", "Expect: 100-continue\r\n"]
        )
    )
    length = max(length, 0)
    head = f"{verb} {path} HTTP/1.1\r\nHost: fuzz\r\nConnection: close\r\n{more}Content-Length: {length}\r\n"
    return f"{head}\r\n".encode() + body[:length]


# ---- sending -----------------------------------------------------------------------------------------------


class _Server:
    """Sends requests and judges the answers."""

    def __init__(self, target: Target) -> None:
        import grpc

        self._grpc = grpc
        self._port = target.rest_port
        self._channel = grpc.insecure_channel(f"127.0.0.1:{target.grpc_port}")

    def close(self) -> None:
        self._channel.close()

    def call(self, path: str, body: bytes, reply_type) -> str:
        """The outcome's name."""
        try:
            answer = self._channel.unary_unary(path)(body, timeout=ANSWER_S)
        except self._grpc.RpcError as error:
            status = error.code().name
            assert status not in _INSIDE, f"{status}: {error.details()}"
            assert status not in ("DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED"), error.details()
            return f"gRPC {status}"
        reply = reply_type.FromString(answer)
        codes = {error.error_code for error in getattr(reply, "error_msg", ())} - {0}
        assert _SYSTEM_ERROR not in codes, reply.error_msg
        return f"gRPC error {min(codes)}" if codes else "gRPC answered"

    def exchange(self, request: bytes) -> str:
        """The outcome's name."""
        with socket.create_connection(("127.0.0.1", self._port), timeout=ANSWER_S) as connection:
            connection.sendall(request)
            answer = b""
            while part := connection.recv(1 << 16):
                answer += part
        answer = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        head, found, body = answer.partition(b"\r\n\r\n")
        assert found, f"no answer: {answer[:200]!r}"
        status = int(head.split(b" ", 2)[1])
        assert status < 500, f"{status}: {body[:500]!r}"
        if b"application/json" in head.lower() and not request.startswith(b"HEAD"):
            document = json.loads(body)
            assert status < 400 or {"error_msg", "error"} & set(document), document
        return f"REST {status}"


def fuzz(target: Target, count: int, seed_number: int = 0) -> Counter[str]:
    """Send `count` requests; how often each outcome was. Errors: AssertionError."""
    server = _Server(target)
    outcomes: Counter[str] = Counter()
    requests = st.one_of(
        st.tuples(st.just(PREDICT), predict_requests(target)),
        st.tuples(st.just(PREDICT), predict_requests(target)),
        st.tuples(st.just(INFER), infer_requests(target)),
        st.tuples(st.just(""), http_requests(target)),
        st.tuples(st.just(""), http_requests(target)),
    )
    replies = {PREDICT: serving_pb2.PredictReply, INFER: inference_pb2.ModelInferResponse}

    @seed(seed_number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(requests)
    def send(request) -> None:
        path, body = request
        outcomes[server.call(path, body, replies[path]) if path else server.exchange(body)] += 1

    try:
        send()
    finally:
        server.close()
    return outcomes
