"""KServe's protocol v2 over HTTP: JSON, with binary tensors after it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import chain

import numpy as np

from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.frontend.http import HttpReply, HttpRequest
from mycelia_serving.frontend.json_values import Arrays, Numbers, dump, load
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
from mycelia_serving.frontend.status import add_headers
from mycelia_serving.frontend.tracing import submitter
from mycelia_serving.request import Call, Dispatcher, Reply
from mycelia_serving.wire.tensors import MAX_RANK, invalid

_HEADER_LENGTH = "inference-header-content-length"
Done = Callable[[HttpReply], None]


def error_reply(error: ServingError) -> HttpReply:
    return HttpReply(error.http_status, dump({"error": error.message}))


class InferenceRoutes:
    """The paths under /v2."""

    def __init__(
        self, dispatcher: Dispatcher, models: Models, metrics: Metrics, repository: Repository
    ) -> None:
        self._dispatcher = dispatcher
        self._submit = submitter(dispatcher)
        self._models = models
        self._metrics = metrics
        self._repository = repository

    def handle(self, request: HttpRequest, segments: list[str], done: Done) -> Call | None:
        """Answer /v2/{segments}. Errors: ServingError."""
        post = request.method == "POST"
        match segments:
            case []:
                self._get(request)
                done(HttpReply(200, dump(self._server())))
            case ["health", "live"]:
                self._get(request)
                done(HttpReply(200, b'{"live":true}'))
            case ["health", "ready"]:
                self._get(request)
                ready = self._dispatcher.ready()
                done(HttpReply(200 if ready else 503, dump({"ready": ready})))
            case ["repository", "index"]:
                done(HttpReply(200, dump(self._index(request))))
            case ["repository", "models", name, "load" | "unload" as action] if post:
                self._change(action, name, request, done)
            case ["models", "stats"]:
                self._get(request)
                done(HttpReply(200, dump({"model_stats": [self._stats(m) for m in self._models.all()]})))
            case ["models", name, "versions", version, *rest]:
                return self._model(request, name, version, rest, done)
            case ["models", name, *rest]:
                return self._model(request, name, "", rest, done)
            case _:
                raise ServingError(Code.NOT_FOUND, f"nothing is at {clip(request.path)}")
        return None

    def _model(
        self, request: HttpRequest, name: str, version: str, rest: list[str], done: Done
    ) -> Call | None:
        if rest == ["infer"]:
            if request.method != "POST":
                raise ServingError(Code.WRONG_VERB, "inference requests are POST")
            return self._infer(request, name, version, done)
        self._get(request)
        if rest not in ([], ["ready"], ["stats"]):
            raise ServingError(Code.NOT_FOUND, f"nothing is at {clip(request.path)}")
        if rest == ["ready"]:
            ready = self._models.ready(name, version)
            status = 404 if ready is None else 200 if ready else 503
            done(HttpReply(status, dump({"name": name, "ready": ready is True})))
            return None
        model = self._models.get(name, version)
        if rest == ["stats"]:
            done(HttpReply(200, dump({"model_stats": [self._stats(model)]})))
        else:
            done(HttpReply(200, dump(self._metadata(model, version))))
        return None

    @staticmethod
    def _get(request: HttpRequest) -> None:
        if request.method not in ("GET", "HEAD"):
            raise ServingError(Code.WRONG_VERB, f"{clip(request.path)} is read by GET")

    # ---- about the server and its models -------------------------------------------------------------------

    @staticmethod
    def _server() -> dict:
        from mycelia_serving import __version__

        return {"name": "mycelia-serving", "version": __version__, "extensions": EXTENSIONS}

    def _metadata(self, model: Model, version: str) -> dict:
        def tensors(infos) -> list[dict]:
            return [
                {
                    "name": i.name,
                    "datatype": datatype(i.dtype),
                    "shape": model.tensor_shape(i),
                    **({} if i.dtype is not None else {"parameters": {"any_datatype": True}}),
                }
                for i in infos
            ]

        return {
            "name": model.name,
            "versions": [version] if version else self._models.versions(model),
            "platform": PLATFORM,
            "inputs": tensors(model.method.inputs),
            "outputs": tensors(model.method.outputs),
        }

    def _index(self, request: HttpRequest) -> list[dict]:
        asked = load(request.body)[0] if request.body else {}
        only_ready = type(asked) is dict and asked.get("ready") is True
        keys = ("name", "version", "state", "reason")
        return [dict(zip(keys, one, strict=True)) for one in self._models.index(self._repository, only_ready)]

    def _stats(self, model: Model) -> dict:
        sums = self._metrics.statistics(model.servable.name, model.method.name, model.servable.version)

        def duration(prefix: str) -> dict:
            return {"count": sums[f"{prefix}_count"], "ns": sums[f"{prefix}_ns"]}

        return {
            "name": model.name,
            "version": str(model.servable.version),
            "last_inference": sums["last"],
            "inference_count": sums["succeeded"],
            "execution_count": sums["run_count"],
            "inference_stats": {
                "success": duration("success"),
                "fail": duration("fail"),
                "queue": duration("queue"),
                "compute_infer": duration("run"),
            },
        }

    def _change(self, action: str, name: str, request: HttpRequest, done: Done) -> None:
        def tell(error: ServingError | None) -> None:
            done(HttpReply(200, b"{}") if error is None else error_reply(error))

        self._repository.change(action, name, request.headers.get("authorization", ""), tell)

    # ---- inference -----------------------------------------------------------------------------------------

    def _infer(self, sent: HttpRequest, name: str, version: str, done: Done) -> Call | None:
        start = time.perf_counter()
        count, received = self._metrics.count, len(sent.body)
        try:
            model = self._models.get(name, version)
            document, tensors = _read(sent)
            wanted, binary = _wanted(document)
            check_outputs(model, list(wanted))
            request = make_request(model, version, tensors, "v2-rest")
            add_headers(request, sent.headers)
            _read_parameters(request, _parameters(document))
        except ServingError as error:
            count("v2-rest", "", "", Reply(error=error), start, received, 0)
            raise
        identity = document.get("id", "")

        def answer(reply: Reply) -> None:
            try:
                outputs = make_outputs(model, reply, list(wanted))
                out = _reply(model, reply, name, identity, outputs, wanted, binary)
            except ServingError as error:
                out = error_reply(error)
            count("v2-rest", request.servable, request.method, reply, start, received, len(out.body))
            done(out)

        return self._submit(request, answer)


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
        _refuse_region(name, parameters)
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


def _refuse_region(name: str, parameters: dict) -> None:
    if "shared_memory_region" in parameters:
        raise invalid(f"{clip(name)}: shared memory is not taken from clients")
    if parameters.get("classification"):
        raise invalid(f"output {clip(name)}: classification is not supported")


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
        _refuse_region(entry["name"], parameters)
        wanted[entry["name"]] = parameters.get("binary_data")
    return wanted, _parameters(document).get("binary_data_output") is True


def _read_parameters(request, parameters: dict) -> None:
    priority, timeout = parameters.get("priority", 0), parameters.get("timeout", 0)
    if type(priority) is not int or type(timeout) is not int:
        raise invalid("'priority' and 'timeout' are integers")
    if parameters.get("sequence_id"):
        raise invalid("sequences are not supported")
    if priority:
        request.priority = urgency(priority)
    if timeout > 0:  # microseconds
        deadline = time.monotonic() + timeout * 1e-6
        request.deadline = min(deadline, request.deadline or math.inf)


def _reply(
    model: Model,
    reply: Reply,
    name: str,
    identity,
    outputs: list[Tensor],
    wanted: dict[str, bool | None],
    binary: bool,
) -> HttpReply:
    entries, raws = [], []
    for output in outputs:
        entry = {"name": output.name, "datatype": output.datatype, "shape": list(output.shape)}
        choice = wanted.get(output.name)
        if binary if choice is None else choice is True:
            raw = join_bytes(output.data) if output.datatype == "BYTES" else output.data.tobytes()
            entry["parameters"] = {"binary_data_size": len(raw)}
            raws.append(raw)
        elif output.datatype == "BYTES":
            try:
                entry["data"] = [element.decode() for element in output.data]
            except UnicodeDecodeError:
                text = f"output {output.name!r} is not UTF-8: ask for it with binary_data true"
                raise invalid(text) from None
        else:
            entry["data"] = output.data.reshape(-1)
        entries.append(entry)
    document = {
        "model_name": name,
        "model_version": str(reply.version or model.servable.version),
        "outputs": entries,
    }
    if identity:
        document["id"] = identity
    head = dump(document)
    if not raws:
        return HttpReply(200, head)
    return HttpReply(
        200,
        b"".join((head, *raws)),
        "application/octet-stream",
        (("Inference-Header-Content-Length", str(len(head))),),
    )
