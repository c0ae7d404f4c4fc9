"""What the graphs of a model share, and how attributes and types become messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir.sizes import is_symbolic
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.compositions import Unsupported
from mycelia.io.onnx import onnx_pb2 as pb
from mycelia.io.onnx.types import number_of
from mycelia.io.raw import of_tensor

# Kinds of attributes.
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 5, 6, 7, 8


class Ref:
    """A tensor of the model: its name and dtype, and its shape where that is known (-1: an open size)."""

    __slots__ = ("name", "dtype", "shape")

    def __init__(self, name: str, dtype: DType, shape: tuple[int, ...] | None = None) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape

    @property
    def rank(self) -> int:
        """Number of axes of an input of a rule, or of a constant."""
        assert self.shape is not None
        return len(self.shape)


class ModelWriter:
    """What the graphs of a model share: names, constants, the version of the operators."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.taken: set[str] = set()
        self.counts: dict[str, int] = {}
        self.constants: dict[tuple, Ref] = {}
        self.initializers: dict[
            str, tuple[Any, memoryview]
        ] = {}  # name -> TensorProto without data, its data

    def name(self, label: str) -> str:
        """A name that nothing has yet."""
        while True:
            count = self.counts[label] = self.counts.get(label, -1) + 1
            name = f"{label}_{count}"
            if name not in self.taken:
                self.taken.add(name)
                return name

    def take(self, name: str) -> str:
        """This name, or if something has it, one like it."""
        if name in self.taken:
            return self.name(name)
        self.taken.add(name)
        return name

    def initializer(self, name: str, tensor: Any) -> Ref:
        """A tensor that is part of the file."""
        raw = of_tensor(tensor)
        proto = pb.TensorProto(name=name, dims=raw.shape, data_type=number_of(tensor.dtype))
        self.initializers[name] = proto, memoryview(raw.data).cast("B")
        return Ref(name, tensor.dtype, tuple(raw.shape))

    def constant(self, tensor: Tensor) -> Ref:
        """An initializer with a name of its own; equal ones are written once."""
        key = tensor.dtype.name, tuple(tensor.shape), bytes(of_tensor(tensor).data)
        if key not in self.constants:
            self.constants[key] = self.initializer(self.name("constant"), tensor)
        return self.constants[key]


def write_attribute(proto: Any, value: Any, what: str) -> None:
    if is_symbolic(value):
        raise Unsupported(f"{what} = {value}, which follows from an open size")
    if isinstance(value, (bool, int, np.integer)):
        proto.type, proto.i = _INT, int(value)
    elif isinstance(value, float):
        proto.type, proto.f = _FLOAT, value
    elif isinstance(value, str):
        proto.type, proto.s = _STRING, value.encode()
    elif isinstance(value, pb.GraphProto):
        proto.type = _GRAPH
        proto.g.CopyFrom(value)
    elif isinstance(value, pb.TensorProto):
        proto.type = _TENSOR
        proto.t.CopyFrom(value)
    elif isinstance(value, (tuple, list)) and value and isinstance(value[0], str):
        proto.type = _STRINGS
        proto.strings.extend(text.encode() for text in value)
    elif isinstance(value, (tuple, list)) and any(isinstance(n, float) for n in value):
        proto.type = _FLOATS
        proto.floats.extend(value)
    elif isinstance(value, (tuple, list)):
        proto.type = _INTS
        proto.ints.extend(int(n) for n in value)
    else:
        raise TypeError(f"{what} cannot be {value!r}")


def write_info(info: Any, dtype: DType, shape: Sequence[Any] | None) -> None:
    """The type of an input or result; sizes are numbers, names, or -1 for what is not known."""
    tensor = info.type.tensor_type
    tensor.elem_type = number_of(dtype)
    if shape is None:
        return
    tensor.shape.SetInParent()
    for n in shape:
        dim = tensor.shape.dim.add()
        if isinstance(n, str):
            dim.dim_param = n
        elif n >= 0:
            dim.dim_value = n
