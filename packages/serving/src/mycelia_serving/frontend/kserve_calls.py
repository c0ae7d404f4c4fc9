"""The calls of KServe's Open Inference Protocol v2: what each means, whatever wire it comes by.

A call has the name of its gRPC method, takes the fields of that request and gives those of the response. They
are the keys of the JSON as well: `kserve_grpc` and `kserve_rest` only read and write them on their wires.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from mycelia_serving.errors import ServingError, clip
from mycelia_serving.frontend.kserve import (
    EXTENSIONS,
    PLATFORM,
    Model,
    Models,
    Repository,
    Tensor,
    check_outputs,
    datatype,
    make_outputs,
    make_request,
    urgency,
)
from mycelia_serving.frontend.metrics import Metrics
from mycelia_serving.frontend.status import add_headers
from mycelia_serving.frontend.tracing import submitter
from mycelia_serving.request import Call, Dispatcher, Reply, Request
from mycelia_serving.wire.tensors import invalid

_DURATIONS = {"success": "success", "fail": "fail", "queue": "queue", "compute_infer": "run"}


@dataclass(slots=True)
class Inference:
    """What an inference request holds. wanted: names of outputs; empty: all."""

    tensors: list[Tensor]
    wanted: list[str]
    parameters: dict[str, object]


class Wire(Protocol):
    """One inference call on its wire."""

    protocol: str  # for the metrics
    received: int  # bytes

    def read(self) -> Inference:
        """What is asked. Errors: ServingError."""

    def write(self, model: Model, reply: Reply, outputs: list[Tensor]) -> None:
        """Make the answer of a request that succeeded. Errors: ServingError."""

    def refuse(self, error: ServingError) -> None:
        """Make the answer of one that failed."""

    def size(self) -> int:
        """Bytes of the answer."""

    def send(self) -> None:
        """Give the answer away."""


class InferenceCalls:
    """The calls by name, for all wires of one dispatcher."""

    def __init__(
        self, dispatcher: Dispatcher, models: Models, metrics: Metrics, repository: Repository
    ) -> None:
        self._submit = submitter(dispatcher)
        self._dispatcher = dispatcher
        self._models = models
        self._metrics = metrics
        self._repository = repository
        self.at_once: dict[str, Callable[..., dict]] = {
            "ServerLive": lambda: {"live": True},
            "ServerReady": lambda: {"ready": dispatcher.ready()},
            "ServerMetadata": _server_metadata,
            "ModelReady": self._model_ready,
            "ModelMetadata": self._model_metadata,
            "ModelStatistics": self._model_statistics,
            "RepositoryIndex": self._index,
        }

    # ---- about the server and its models -------------------------------------------------------------------

    def _model_ready(self, name: str, version: str) -> dict:
        """`ready` is None for a model that is not here."""
        return {"ready": self._models.ready(name, version)}

    def _model_metadata(self, name: str, version: str) -> dict:
        model = self._models.get(name, version)

        def tensors(infos) -> list[dict]:
            # "parameters" is only in the JSON: the message has no place for it
            return [
                {
                    "name": info.name,
                    "datatype": datatype(info.dtype),
                    "shape": model.tensor_shape(info),
                    **({} if info.dtype is not None else {"parameters": {"any_datatype": True}}),
                }
                for info in infos
            ]

        return {
            "name": model.name,
            "versions": [version] if version else self._models.versions(model),
            "platform": PLATFORM,
            "inputs": tensors(model.method.inputs),
            "outputs": tensors(model.method.outputs),
        }

    def _model_statistics(self, name: str = "", version: str = "") -> dict:
        """Of one model, or of all."""
        found = [self._models.get(name, version)] if name else self._models.all()
        return {"model_stats": [self._statistics(model) for model in found]}

    def _statistics(self, model: Model) -> dict:
        sums = self._metrics.statistics(model.servable.name, model.method.name, model.servable.version)
        return {
            "name": model.name,
            "version": str(model.servable.version),
            "last_inference": sums["last"],
            "inference_count": sums["succeeded"],
            "execution_count": sums["run_count"],
            "inference_stats": {
                field: {"count": sums[f"{prefix}_count"], "ns": sums[f"{prefix}_ns"]}
                for field, prefix in _DURATIONS.items()
            },
        }

    def _index(self, ready: bool = False, repository_name: str = "") -> dict:
        keys = ("name", "version", "state", "reason")
        rows = self._models.index(self._repository, ready)
        return {"models": [dict(zip(keys, row, strict=True)) for row in rows]}

    def change(
        self, action: str, name: str, headers: Mapping[str, str], tell: Callable[[ServingError | None], None]
    ) -> None:
        """RepositoryModelLoad and RepositoryModelUnload: "load" or "unload"; `tell` hears how it went."""
        self._repository.change(action, name, headers.get("authorization", ""), tell)

    # ---- inference -----------------------------------------------------------------------------------------

    def infer(
        self,
        name: str,
        version: str,
        wire: Wire,
        headers: Mapping[str, str],
        deadline: float | None = None,
    ) -> Call | None:
        """ModelInfer. deadline: `time.monotonic()` after which nobody waits. Errors: ServingError."""
        start = time.perf_counter()
        count, protocol, received = self._metrics.count, wire.protocol, wire.received
        try:
            model = self._models.get(name, version)
            asked = wire.read()
            wanted = asked.wanted
            check_outputs(model, wanted)
            request = make_request(model, version, asked.tensors, protocol)
            request.deadline = deadline
            if headers:
                add_headers(request, headers)
            if asked.parameters:
                _read_parameters(request, asked.parameters)
            del asked  # large tensors are in the request now
        except ServingError as error:
            count(protocol, "", "", Reply(error=error), start, received, 0)
            raise

        def answer(reply: Reply) -> None:
            try:
                wire.write(model, reply, make_outputs(model, reply, wanted))
            except ServingError as error:
                wire.refuse(error)
            count(protocol, request.servable, request.method, reply, start, received, wire.size())
            wire.send()

        return self._submit(request, answer)


def _server_metadata() -> dict:
    from mycelia_serving import __version__

    return {"name": "mycelia-serving", "version": __version__, "extensions": EXTENSIONS}


def _read_parameters(request: Request, parameters: dict[str, object]) -> None:
    """Those of a request: how urgent it is, and for how long its caller waits, in microseconds."""
    priority, timeout = parameters.get("priority", 0), parameters.get("timeout", 0)
    if type(priority) is not int or type(timeout) is not int:
        raise invalid("'priority' and 'timeout' are integers")
    if parameters.get("sequence_id"):
        raise invalid("sequences are not supported")
    if priority:
        request.priority = urgency(priority)
    if timeout > 0:
        deadline = time.monotonic() + timeout * 1e-6
        request.deadline = deadline if request.deadline is None else min(deadline, request.deadline)


def check_parameters(name: str, parameters: Mapping[str, object]) -> None:
    """Refuse what the parameters of an input or output ask of other servers: without it results would be
    silently wrong.
    """
    if "shared_memory_region" in parameters:
        raise invalid(f"{clip(name)}: shared memory is not taken from clients")
    if parameters.get("classification"):
        raise invalid(f"output {clip(name)}: classification is not supported")
