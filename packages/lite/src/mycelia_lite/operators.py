"""Operators of the program's own: Custom nodes whose shapes and results a function of Python computes."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from mycelia_lite import runtime
from mycelia_lite.enums import DataType


class Node:
    """A Custom node at work.

    `inputs`: (DataType, shape, array of a constant or None) each, None for one that is left out.
    """

    def __init__(self, handle: int) -> None:
        library, count = runtime.library(), ctypes.c_size_t()
        self._handle = handle
        self.name = runtime.text(library.MSDelegateNodeGetName(handle))
        tensors = library.MSDelegateNodeGetInputs(handle, ctypes.byref(count))
        self.inputs = [_described(tensors[i]) for i in range(count.value)]

    def bytes(self, name: str) -> bytes:
        """An attribute as the file has it.  Errors: KeyError if there is none of the name."""
        size = ctypes.c_size_t()
        found = runtime.library().MSDelegateNodeGetCustomAttribute(
            self._handle, name.encode(), ctypes.byref(size)
        )
        if not found:
            raise KeyError(f"node '{self.name}' has no attribute '{name}'")
        return ctypes.string_at(found, size.value)

    def numbers(self, name: str, dtype: str) -> list:
        """An attribute as numbers: the converter writes "<i8" for integers and "<f8" for others.

        Errors: KeyError, ValueError if the bytes are not so many.
        """
        return np.frombuffer(self.bytes(name), dtype).tolist()


Infer = Callable[[Node], Sequence[tuple[DataType, Sequence[int]]]]
Compute = Callable[..., Sequence[np.ndarray]]


def register_operator(kind: str, infer: Infer, compute: Compute) -> None:
    """Let Custom nodes of the type `kind` run in models of this process that are built from now on.

    `infer(node)`: (DataType, shape) of each result; called when a model is built or resized. `compute(node,
    *arrays)`: the results for inputs, None for one that is left out. The arrays hold for the call.

    What a function raises is the cause of the RuntimeError of `build_from_file`, `resize` or `predict`.

    Errors: TypeError, RuntimeError for an empty name.
    """
    if not isinstance(kind, str):
        raise TypeError(f"kind must be a str, but got {type(kind).__name__}")
    if not callable(infer) or not callable(compute):
        raise TypeError("infer and compute must be functions")
    calls = _Calls(infer, compute)
    runtime.check(runtime.library().MSRegisterCustomOperator(kind.encode(), ctypes.byref(calls.native)))
    _registered.append(calls)  # models that were built keep what was registered then


_registered: list[_Calls] = []


class _Calls:
    """The functions as the library calls them."""

    def __init__(self, infer: Infer, compute: Compute) -> None:
        self._infer, self._compute = infer, compute
        self._nodes: dict[int, Node] = {}  # of the kernels, by number
        self._made = itertools.count(1)
        self._run = runtime.KernelRun(runtime.guarded(self._results))
        self._destroy = runtime.Destroy(lambda kernel: self._nodes.pop(kernel, None) and None)
        infer_call, create_call = map(runtime.guarded, (self._shapes, self._kernel))
        self.native = runtime.CustomOperator(
            None, runtime.CustomInfer(infer_call), runtime.CustomCreate(create_call), runtime.Destroy()
        )

    def _shapes(self, _user, handle, types, shapes, count: int) -> None:
        found = list(self._infer(Node(handle)))
        if len(found) != count:
            raise ValueError(f"infer gave {len(found)} results for a node that has {count}")
        for i, (dtype, shape) in enumerate(found):
            if len(shape) > len(shapes[i].sizes):
                raise ValueError(f"infer gave a shape of {len(shape)} dimensions")
            types[i], shapes[i].count = DataType(dtype), len(shape)
            shapes[i].sizes[: len(shape)] = list(shape)

    def _kernel(self, _user, handle, kernel) -> None:
        number = next(self._made)
        self._nodes[number] = Node(handle)
        kernel[0] = runtime.DelegateKernel(number, self._run, self._destroy)

    def _results(self, number: int, inputs, input_count: int, outputs, output_count: int) -> None:
        arrays = [_array(inputs[i]) for i in range(input_count)]
        results = [np.asarray(r) for r in self._compute(self._nodes[number], *arrays)]
        if len(results) != output_count:
            raise ValueError(f"compute gave {len(results)} results for a node that has {output_count}")
        for i, result in enumerate(results):
            place = _array(outputs[i])
            if result.dtype != place.dtype or result.shape != place.shape:
                raise ValueError(
                    f"result {i} of compute must be {place.dtype} {list(place.shape)}, but is {result.dtype} "
                    f"{list(result.shape)}"
                )
            place[...] = result


def _described(tensor: runtime.DelegateTensor) -> tuple | None:
    if not tensor.data_type:
        return None
    constant = _array(tensor).copy() if tensor.data else None
    return DataType(tensor.data_type), tensor.shape[: tensor.rank], constant


def _array(tensor: runtime.DelegateTensor) -> np.ndarray | None:
    """The elements where they lie."""
    if not tensor.data_type:
        return None
    dtype, shape = DataType(tensor.data_type).numpy, tensor.shape[: tensor.rank]
    if not tensor.data_size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_uint8 * tensor.data_size).from_address(tensor.data)
    return np.frombuffer(memory, dtype).reshape(shape)
