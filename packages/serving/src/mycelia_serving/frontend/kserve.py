"""The words of KServe's Open Inference Protocol v2: models, types, tensors and instances.

A model of the protocol is a method of a servable, `{servable}.{method}`; `{servable}` alone means its only
method, or the one that is marked as default. A method with a batch dimension takes tensors
[n, ...] and makes n instances of them, one without takes the exact shapes as one instance.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.frontend.token import Token
from mycelia_serving.request import (
    MOST_INSTANCES,
    Dispatcher,
    MethodInfo,
    Reply,
    Request,
    ServableInfo,
    TensorInfo,
    Value,
)
from mycelia_serving.wire.tensors import check_shape, invalid, shape_text

PLATFORM = "mycelia"
EXTENSIONS = ("binary_tensor_data", "model_repository", "statistics")
STATES = {
    "ready": "READY",
    "loading": "LOADING",
    "unavailable": "UNAVAILABLE",
    "draining": "UNLOADING",
    "failed": "UNAVAILABLE",
}
_REMEMBER_S = 0.25  # how long a model's description is used again

NUMBERS = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
_NAMES = {dtype: name for name, dtype in NUMBERS.items()}


def datatype(dtype: str | None) -> str:
    """The protocol's name of a type of `TensorInfo`; BYTES for text, and where any type goes."""
    if dtype in (None, "str", "bytes"):
        return "BYTES"
    return _NAMES.get(np.dtype(dtype), "BYTES")


@dataclass(slots=True, frozen=True)
class Model:
    """A method of one version, by the name a caller used."""

    name: str
    servable: ServableInfo
    method: MethodInfo

    @property
    def batched(self) -> bool:
        return self.method.batch_size > 0

    def tensor_shape(self, info: TensorInfo) -> list[int]:
        """Shape of an input or output in metadata: -1 for the batch and for any size."""
        shape = (
            list(info.shape) if info.shape is not None else ([] if info.dtype in ("str", "bytes") else [-1])
        )
        if self.batched and info.batched:
            return [-1, *shape]
        return shape or [1]


class Models:
    """Finds the models of a dispatcher by name and version."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._found: dict[tuple[str, str], tuple[float, Model]] = {}

    def all(self) -> list[Model]:
        """Every method of every version, under its full name."""
        return [
            Model(f"{info.name}.{method.name}", info, method)
            for info in self._dispatcher.describe()
            for method in info.methods
        ]

    def ready(self, name: str, version: str) -> bool | None:
        """Whether a model answers requests; None: it is not known here.

        Errors: ServingError for a version that is no number.
        """
        try:
            return self.get(name, version).servable.state == "ready"
        except ServingError as error:
            if error.code not in (Code.NOT_FOUND, Code.SERVABLE_UNAVAILABLE):
                raise
            return None if error.code is Code.NOT_FOUND else False

    def index(self, repository: Repository, only_ready: bool) -> list[tuple[str, str, str, str]]:
        """Name, version, state and reason of each model, and of versions that could be loaded."""
        found = [
            (m.name, str(m.servable.version), STATES[m.servable.state], m.servable.reason)
            for m in self.all()
            if m.servable.state == "ready" or not only_ready
        ]
        if not only_ready:
            unloaded = repository.unloaded()
            found += [(name, str(version), "UNAVAILABLE", "unloaded") for name, version in unloaded]
        return found

    def versions(self, model: Model) -> list[str]:
        """Numbers of the versions that have the method."""
        return [
            str(info.version)
            for info in sorted(self._dispatcher.describe(), key=lambda info: info.version)
            if info.name == model.servable.name and model.method.name in {m.name for m in info.methods}
        ]

    def get(self, name: str, version: str) -> Model:
        """The model, for "" of the newest version. Errors: ServingError NOT_FOUND."""
        now = time.monotonic()
        kept = self._found.get((name, version))
        if kept is not None and now - kept[0] < _REMEMBER_S:
            return kept[1]
        model = self._look(name, version)
        if len(self._found) > 1000:
            self._found = {}
        self._found[name, version] = now, model
        return model

    def _look(self, name: str, version: str) -> Model:
        infos = self._dispatcher.describe()
        names = {info.name for info in infos}
        servable, method = name, ""
        if name not in names:
            servable, _, method = name.rpartition(".")
        if servable not in names:
            raise ServingError(Code.NOT_FOUND, f"unknown model {clip(name)!r}")
        infos = [info for info in infos if info.name == servable]
        if version:
            if not version.isascii() or not version.isdigit():
                raise invalid(f"version {clip(version)!r} of model {name!r} is not a number")
            infos = [info for info in infos if info.version == int(version)]
        if not infos:
            raise ServingError(Code.NOT_FOUND, f"model {name!r} has no version {clip(version)}")
        info = max(infos, key=lambda info: (info.state == "ready", info.version))
        if not info.methods and info.state != "ready":
            raise ServingError(Code.SERVABLE_UNAVAILABLE, f"model {name!r} is not ready: {info.reason}")
        if method:
            found = [m for m in info.methods if m.name == method]
            if not found:
                raise ServingError(
                    Code.NOT_FOUND, f"unknown model {clip(name)!r}: no method {clip(method)!r}"
                )
        else:
            found = [m for m in info.methods if m.default] or list(info.methods)
            if len(found) != 1:
                choice = ", ".join(f"{servable}.{m.name}" for m in info.methods[:10])
                raise ServingError(Code.NOT_FOUND, f"model {name!r} has several methods, name one: {choice}")
        return Model(name, info, found[0])


@dataclass(slots=True)
class Tensor:
    """An input or output as the protocol sees it: `data` is an array, or a list of bytes for BYTES."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: np.ndarray | list[bytes]


def element_count(name: str, kind: str, shape: tuple[int, ...]) -> int:
    """How many elements a tensor has. Errors: ServingError for an unknown type or an impossible shape."""
    dtype = NUMBERS.get(kind)
    if dtype is None and kind != "BYTES":
        raise invalid(f"input {clip(name)}: unknown datatype {clip(kind)!r}")
    size = 1 if dtype is None else dtype.itemsize
    try:
        return check_shape(shape, size) // size
    except ServingError as error:
        raise invalid(f"input {clip(name)}: {error.message}") from None


def raw_tensor(name: str, kind: str, shape: tuple[int, ...], raw: bytes | memoryview) -> Tensor:
    """A tensor of its binary form: numbers in C order; BYTES each with 4 bytes of length before it."""
    count = element_count(name, kind, shape)
    if kind == "BYTES":
        return Tensor(name, kind, shape, _split_bytes(name, count, raw))
    dtype = NUMBERS[kind]
    if len(raw) != count * dtype.itemsize:
        raise invalid(
            f"input {clip(name)}: {len(raw)} bytes of data, shape {shape_text(shape)} of {kind} takes "
            f"{count * dtype.itemsize}"
        )
    data = np.frombuffer(bytes(raw), dtype)
    if kind == "BOOL":  # any byte but 0 is true, and only 0 and 1 are safe inside numpy
        data = data.view(np.uint8) != 0
    return Tensor(name, kind, shape, data.reshape(shape))


def _split_bytes(name: str, count: int, raw: bytes | memoryview) -> list[bytes]:
    raw = bytes(raw)
    if count > len(raw) // 4:
        raise invalid(
            f"input {clip(name)}: {len(raw)} bytes of data are too few for {count} elements of BYTES"
        )
    found, position = [], 0
    for _ in range(count):
        size = int.from_bytes(raw[position : position + 4], "little")
        position += 4
        if position + size > len(raw):
            raise invalid(f"input {clip(name)}: an element of BYTES is longer than the data")
        found.append(raw[position : position + size])
        position += size
    if position != len(raw):
        raise invalid(f"input {clip(name)}: {len(raw) - position} bytes of data too many")
    return found


def join_bytes(elements: list[bytes]) -> bytes:
    """The binary form of a tensor of BYTES."""
    return b"".join(part for e in elements for part in (len(e).to_bytes(4, "little"), e))


def make_request(model: Model, version: str, tensors: list[Tensor], protocol: str) -> Request:
    """The instances that an inference request holds. Errors: ServingError, which names the input."""
    infos = {info.name: info for info in model.method.inputs}
    values: dict[str, list[Value] | Value] = {}
    count = None
    for tensor in tensors:
        info = infos.get(tensor.name)
        if info is None:
            raise invalid(f"model {model.name!r} has no input {clip(tensor.name)!r}")
        if tensor.name in values:
            raise invalid(f"input {tensor.name!r} is given twice")
        split = model.batched and info.batched
        if split:
            if not tensor.shape or not tensor.shape[0]:
                raise invalid(f"input {tensor.name!r}: shape {tensor.shape} has no batch of one or more")
            if count not in (None, tensor.shape[0]):
                raise invalid(
                    f"input {tensor.name!r}: a batch of {tensor.shape[0]}, another input has {count}"
                )
            count = tensor.shape[0]
            if count > MOST_INSTANCES:
                raise invalid(f"input {tensor.name!r}: a batch of {count}, the limit is {MOST_INSTANCES}")
        _check_type(info, tensor, tensor.shape[1:] if split else tensor.shape)
        values[tensor.name] = _values(info, tensor, split)
    missing = [name for name in infos if name not in values]
    if missing:
        raise invalid(f"model {model.name!r}: input {missing[0]!r} is missing")
    if count is None:
        instances = [values]
    else:
        split = {name for name, info in infos.items() if info.batched}
        instances = [
            {name: value[i] if name in split else value for name, value in values.items()}
            for i in range(count)
        ]
    number = int(version) if version else 0
    return Request(model.servable.name, model.method.name, instances, number, protocol=protocol)


def _check_type(info: TensorInfo, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Type and shape of an input as the method wants them, where it says so."""
    if info.dtype is not None and tensor.datatype != datatype(info.dtype):
        raise invalid(f"input {info.name!r} is {datatype(info.dtype)}, got {tensor.datatype}")
    if tensor.datatype == "BYTES":
        if any(size != 1 for size in shape):
            raise invalid(f"input {info.name!r}: one value of BYTES for each instance, got shape {shape}")
    elif info.shape is not None and (
        len(shape) != len(info.shape)
        or any(wanted not in (-1, got) for wanted, got in zip(info.shape, shape, strict=True))
    ):
        raise invalid(f"input {info.name!r}: shape {shape_text(shape)}, expected {info.shape}")


def _values(info: TensorInfo, tensor: Tensor, split: bool) -> list[Value] | Value:
    data = tensor.data
    if tensor.datatype == "BYTES":
        if info.dtype == "str":
            try:
                data = [element.decode() for element in data]
            except UnicodeDecodeError as error:
                raise invalid(f"input {info.name!r}: a string that is not UTF-8: {error.reason}") from None
        return data if split else data[0]
    data.flags.writeable = False
    return [np.asarray(data[i, ...]) for i in range(len(data))] if split else data


def make_outputs(model: Model, reply: Reply, wanted: list[str] | None) -> list[Tensor]:
    """The tensors of a reply. `wanted`: names of outputs, None for all.

    Errors: the ServingError of the request or of its first instance that failed; INVALID_INPUTS for an output
    that the model does not have.
    """
    if reply.error is not None:
        raise reply.error
    for index, result in enumerate(reply.results):
        if type(result) is ServingError:
            where = f"instance {index}: " if len(reply.results) > 1 else ""
            raise ServingError(result.code, where + result.message)
    names = list(reply.results[0])
    if wanted:
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise invalid(f"model {model.name!r} has no output {clip(unknown[0])!r}")
        names = wanted
    return [_output(model, name, [result[name] for result in reply.results]) for name in names]


def check_outputs(model: Model, wanted: list[str]) -> None:
    """Refuse an inference request for an output that the model does not have, before it runs."""
    known = {info.name for info in model.method.outputs}
    for name in wanted:
        if known and name not in known:
            raise invalid(f"model {model.name!r} has no output {clip(name)!r}")


def _output(model: Model, name: str, values: list[Value]) -> Tensor:
    if isinstance(values[0], (str, bytes)):
        elements = [v.encode(errors="replace") if isinstance(v, str) else bytes(v) for v in values]
        return Tensor(name, "BYTES", (len(elements),), elements)
    try:
        if not model.batched:
            data = np.ascontiguousarray(values[0]).reshape(values[0].shape)
        elif len(values) == 1:
            data = np.ascontiguousarray(values[0])[None].reshape((1, *values[0].shape))
        else:
            data = np.stack(values)
        kind = _NAMES[data.dtype]
    except (ValueError, KeyError, TypeError) as error:
        text = f"output {name!r}: the values of the instances make no tensor: {error}"
        raise ServingError(Code.SYSTEM_ERROR, text) from None
    return Tensor(name, kind, data.shape, data)


def urgency(priority: int) -> int:
    """Priority of a `Request` for KServe's, where 1 is the most urgent and 0 the usual."""
    return 0 if priority <= 0 else max(1, 1_000_000 - priority)


class Repository:
    """What callers may do to the models.

    target: a `Node`, or what has its `load(name)`, `unload(name)` and `unloaded()`; None: callers may change
    nothing.
    token: what those who change something must send; None: all who are served may.
    """

    def __init__(self, target, token: str | None = None) -> None:
        self._target = target
        self._token = Token(token)

    def unloaded(self) -> list[tuple[str, int]]:
        """Servables and versions that are there and do not run."""
        return [] if self._target is None else self._target.unloaded()

    def change(
        self, action: str, name: str, authorization: str, tell: Callable[[ServingError | None], None]
    ) -> None:
        """Load or unload a servable in a thread of its own; `tell` hears how it went."""
        if self._target is None:
            text = f"callers may not {action} models here: the server was started without --allow-admin"
            tell(ServingError(Code.FORBIDDEN, text))
        elif not self._token.admits(authorization):
            tell(ServingError(Code.FORBIDDEN, f"to {action} models takes the token of --admin-token"))
        else:
            work = functools.partial(_change, getattr(self._target, action), action, name, tell)
            threading.Thread(target=work, name=f"serving-{action}", daemon=True).start()


def _change(
    function: Callable[[str], None], action: str, name: str, tell: Callable[[ServingError | None], None]
) -> None:
    try:
        function(name)
    except ServingError as error:
        tell(error)
    except Exception as error:
        tell(ServingError(Code.INVALID_INPUTS, f"cannot {action} {clip(name)!r}: {error}"))
    else:
        tell(None)
