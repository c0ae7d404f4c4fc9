"""What the runtime plans for other processors (`MSModelGetProgram`): values, and steps that are calls of ops.

Operators of a file have become few kinds of ops here, with known shapes; weights have their own order.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mycelia.ops.define import registry
from mycelia_lite import runtime
from mycelia_lite.enums import DataType
from mycelia_lite.model import Model

_BRAIN = np.dtype("V2")  # bfloat16, which NumPy lacks: it is cast before it is computed with
_SHORTEST = 17  # numbers in a myc_ints: how many, then places for 16


@dataclass
class Value:
    """A tensor; `root` is the value whose memory it shares, from byte `offset` on."""

    dtype: np.dtype
    shape: tuple[int, ...]
    data: np.ndarray | None
    root: int
    offset: int = 0

    @property
    def size(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def bytes(self) -> int:
        """How much memory its elements take."""
        return self.size * self.dtype.itemsize


@dataclass
class Step:
    """A call of an op; -1 among the inputs is one that is left out."""

    op: str
    inputs: list[int]
    outputs: list[int]
    attributes: dict[str, Any] = field(default_factory=dict)
    node: str = ""
    kind: str = ""


@dataclass
class Border:
    """An input or output of the model."""

    name: str
    value: int
    quantization: tuple[tuple[float, int], ...] = ()


@dataclass
class State:
    """A variable: what a run reads, what it holds after the run, and its first elements."""

    now: int
    next: int
    first: np.ndarray


@dataclass
class Program:
    """A model for one set of shapes."""

    values: list[Value]
    steps: list[Step]
    inputs: list[Border]
    outputs: list[Border]
    states: list[State]

    def copy(self) -> Program:
        """One that changes apart from this one; constants are the same."""
        return Program(
            [replace(v) for v in self.values],
            [Step(s.op, [*s.inputs], [*s.outputs], dict(s.attributes), s.node, s.kind) for s in self.steps],
            [replace(b) for b in self.inputs],
            [replace(b) for b in self.outputs],
            [replace(s) for s in self.states],
        )  # fmt: skip

    def add(self, dtype: Any, shape: tuple[int, ...], data: np.ndarray | None = None) -> int:
        """A new value with memory of its own."""
        self.values.append(Value(np.dtype(dtype), tuple(map(int, shape)), data, len(self.values)))
        return len(self.values) - 1

    def constant(self, data: np.ndarray) -> int:
        """A new constant."""
        data = np.ascontiguousarray(data)
        return self.add(data.dtype, data.shape, data)

    def view(self, of: int, shape: tuple[int, ...], offset: int) -> int:
        """A new value that lies in `of`, from byte `offset` of it on."""
        made = self.add(self.values[of].dtype, shape)
        self.values[made].root, self.values[made].offset = (
            self.values[of].root,
            self.values[of].offset + offset,
        )
        return made

    def move(self, root: int, target: int, offset: int) -> None:
        """Let all that lies in `root` lie in `target`, from byte `offset` of it on."""
        place = self.values[target]
        new_root, new_offset = place.root, place.offset + offset
        for value in self.values:
            if value.root == root:
                value.root, value.offset = new_root, value.offset + new_offset


class _Value(ctypes.Structure):
    """MSProgramValue"""

    _fields_ = (
        ("data_type", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("root", ctypes.c_int32),
        ("offset", ctypes.c_int64),
    )


class _Step(ctypes.Structure):
    """MSProgramStep"""

    _fields_ = (
        ("op", ctypes.c_char_p),
        ("node_name", ctypes.c_char_p),
        ("node_type", ctypes.c_char_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_bytes", ctypes.c_size_t),
        ("inputs", ctypes.POINTER(ctypes.c_int32)),
        ("input_count", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(ctypes.c_int32)),
        ("output_count", ctypes.c_size_t),
    )


class _Program(ctypes.Structure):
    """MSProgram"""

    _fields_ = (
        ("values", ctypes.POINTER(_Value)),
        ("value_count", ctypes.c_size_t),
        ("steps", ctypes.POINTER(_Step)),
        ("step_count", ctypes.c_size_t),
        ("inputs", ctypes.POINTER(ctypes.c_int32)),
        ("input_count", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(ctypes.c_int32)),
        ("output_count", ctypes.c_size_t),
        ("states", ctypes.POINTER(ctypes.c_void_p)),
        ("state_count", ctypes.c_size_t),
    )


def read(model: Model) -> Program:
    """The program of a built model for its present shapes.

    Errors: NotImplementedError where what runs depends on data, RuntimeError for open sizes.
    """
    given = _Program()
    status = runtime.library().MSModelGetProgram(model._handle, ctypes.byref(given))
    if status == -7:
        raise NotImplementedError(f"Micro: {runtime.reason()}")
    runtime.check(status)
    values = [_value(given.values[i], i) for i in range(given.value_count)]
    steps = [_step(given.steps[i]) for i in range(given.step_count)]
    inputs, outputs = given.inputs[: given.input_count], given.outputs[: given.output_count]
    borders = [
        [Border(t.name, v, _quantization(t)) for t, v in zip(tensors, numbers)]
        for tensors, numbers in ((model.get_inputs(), inputs), (model.get_outputs(), outputs))
    ]
    states = []
    for i in range(given.state_count):
        now = inputs[len(borders[0]) + i]
        v = values[now]
        first = _array(given.states[i], v.dtype, v.shape)
        states.append(State(now, outputs[len(borders[1]) + i], first))
    return Program(values, steps, *borders, states)


def _quantization(tensor: Any) -> tuple[tuple[float, int], ...]:
    return tuple(tensor.quant_params)


def _array(address: int | None, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(address, size) if size else b"", dtype).reshape(shape)


def _value(given: _Value, index: int) -> Value:
    shape = tuple(given.shape[: given.rank])
    kind = DataType(given.data_type)
    dtype = _BRAIN if kind == DataType.BFLOAT16 else kind.numpy if kind else np.dtype(np.float32)
    data = _array(given.data, dtype, shape) if given.data else None
    root, offset = (index, 0) if data is not None else (given.root, given.offset)
    return Value(dtype, shape, data, root, offset)


def _step(given: _Step) -> Step:
    op = given.op.decode()
    raw = ctypes.string_at(given.attributes, given.attribute_bytes) if given.attribute_bytes else b""
    return Step(
        op,
        given.inputs[: given.input_count],
        given.outputs[: given.output_count],
        _attributes(op, raw),
        runtime.text(given.node_name),
        runtime.text(given.node_type),
    )


# ---- attributes: fields of mycelia/op_attrs.h, which are made of the op blocks, and of the runtime's own ops

_RESCALE = "multiplier left right up zero low high"
_OWN = {
    "combine": "how x_zero y_zero x_scale:double y_scale:double zero low high",
    "dequantize": "scale:double zero low high",
    "quantize": "scale:double zero low high",
    "dynamic_quantize": "together",
    "integer_depthwise": "kernel:myc_ints stride:myc_ints pad:myc_ints dilation:myc_ints x_zero zero low "
    "high",
    "integer_pool": "kernel_height kernel_width stride_height stride_width pad_top pad_left largest x_zero "
    "scale:double zero low high",
    "crop_and_resize": "number:double",
    "deform_conv": "kernel_height kernel_width stride_height stride_width pad_top pad_left dilation_height "
    "dilation_width group offset_group",
    "detections": "scale0:double scale1:double scale2:double scale3:double overlap:double score:double most "
    "most_of_class classes_of_box classes regular",
    "grid_sample": "mode padding corners",
    "lookup": "first",
    "nms": "center most overlap:double score:double with_score",
    "pair": f"first how {_RESCALE}",
    "random": "seed seed2 mean:double scale:double normal",
    "resample": "axis",
    "rescale": _RESCALE,
    "rescale_columns": "grows together zero low high",
    "reverse_sequence": "along batch",
    "roi_align": "largest half_pixel samples scale:double",
    "roi_pool": "number:double",
    "take_rows": "axis",
    "trees": "how",
}


def _fields(op: str) -> list[tuple[str, str]]:
    """(type, name) of each field."""
    if op in _OWN:
        parts = [part.partition(":") for part in _OWN[op].split()]
        return [(kind or "int64_t", name) for name, _, kind in parts]
    definition = registry[op].definition if op in registry else None
    declared = [f for a in definition.attrs if a.in_c for f in a.c_fields()] if definition else []
    return [tuple(text.partition(";")[0].split()) for text in declared]


def _attributes(op: str, raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = 0
    for kind, name in _fields(op):
        if at >= len(raw):
            break
        if kind == "myc_ints":
            count, *numbers = struct.unpack_from(f"<{_SHORTEST}q", raw, at)
            found[name] = numbers[:count]
            at += 8 * _SHORTEST
        else:
            (found[name],) = struct.unpack_from("<d" if kind == "double" else "<q", raw, at)
            at += 8
    return found
