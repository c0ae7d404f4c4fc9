"""`inference.GRPCInferenceService`: KServe's protocol v2 as protobuf messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
from google.protobuf.message import DecodeError

from mycelia_serving.errors import ServingError, clip
from mycelia_serving.frontend.kserve import (
    EXTENSIONS,
    NUMBERS,
    PLATFORM,
    Model,
    Models,
    Repository,
    Tensor,
    check_outputs,
    datatype,
    element_count,
    join_bytes,
    make_outputs,
    make_request,
    raw_tensor,
    urgency,
)
from mycelia_serving.frontend.metrics import Metrics
from mycelia_serving.frontend.status import OK, STATUS, add_headers
from mycelia_serving.frontend.tracing import submitter
from mycelia_serving.request import Call, Dispatcher, Reply
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

    def __init__(
        self, dispatcher: Dispatcher, models: Models, metrics: Metrics, repository: Repository
    ) -> None:
        self._dispatcher = dispatcher
        self._submit = submitter(dispatcher)
        self._models = models
        self._metrics = metrics
        self._repository = repository
        short = {  # calls that are answered at once
            "ServerLive": (pb.ServerLiveRequest, lambda _: pb.ServerLiveResponse(live=True)),
            "ServerReady": (
                pb.ServerReadyRequest,
                lambda _: pb.ServerReadyResponse(ready=dispatcher.ready()),
            ),
            "ServerMetadata": (pb.ServerMetadataRequest, self._server_metadata),
            "ModelReady": (pb.ModelReadyRequest, self._model_ready),
            "ModelMetadata": (pb.ModelMetadataRequest, self._model_metadata),
            "ModelStatistics": (pb.ModelStatisticsRequest, self._statistics),
            "RepositoryIndex": (pb.RepositoryIndexRequest, self._index),
        }
        self.paths: dict[str, Callable] = {
            _PREFIX + name: _at_once(message, answer) for name, (message, answer) in short.items()
        }
        self.paths[_PREFIX + "ModelInfer"] = self._infer
        self.paths[_PREFIX + "RepositoryModelLoad"] = self._load
        self.paths[_PREFIX + "RepositoryModelUnload"] = self._unload

    # ---- about the server and its models -------------------------------------------------------------------

    @staticmethod
    def _server_metadata(_) -> pb.ServerMetadataResponse:
        from mycelia_serving import __version__

        return pb.ServerMetadataResponse(name="mycelia-serving", version=__version__, extensions=EXTENSIONS)

    def _model_ready(self, request: pb.ModelReadyRequest) -> pb.ModelReadyResponse:
        return pb.ModelReadyResponse(ready=self._models.ready(request.name, request.version) is True)

    def _model_metadata(self, request: pb.ModelMetadataRequest) -> pb.ModelMetadataResponse:
        model = self._models.get(request.name, request.version)
        tensors = pb.ModelMetadataResponse.TensorMetadata
        return pb.ModelMetadataResponse(
            name=model.name,
            versions=[request.version] if request.version else self._models.versions(model),
            platform=PLATFORM,
            inputs=[
                tensors(name=i.name, datatype=datatype(i.dtype), shape=model.tensor_shape(i))
                for i in model.method.inputs
            ],
            outputs=[
                tensors(name=o.name, datatype=datatype(o.dtype), shape=model.tensor_shape(o))
                for o in model.method.outputs
            ],
        )

    def _statistics(self, request: pb.ModelStatisticsRequest) -> pb.ModelStatisticsResponse:
        found = [self._models.get(request.name, request.version)] if request.name else self._models.all()
        reply = pb.ModelStatisticsResponse()
        for model in found:
            sums = self._metrics.statistics(model.servable.name, model.method.name, model.servable.version)
            entry = reply.model_stats.add(
                name=model.name,
                version=str(model.servable.version),
                last_inference=sums["last"],
                inference_count=sums["succeeded"],
                execution_count=sums["run_count"],
            )
            for field, prefix in (
                ("success", "success"),
                ("fail", "fail"),
                ("queue", "queue"),
                ("compute_infer", "run"),
            ):
                duration = getattr(entry.inference_stats, field)
                duration.count, duration.ns = sums[f"{prefix}_count"], sums[f"{prefix}_ns"]
        return reply

    def _index(self, request: pb.RepositoryIndexRequest) -> pb.RepositoryIndexResponse:
        reply = pb.RepositoryIndexResponse()
        for name, version, state, reason in self._models.index(self._repository, request.ready):
            reply.models.add(name=name, version=version, state=state, reason=reason)
        return reply

    def _load(self, body: bytes, metadata: Mapping, done: Callable, deadline: float | None) -> None:
        name = _read(pb.RepositoryModelLoadRequest, body).model_name
        tell = _teller(done, pb.RepositoryModelLoadResponse())
        self._repository.change("load", name, metadata.get("authorization", ""), tell)

    def _unload(self, body: bytes, metadata: Mapping, done: Callable, deadline: float | None) -> None:
        name = _read(pb.RepositoryModelUnloadRequest, body).model_name
        tell = _teller(done, pb.RepositoryModelUnloadResponse())
        self._repository.change("unload", name, metadata.get("authorization", ""), tell)

    # ---- inference -----------------------------------------------------------------------------------------

    def _infer(
        self, body: bytes, metadata: Mapping[str, str], done: Callable, deadline: float | None
    ) -> Call | None:
        start = time.perf_counter()
        message = _read(pb.ModelInferRequest, body)
        try:
            model = self._models.get(message.model_name, message.model_version)
            wanted = [output.name for output in message.outputs]
            _refuse_regions(message)
            check_outputs(model, wanted)
            request = make_request(model, message.model_version, _tensors(message), "v2-grpc")
        except ServingError as error:
            self._metrics.count("v2-grpc", "", "", Reply(error=error), start, len(body), 0)
            raise
        request.deadline = deadline
        if metadata:
            add_headers(request, metadata)
        if message.parameters:
            _read_parameters(request, message.parameters)

        def answer(reply: Reply) -> None:
            try:
                sent = _reply(model, message, reply, make_outputs(model, reply, wanted))
            except ServingError as error:
                self._metrics.count("v2-grpc", request.servable, request.method, reply, start, len(body), 0)
                done(STATUS[error.grpc_status], error.message)
                return
            self._metrics.count(
                "v2-grpc", request.servable, request.method, reply, start, len(body), len(sent)
            )
            done(OK, sent)

        return self._submit(request, answer)


def _read(kind, body: bytes):
    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise Malformed(f"not a {kind.DESCRIPTOR.name}: {error}") from None


def _at_once(kind, answer: Callable) -> Callable:
    def handle(body: bytes, metadata: Mapping, done: Callable, deadline: float | None) -> None:
        done(OK, answer(_read(kind, body)).SerializeToString())

    return handle


def _teller(done: Callable, reply) -> Callable[[ServingError | None], None]:
    def tell(error: ServingError | None) -> None:
        if error is None:
            done(OK, reply.SerializeToString())
        else:
            done(STATUS[error.grpc_status], error.message)

    return tell


def _refuse_regions(message: pb.ModelInferRequest) -> None:
    """Shared memory and sequences belong to other servers; results would be silently wrong without them."""
    for tensor in (*message.inputs, *message.outputs):
        if tensor.parameters and "shared_memory_region" in tensor.parameters:
            raise invalid(f"{clip(tensor.name)}: shared memory is not taken from clients")
        if tensor.parameters and "classification" in tensor.parameters:
            raise invalid(f"output {clip(tensor.name)}: classification is not supported")
    if message.parameters and (
        message.parameters["sequence_id"].int64_param or message.parameters["sequence_id"].string_param
        if "sequence_id" in message.parameters
        else False
    ):
        raise invalid("sequences are not supported")


def _read_parameters(request, parameters) -> None:
    if "priority" in parameters:
        given = parameters["priority"]
        request.priority = urgency(given.uint64_param or given.int64_param)
    if "timeout" in parameters and parameters["timeout"].int64_param > 0:  # microseconds
        deadline = time.monotonic() + parameters["timeout"].int64_param * 1e-6
        request.deadline = min(deadline, request.deadline or deadline)


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


def _reply(model: Model, message: pb.ModelInferRequest, reply: Reply, outputs: list[Tensor]) -> bytes:
    answer = pb.ModelInferResponse(
        model_name=message.model_name,
        model_version=str(reply.version or model.servable.version),
        id=message.id,
        outputs=[
            pb.ModelInferResponse.InferOutputTensor(name=o.name, datatype=o.datatype, shape=o.shape)
            for o in outputs
        ],
        raw_output_contents=[
            join_bytes(o.data) if o.datatype == "BYTES" else o.data.tobytes() for o in outputs
        ],
    )
    return answer.SerializeToString()
