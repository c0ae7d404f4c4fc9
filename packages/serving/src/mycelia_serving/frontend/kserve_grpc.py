"""KServe's protocol v2 on gRPC: messages of `inference.proto` to and from the calls of `kserve_calls`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np
from google.protobuf.json_format import ParseDict
from google.protobuf.message import DecodeError

from mycelia_serving.errors import ServingError, clip
from mycelia_serving.frontend.kserve import NUMBERS, Model, Tensor, element_count, join_bytes, raw_tensor
from mycelia_serving.frontend.kserve_calls import Inference, InferenceCalls, check_parameters
from mycelia_serving.frontend.status import OK, STATUS
from mycelia_serving.request import Call, Reply
from mycelia_serving.wire.predict import Malformed
from mycelia_serving.wire.proto import inference_pb2 as pb
from mycelia_serving.wire.tensors import invalid

_PREFIX = "/inference.GRPCInferenceService/"
_CONTENTS = {  # datatype -> field of InferTensorContents; FP16 has none
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
_WIDE = {  # field -> what its elements are
    "bool_contents": "?",
    "int_contents": "i4",
    "int64_contents": "i8",
    "uint_contents": "u4",
    "uint64_contents": "u8",
    "fp32_contents": "f4",
    "fp64_contents": "f8",
}
_PIECE = 1 << 16  # elements


class InferenceService:
    """The calls by path, for `service.Service`."""

    def __init__(self, calls: InferenceCalls) -> None:
        self._calls = calls
        self.paths: dict[str, Callable] = {
            _PREFIX + name: _at_once(name, call) for name, call in calls.at_once.items()
        }
        self.paths[_PREFIX + "ModelInfer"] = self._infer
        for action in ("Load", "Unload"):
            self.paths[f"{_PREFIX}RepositoryModel{action}"] = functools.partial(self._change, action)

    def _change(
        self, action: str, body: bytes, metadata: Mapping, done: Callable, deadline: float | None
    ) -> None:
        request, response = _messages(f"RepositoryModel{action}")

        def tell(error: ServingError | None) -> None:
            if error is None:
                done(OK, response().SerializeToString())
            else:
                done(STATUS[error.grpc_status], error.message)

        self._calls.change(action.lower(), _read(request, body).model_name, metadata, tell)

    def _infer(
        self, body: bytes, metadata: Mapping[str, str], done: Callable, deadline: float | None
    ) -> Call | None:
        message = _read(pb.ModelInferRequest, body)
        wire = _GrpcCall(message, len(body), done)
        return self._calls.infer(message.model_name, message.model_version, wire, metadata, deadline)


class _GrpcCall:
    """A `kserve_calls.Wire`: ModelInferRequest and ModelInferResponse."""

    protocol = "v2-grpc"
    __slots__ = ("_done", "_message", "_payload", "_status", "received")

    def __init__(self, message: pb.ModelInferRequest, received: int, done: Callable) -> None:
        self._message, self.received, self._done = message, received, done
        self._status, self._payload = OK, b""

    def read(self) -> Inference:
        message = self._message
        for tensor in (*message.inputs, *message.outputs):
            if tensor.parameters:
                check_parameters(tensor.name, _plain(tensor.parameters))
        parameters = _plain(message.parameters) if message.parameters else {}
        return Inference(_tensors(message), [output.name for output in message.outputs], parameters)

    def write(self, model: Model, reply: Reply, outputs: list[Tensor]) -> None:
        answer = pb.ModelInferResponse(
            model_name=self._message.model_name,
            model_version=str(reply.version or model.servable.version),
            id=self._message.id,
            outputs=[
                pb.ModelInferResponse.InferOutputTensor(name=o.name, datatype=o.datatype, shape=o.shape)
                for o in outputs
            ],
            raw_output_contents=[
                join_bytes(o.data) if o.datatype == "BYTES" else o.data.tobytes() for o in outputs
            ],
        )
        self._payload = answer.SerializeToString()

    def refuse(self, error: ServingError) -> None:
        self._status, self._payload = STATUS[error.grpc_status], error.message

    def size(self) -> int:
        return len(self._payload) if self._status == OK else 0

    def send(self) -> None:
        self._done(self._status, self._payload)


def _messages(name: str) -> tuple:
    """The classes of a method's messages."""
    return getattr(pb, f"{name}Request"), getattr(pb, f"{name}Response")


def _read(kind, body: bytes):
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise Malformed(f"not a {kind.DESCRIPTOR.name}: {error}") from None


def _at_once(name: str, call: Callable[..., dict]) -> Callable:
    """The handler of a call whose answer is there at once: fields in, fields out."""
    request, response = _messages(name)
    fields = [field.name for field in request.DESCRIPTOR.fields]

    def handle(body: bytes, metadata: Mapping, done: Callable, deadline: float | None) -> None:
        message = _read(request, body)
        told = call(**{field: getattr(message, field) for field in fields})
        done(OK, ParseDict(told, response(), ignore_unknown_fields=True).SerializeToString())

    return handle


def _plain(parameters) -> dict[str, object]:
    """Parameters by name, with the values that they hold."""
    return {
        name: getattr(value, value.WhichOneof("parameter_choice") or "bool_param")
        for name, value in parameters.items()
    }


def _tensors(message: pb.ModelInferRequest) -> list[Tensor]:
    raws = message.raw_input_contents
    if raws and len(raws) != len(message.inputs):
        raise invalid(f"{len(raws)} raw_input_contents for {len(message.inputs)} inputs")
    found = []
    for index, sent in enumerate(message.inputs):
        shape = tuple(sent.shape)
        if raws:
            if sent.HasField("contents"):
                raise invalid(f"input {clip(sent.name)}: contents beside raw_input_contents")
            found.append(raw_tensor(sent.name, sent.datatype, shape, raws[index]))
        else:
            found.append(_typed_tensor(sent.name, sent.datatype, shape, sent.contents))
    return found


def _typed_tensor(name: str, kind: str, shape: tuple[int, ...], contents: pb.InferTensorContents) -> Tensor:
    count = element_count(name, kind, shape)
    field = _CONTENTS.get(kind)
    if field is None:
        raise invalid(f"input {clip(name)}: {kind} goes into raw_input_contents")
    others = [d.name for d, _ in contents.ListFields() if d.name != field]
    if others:
        raise invalid(f"input {clip(name)}: {kind} goes into {field}, not into {others[0]}")
    values = getattr(contents, field)
    if len(values) != count:
        raise invalid(f"input {clip(name)}: {len(values)} elements in {field}, shape {shape} takes {count}")
    if kind == "BYTES":
        return Tensor(name, kind, shape, list(values))
    wide = np.empty(count, _WIDE[field])
    for at in range(0, count, _PIECE):  # other threads go on between the pieces
        wide[at : at + _PIECE] = values[at : at + _PIECE]
    dtype = NUMBERS[kind]
    if wide.size and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if wide.min() < limits.min or wide.max() > limits.max:
            raise invalid(f"input {clip(name)}: a number that {kind} does not hold")
    return Tensor(name, kind, shape, wide.astype(dtype).reshape(shape))
