"""Work and results as bodies of frames.

Large tensors go through the arena where there is one: their messages name a place (`shm_data`), and for
outputs of known size the request brings a place to put them (`output_buffers`). Such places are taken from
the master only; clients' messages are read by `wire.predict`, which refuses them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import struct
import time

import numpy as np

from mycelia_serving.cluster.arena import SMALLEST_SHARED, Arena
from mycelia_serving.cluster.worker_api import Work
from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import Instance, MethodInfo, Reply, Result, TensorInfo
from mycelia_serving.wire import predict, tensors
from mycelia_serving.wire.proto import serving_pb2 as pb

_WORK = struct.Struct("<dibBH")  # seconds left (nan: no deadline), priority, shared?, length of trace, keys
_RESULTS = struct.Struct("<BI")  # shared?, length of the errors

MODEL_STAGE = "\0model:"  # a method of this name is a model stage: subgraph, colon, key of the model

Places = list[tuple[int, int]]  # offset and size of what a work holds in the arena


@dataclasses.dataclass(slots=True)
class Received:
    """A work as the worker reads it."""

    method: str
    instances: list[Instance]
    deadline: float | None
    priority: int
    traceparent: str | None
    keys: tuple[int, ...]
    buffers: list[dict[str, tuple[int, int]]] | None  # per instance: output -> offset and size


def encode_work(work: Work, infos: dict[str, MethodInfo], arena: Arena | None) -> tuple[bytes, Places]:
    """The body of a PREDICT frame, and what it holds in the arena until the results are there."""
    left = math.nan if work.deadline is None else work.deadline - time.monotonic()
    trace = (work.traceparent or "").encode()[:255]
    places: Places = []
    outputs = _large_outputs(infos.get(work.method)) if arena is not None else []
    shared = bool(outputs) or (arena is not None and any(_large(i) for i in work.instances))
    if shared:
        message = pb.PredictRequest()
        message.servable_spec.method_name = work.method
        for instance in work.instances:
            _put_shared(message.instances.add(), instance, arena, places, outputs)
        body = message.SerializeToString()
    else:
        body = predict.request_bytes("", work.method, 0, work.instances)
    head = _WORK.pack(left, work.priority, shared, len(trace), len(work.keys))
    keys = struct.pack(f"<{len(work.keys)}Q", *work.keys) if work.keys else b""
    return b"".join((head, trace, keys, body)), places


def decode_work(body: bytes, arena: Arena | None) -> Received:
    """A work from the body of a PREDICT frame."""
    left, priority, shared, trace_length, key_count = _WORK.unpack_from(body)
    at = _WORK.size + trace_length
    trace = body[_WORK.size : at].decode() or None
    keys = struct.unpack_from(f"<{key_count}Q", body, at)
    rest = body[at + 8 * key_count :]
    deadline = None if math.isnan(left) else time.monotonic() + left
    if not shared:
        request = predict.parse_request(rest)
        return Received(request.method, request.instances, deadline, priority, trace, keys, None)
    message = pb.PredictRequest.FromString(rest)
    instances = [_read_shared(i.items, arena) for i in message.instances]
    buffers = [
        {name: (place.data_offset, place.data_size) for name, place in i.output_buffers.items()}
        for i in message.instances
    ]
    method = message.servable_spec.method_name
    return Received(method, instances, deadline, priority, trace, keys, buffers)


def encode_results(results: list[Result], received: Received | None, arena: Arena | None) -> bytes:
    """The body of a RESULTS frame."""
    errors = []
    values: list[Instance] = []
    for index, result in enumerate(results):
        if type(result) is dict:
            values.append(result)
        else:
            errors.append((index, int(result.code), result.message))
            values.append({})
    told = json.dumps(errors).encode() if errors else b""
    buffers = received.buffers if received is not None else None
    shared = buffers is not None and any(buffers)
    if shared:
        message = pb.PredictReply()
        for result, places in zip(values, buffers, strict=True):
            _put_outputs(message.instances.add(), result, arena, places)
        body = message.SerializeToString()
    else:
        body = predict.reply_bytes("", "", 0, Reply(values))
    return b"".join((_RESULTS.pack(shared, len(told)), told, body))


def decode_results(body: bytes, arena: Arena | None) -> list[Result]:
    """The results from the body of a RESULTS frame."""
    shared, length = _RESULTS.unpack_from(body)
    at = _RESULTS.size + length
    if shared:
        message = pb.PredictReply.FromString(body[at:])
        results: list[Result] = [_read_shared(i.items, arena) for i in message.instances]
    else:
        reply = predict.parse_reply(body[at:])
        if reply.error is not None:
            raise ValueError(reply.error.message)
        results = reply.results
    if length:
        for index, code, text in json.loads(body[_RESULTS.size : at]):
            results[index] = ServingError(Code(code), text)
    return results


# ---- through the arena -----------------------------------------------------------------------------------


def _is_large(value) -> bool:
    return type(value) is np.ndarray and value.nbytes >= SMALLEST_SHARED


def _large(instance: Instance) -> bool:
    return any(_is_large(value) for value in instance.values())


def _large_outputs(info: MethodInfo | None) -> list[tuple[str, int]]:
    """Outputs whose size is known and large."""
    found = []
    for output in info.outputs if info is not None else ():
        if output.shape is None or output.dtype in (None, "str", "bytes") or min(output.shape, default=0) < 0:
            continue
        size = math.prod(output.shape) * np.dtype(output.dtype).itemsize
        if size >= SMALLEST_SHARED:
            found.append((output.name, size))
    return found


def _place(message: pb.ShmTensorData, arena: Arena, offset: int, size: int) -> None:
    message.memory_key = "arena"
    message.bytes_size = arena.size
    message.data_offset = offset
    message.data_size = size


def _put_inline(message: pb.Instance, values: Instance) -> None:
    parts: list = []
    for name, value in values.items():
        tensors.put_value(parts, name, value)
    message.MergeFromString(b"".join(parts))


def _put_array(tensor: pb.Tensor, array: np.ndarray) -> None:
    tensor.dtype = tensors.wire_type(array.dtype)
    tensor.shape.dims.extend(array.shape)


def _put_shared(
    message: pb.Instance, instance: Instance, arena: Arena, places: Places, outputs: list
) -> None:
    inline = {}
    for name, value in instance.items():
        offset = arena.take(value.nbytes) if _is_large(value) else None
        if offset is None:
            inline[name] = value
            continue
        places.append((offset, value.nbytes))
        arena.write(offset, value)
        _put_array(message.items[name], value)
        _place(message.items[name].shm_data, arena, offset, value.nbytes)
    _put_inline(message, inline)
    for name, size in outputs:
        offset = arena.take(size)
        if offset is not None:
            places.append((offset, size))
            _place(message.output_buffers[name], arena, offset, size)


def _put_outputs(message: pb.Instance, values: Instance, arena: Arena, places: dict) -> None:
    inline = {}
    for name, value in values.items():
        offset, size = places.get(name, (0, -1))
        if not _is_large(value) or value.nbytes > size:
            inline[name] = value
            continue
        arena.write(offset, value)
        _put_array(message.items[name], value)
        _place(message.items[name].shm_data, arena, offset, value.nbytes)
    _put_inline(message, inline)


def _read_shared(items, arena: Arena | None) -> Instance:
    values = {}
    for name in items:
        tensor = items[name]
        if tensor.WhichOneof("tensor_data") == "shm_data":
            dtype, shape = tensors.number_type(tensor.dtype), tuple(tensor.shape.dims)
            values[name] = arena.read(tensor.shm_data.data_offset, dtype, shape)
        else:
            values[name] = tensors.read_tensor(tensor)
    return values


# ---- signatures ------------------------------------------------------------------------------------------


def infos_to_json(infos: tuple[MethodInfo, ...]) -> list[dict]:
    """Signatures as plain data."""
    return [dataclasses.asdict(info) for info in infos]


def infos_from_json(data: list[dict]) -> tuple[MethodInfo, ...]:
    """Signatures from plain data."""

    def tensors_of(method: dict, name: str) -> tuple[TensorInfo, ...]:
        return tuple(
            TensorInfo(**{**t, "shape": None if t["shape"] is None else tuple(t["shape"])})
            for t in method[name]
        )

    return tuple(
        MethodInfo(**{**m, "inputs": tensors_of(m, "inputs"), "outputs": tensors_of(m, "outputs")})
        for m in data
    )
