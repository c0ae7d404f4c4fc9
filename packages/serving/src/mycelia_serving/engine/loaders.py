"""Loads model files. Formats join by the hook `mycelia_servable_loaders`; MindIR, through core, is built in.

A loader is called with the path of a file and `ModelOptions`, and returns a `LoadedModel`. It raises any
exception that says what is wrong; the server adds the file's name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from mycelia_serving.servable.contexts import Context


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What a loader may want to know beside the file."""

    device_type: str | None = None  # None: the best that is there
    device_id: int = 0
    dec_key: bytes | None = None
    dec_mode: str = "AES-GCM"
    context: Context | None = None
    config_file: str | None = None


@dataclass(frozen=True, slots=True)
class ModelInput:
    """An input as the file has it, the batch dimension included; -1 is a size that is open."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]


class LoadedModel(Protocol):
    """A model, or sub-graph, that is ready to run. It is called by one thread at a time.

    If calls change it, a method `reset()` makes it again as the file has it: it is called once, after the
    first runs on zeros. An attribute `runs` says how many calls there may be at once, if more than one; a
    method `close()` is called at the end.
    """

    inputs: Sequence[ModelInput]

    def __call__(self, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The outputs. The arrays are C-contiguous, perhaps read-only, and have the dtypes of `inputs`."""


Loader = Callable[[str, ModelOptions], LoadedModel]


def formats() -> dict[str, Loader]:
    """The loaders of this installation, by format in lower case."""
    from mycelia import plugins

    found: dict[str, Loader] = {}
    for loaders in plugins.manager().hook.mycelia_servable_loaders():
        for name, loader in loaders.items():
            found.setdefault(name.lower(), loader)
    return found


def load(format_name: str, path: str, options: ModelOptions) -> LoadedModel:
    """The model in a file. Errors: RuntimeError that names the file and the cause."""
    known = formats()
    # MindIR_Lite names two kinds of files: MindIR, and .ms, which Lite loads.
    loader = known.get("mindir" if path.endswith(".mindir") else format_name)
    if loader is None:
        raise RuntimeError(
            f"The model file {path} cannot be loaded: the format {format_name} needs a package that brings a "
            f"loader for it (hook mycelia_servable_loaders); there are loaders for {', '.join(sorted(known))}"
        )
    try:
        return loader(path, options)
    except Exception as error:
        raise RuntimeError(f"The model file {path} cannot be loaded: {error}") from error


# ---- MindIR ------------------------------------------------------------------------------------------------


class _MindIR:
    """A MindIR, compiled once per shape of its inputs."""

    __slots__ = ("_call", "_casts", "_one", "_parameters", "inputs")

    def __init__(self, graph: object) -> None:
        import mycelia as ms
        from mycelia import nn

        cell = nn.GraphCell(graph)
        cell.set_train(False)
        # What branches on data is not one graph: it runs op by op.
        self._call = cell if graph.has_branches else ms.jit(cell)
        self._one = ms.Tensor.from_numpy
        # numpy has no bfloat16: clients send float32
        self._casts = [i for i, (_, dtype, _) in enumerate(graph.inputs) if dtype == ms.bfloat16]
        self._parameters = []
        if graph.writes:
            self._parameters = [(p, ms.Tensor(p.asnumpy())) for p in graph.parameters.values()]
        self.inputs = tuple(
            ModelInput(name, np.dtype(ms.dtype_to_nptype(dtype)), tuple(shape))
            for name, dtype, shape in graph.inputs
        )

    def __call__(self, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        one = self._one
        tensors = [one(a) for a in arrays]
        for i in self._casts:
            tensors[i] = tensors[i].bfloat16()
        outputs = self._call(*tensors)
        if type(outputs) is not tuple:
            return (outputs.asnumpy(),)
        return tuple([o.asnumpy() for o in _flat(outputs)])

    def reset(self) -> None:
        for parameter, value in self._parameters:
            parameter.set_data(value)


def _flat(outputs: tuple) -> Iterator:
    """The tensors in nested tuples."""
    for one in outputs:
        if type(one) is tuple:
            yield from _flat(one)
        else:
            yield one


def load_mindir(path: str, options: ModelOptions) -> LoadedModel:
    """A MindIR file through core. `thread_num` of its context holds for all models of the process.

    Errors: those of `mycelia.load`; RuntimeError for a missing backend.
    """
    import mycelia as ms

    _check_device(options)
    if options.context is not None and options.context.thread_num:
        ms.set_context(runtime_num_threads=options.context.thread_num)
    if not os.access(path, os.R_OK):
        raise RuntimeError("it cannot be read")
    return _MindIR(ms.load(path, dec_key=options.dec_key, dec_mode=options.dec_mode))


def _check_device(options: ModelOptions) -> None:
    device = options.device_type
    if device is None or device.upper() == "CPU":
        return
    backend = {"GPU": "mycelia-backend-cuda", "ASCEND": "mycelia-backend-ascend-sim"}.get(device.upper())
    needed = f"no installed backend runs on {device}" + (f"; {backend} is to bring it" if backend else "")
    raise RuntimeError(f"the device type is {device}, but {needed}")
