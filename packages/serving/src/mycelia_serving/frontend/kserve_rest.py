"""KServe's protocol v2 over HTTP: paths and JSON, with binary tensors after it, to and from the calls of
`kserve_calls`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain

import numpy as np

from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.frontend.http import HttpReply, HttpRequest
from mycelia_serving.frontend.json_values import Arrays, Numbers, dump, load
from mycelia_serving.frontend.kserve import NUMBERS, Model, Tensor, element_count, join_bytes, raw_tensor
from mycelia_serving.frontend.kserve_calls import Inference, InferenceCalls, check_parameters
from mycelia_serving.request import Call, Reply
from mycelia_serving.wire.tensors import MAX_RANK, invalid

_HEADER_LENGTH = "inference-header-content-length"
_OF_MODEL = {"": "ModelMetadata", "ready": "ModelReady", "stats": "ModelStatistics"}  # path -> call
Done = Callable[[HttpReply], None]


def error_reply(error: ServingError) -> HttpReply:
    return HttpReply(error.http_status, dump({"error": error.message}))


class InferenceRoutes:
    """The paths under /v2."""

    def __init__(self, calls: InferenceCalls) -> None:
        self._calls = calls

    def handle(self, request: HttpRequest, segments: list[str], done: Done) -> Call | None:
        """Answer /v2/{segments}. Errors: ServingError."""
        match segments:
            case []:
                done(self._ask(request, "ServerMetadata"))
            case ["health", "live" | "ready" as what]:
                done(self._ask(request, f"Server{what.capitalize()}"))
            case ["repository", "index"]:
                done(HttpReply(200, dump(self._index(request))))
            case ["repository", "models", name, "load" | "unload" as action] if request.method == "POST":
                self._calls.change(action, name, request.headers, _teller(done))
            case ["models", "stats"]:
                done(self._ask(request, "ModelStatistics"))
            case ["models", name, "versions", version, *rest]:
                return self._model(request, name, version, "/".join(rest), done)
            case ["models", name, *rest]:
                return self._model(request, name, "", "/".join(rest), done)
            case _:
                raise ServingError(Code.NOT_FOUND, f"nothing is at {clip(request.path)}")
        return None

    def _model(self, request: HttpRequest, name: str, version: str, what: str, done: Done) -> Call | None:
        if what == "infer":
            if request.method != "POST":
                raise ServingError(Code.WRONG_VERB, "inference requests are POST")
            return self._calls.infer(name, version, _RestCall(request, name, done), request.headers)
        call = _OF_MODEL.get(what)
        if call is None:
            _check_get(request)
            raise ServingError(Code.NOT_FOUND, f"nothing is at {clip(request.path)}")
        done(self._ask(request, call, name=name, version=version))
        return None

    def _ask(self, request: HttpRequest, call: str, **fields: str) -> HttpReply:
        """The answer of a call that is made by GET."""
        _check_get(request)
        told = self._calls.at_once[call](**fields)
        if "ready" not in told:
            return HttpReply(200, dump(told))
        ready = told["ready"]
        document = {**fields, "ready": ready is True}
        document.pop("version", None)
        return HttpReply(404 if ready is None else 200 if ready else 503, dump(document))

    def _index(self, request: HttpRequest) -> list[dict]:
        asked = load(request.body)[0] if request.body else {}
        only_ready = type(asked) is dict and asked.get("ready") is True
        return self._calls.at_once["RepositoryIndex"](only_ready)["models"]


def _check_get(request: HttpRequest) -> None:
    if request.method not in ("GET", "HEAD"):
        raise ServingError(Code.WRONG_VERB, f"{clip(request.path)} is read by GET")


def _teller(done: Done) -> Callable[[ServingError | None], None]:
    return lambda error: done(HttpReply(200, b"{}") if error is None else error_reply(error))


class _RestCall:
    """A `kserve_calls.Wire`: JSON, with binary tensors after it."""

    protocol = "v2-rest"
    __slots__ = ("_binary", "_done", "_identity", "_kinds", "_name", "_out", "_sent", "received")

    def __init__(self, sent: HttpRequest, name: str, done: Done) -> None:
        self._sent, self._name, self._done, self.received = sent, name, done, len(sent.body)
        self._identity: object = ""
        self._kinds: dict[str, bool | None] = {}  # output -> whether it is to be binary, if it says so
        self._binary = False  # what goes for the others
        self._out = HttpReply(200, b"")

    def read(self) -> Inference:
        document, tensors = _read(self._sent)
        self._kinds, self._binary = _wanted(document)
        self._identity = document.get("id", "")
        return Inference(tensors, list(self._kinds), _parameters(document))

    def write(self, model: Model, reply: Reply, outputs: list[Tensor]) -> None:
        entries, raws = [], []
        for output in outputs:
            choice = self._kinds.get(output.name)
            entry, raw = _entry(output, self._binary if choice is None else choice is True)
            entries.append(entry)
            if raw is not None:
                raws.append(raw)
        document = {
            "model_name": self._name,
            "model_version": str(reply.version or model.servable.version),
            "outputs": entries,
        }
        if self._identity:
            document["id"] = self._identity
        head = dump(document)
        if not raws:
            self._out = HttpReply(200, head)
            return
        length = (("Inference-Header-Content-Length", str(len(head))),)
        self._out = HttpReply(200, b"".join((head, *raws)), "application/octet-stream", length)

    def refuse(self, error: ServingError) -> None:
        self._out = error_reply(error)

    def size(self) -> int:
        return len(self._out.body)

    def send(self) -> None:
        self._done(self._out)


def _read(sent: HttpRequest) -> tuple[dict, list[Tensor]]:
    """The JSON document and the input tensors of a request."""
    body, binary = sent.body, b""
    length = sent.headers.get(_HEADER_LENGTH)
    if length is not None:
        if not (length.isascii() and length.isdigit()) or int(length) > len(body):
            raise invalid(f"Inference-Header-Content-Length {clip(length)!r} does not fit the body")
        body, binary = body[: int(length)], memoryview(body)[int(length) :]
    document, arrays = load(body, narrow=False)
    sent.body = b""  # a large one is not needed beside what it holds
    if type(document) is not dict or type(document.get("inputs")) is not list:
        raise invalid("the body is a JSON object with a list of 'inputs'")
    tensors, position = [], 0
    for entry in document["inputs"]:
        if type(entry) is not dict or type(entry.get("name")) is not str:
            raise invalid("an input is an object with a 'name'")
        name, kind, shape = entry["name"], entry.get("datatype"), entry.get("shape")
        if type(kind) is not str:
            raise invalid(f"input {clip(name)}: 'datatype' is missing")
        if type(shape) is not list or any(type(size) is not int for size in shape):
            raise invalid(f"input {clip(name)}: 'shape' is a list of integers")
        parameters = _parameters(entry)
        check_parameters(name, parameters)
        size = parameters.get("binary_data_size")
        if size is None:
            tensors.append(_from_json(name, kind, tuple(shape), entry.get("data"), arrays))
            continue
        if type(size) is not int or size < 0 or position + size > len(binary):
            raise invalid(f"input {clip(name)}: 'binary_data_size' does not fit the body")
        if "data" in entry:
            raise invalid(f"input {clip(name)}: 'data' beside 'binary_data_size'")
        tensors.append(raw_tensor(name, kind, tuple(shape), binary[position : position + size]))
        position += size
    if position != len(binary):
        raise invalid(f"{len(binary) - position} bytes after the last binary input")
    return document, tensors


def _from_json(name: str, kind: str, shape: tuple[int, ...], data, arrays: Arrays) -> Tensor:
    """A tensor of the elements in JSON, flat or nested."""
    count = element_count(name, kind, shape)
    numbers = arrays.get(data)
    if numbers is not None:
        return _from_numbers(name, kind, shape, count, numbers)
    if type(data) is not list:
        raise invalid(f"input {clip(name)}: 'data' is a list")
    for _ in range(MAX_RANK):
        if not data or type(data[0]) is not list:
            break
        if set(map(type, data)) != {list}:
            raise invalid(f"input {clip(name)}: 'data' mixes lists with values")
        if len(set(map(len, data))) > 1:
            raise invalid(f"input {clip(name)}: 'data' is ragged")
        data = list(chain.from_iterable(data))
    if arrays.inside(data):
        raise invalid(f"input {clip(name)}: 'data' is ragged, or mixes lists with values")
    if len(data) != count:
        raise invalid(f"input {clip(name)}: {len(data)} elements in 'data', shape {shape} takes {count}")
    kinds = set(map(type, data))
    dtype = NUMBERS.get(kind)
    allowed = {str} if dtype is None else {bool} if kind == "BOOL" else {int, float}
    if dtype is not None and dtype.kind in "iu":
        allowed = {int}
    if not kinds <= allowed:
        wrong = next(value for value in data if type(value) not in allowed)
        raise invalid(f"input {clip(name)}: {clip(wrong)!r} is no element of {kind}")
    if dtype is None:
        try:
            return Tensor(name, kind, shape, [text.encode() for text in data])
        except UnicodeEncodeError as error:
            raise invalid(f"input {clip(name)}: a string that is not Unicode: {error.reason}") from None
    if dtype.kind in "iu" and data:
        limits = np.iinfo(dtype)
        if min(data) < limits.min or max(data) > limits.max:
            raise invalid(f"input {clip(name)}: a number that {kind} does not hold")
    with np.errstate(over="ignore"):
        values = np.array(data, np.float64 if dtype.kind == "f" else dtype).astype(dtype)
    if dtype.kind == "f" and not np.isfinite(values).all():
        raise invalid(f"input {clip(name)}: a number that {kind} does not hold")
    return Tensor(name, kind, shape, values.reshape(shape))


def _from_numbers(name: str, kind: str, shape: tuple[int, ...], count: int, numbers: Numbers) -> Tensor:
    """The same of a long array."""
    if math.prod(numbers.shape) != count:
        size = math.prod(numbers.shape)
        raise invalid(f"input {clip(name)}: {size} elements in 'data', shape {shape} takes {count}")
    dtype, values = NUMBERS.get(kind), numbers.data
    whole, flags = numbers.kind in "iqQh", numbers.kind == "?"
    if dtype is None or flags != (kind == "BOOL") or (dtype.kind in "iu" and not whole):
        what = "a boolean" if flags else "an integer" if whole else "a number with a point"
        raise invalid(f"input {clip(name)}: {what} is no element of {kind}")
    fits = True
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fits = numbers.kind != "h" and values.min() >= limits.min and values.max() <= limits.max
    if fits:
        with np.errstate(over="ignore"):
            values = values.astype(dtype, copy=False)
        fits = dtype.kind != "f" or np.isfinite(values).all()
    if not fits:
        raise invalid(f"input {clip(name)}: a number that {kind} does not hold")
    return Tensor(name, kind, shape, values.reshape(shape))


def _parameters(entry: dict) -> dict:
    parameters = entry.get("parameters", {})
    if type(parameters) is not dict:
        raise invalid("'parameters' is an object")
    return parameters


def _wanted(document: dict) -> tuple[dict[str, bool | None], bool]:
    """Output -> whether it is to be binary, if it says so; and what goes for the others."""
    outputs = document.get("outputs", [])
    if type(outputs) is not list:
        raise invalid("'outputs' is a list")
    wanted: dict[str, bool | None] = {}
    for entry in outputs:
        if type(entry) is not dict or type(entry.get("name")) is not str:
            raise invalid("an output is an object with a 'name'")
        parameters = _parameters(entry)
        check_parameters(entry["name"], parameters)
        wanted[entry["name"]] = parameters.get("binary_data")
    return wanted, _parameters(document).get("binary_data_output") is True


def _entry(output: Tensor, binary: bool) -> tuple[dict, bytes | None]:
    """An output in the document, and what follows it in binary."""
    entry = {"name": output.name, "datatype": output.datatype, "shape": list(output.shape)}
    if binary:
        raw = join_bytes(output.data) if output.datatype == "BYTES" else output.data.tobytes()
        entry["parameters"] = {"binary_data_size": len(raw)}
        return entry, raw
    if output.datatype != "BYTES":
        entry["data"] = output.data.reshape(-1)
        return entry, None
    try:
        entry["data"] = [element.decode() for element in output.data]
    except UnicodeDecodeError:
        text = f"output {output.name!r} is not UTF-8: ask for it with binary_data true"
        raise invalid(text) from None
    return entry, None
