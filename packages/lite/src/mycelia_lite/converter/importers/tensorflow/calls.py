"""What the functions of TensorFlow's operators share: the node at work, its attributes, the table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.nodes import NodeCall, OperatorEntry
from mycelia_lite.converter.importers.onnx.calls import shape_of
from mycelia_lite.converter.importers.tensorflow.file import attribute_of, dtype_of

OPERATORS: dict[str, OperatorEntry] = {}
# How to compute, or of the training of the graph; never what.
_IGNORED = {
    "use_cudnn_on_gpu", "validate_shape", "use_locking", "parallel_iterations", "num_lower_iters", "dtype",
    "data_type", "message", "transpose_size", "output_shapes", "grad_x", "grad_y", "grad_a",
    "grad_b", "incompatible_shape_error",
}  # fmt: skip


def operator(*names: str, sizes: Collection[int] = ()) -> Callable:
    """Decorator: the function imports the operators of these names."""

    def enter(function: Callable) -> Callable:
        OPERATORS.update(dict.fromkeys(names, OperatorEntry(function, sizes)))
        return function

    return enter


class Call(NodeCall):
    """One node of the graph: attributes are read by `get`; one that is set and that no one read is an error.

    Types of inputs follow from these, so that attributes that are types need not be read.
    """

    def __init__(self, message: Any) -> None:
        super().__init__(message.op, message.name)
        self.attributes: Mapping[str, Any] = message.attr
        self.around: Any = None  # of a node that runs graphs: control.Surroundings
        self.read: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        if name not in self.attributes:
            return default
        kind = object if default is None else type(default)
        return self._of_kind(name, attribute_of(self.attributes[name]), kind)

    def need(self, name: str, kind: type) -> Any:
        """An attribute without a default, of this type: a number, a text, a list of integers, a message."""
        if name not in self.attributes:
            raise self.fail(f"the attribute '{name}' is missing", Code.INVALID_OP_ATTR)
        self.read.add(name)
        return self._of_kind(name, attribute_of(self.attributes[name]), kind)

    def _of_kind(self, name: str, value: Any, kind: type) -> Any:
        is_kind = value is not None if kind is object else type(value) is kind
        if not is_kind or (kind is list and any(type(v) is not int for v in value)):
            wanted = {object: "set", list: "a list of integers"}.get(kind, f"of type {kind.__name__}")
            raise self.fail(f"its attribute '{name}' is {value!r}, not {wanted}", Code.INVALID_OP_ATTR)
        return value

    def choice(self, name: str, default: Any, *known: Any) -> Any:
        """An attribute of which only some values are imported."""
        value = self.get(name, default)
        if value not in known:
            raise self.option(name, value, f"must be one of {list(known)}")
        return value

    def dtype(self, name: str, default: Any = None) -> Any:
        """The dtype that an attribute names."""
        number = self.get(name, 0)
        return default if not number and default is not None else dtype_of(number, f"node '{self.name}'")

    def unread(self) -> str | None:
        for name in sorted(self.attributes):
            kind = self.attributes[name].WhichOneof("value")
            is_type = kind == "type" or kind == "list" and bool(self.attributes[name].list.type)
            empty = kind == "list" and not self.attributes[name].list.ListFields()
            counts = name == "N" or name.startswith(
                "_"
            )  # how many inputs, and notes of TensorFlow for itself
            if not (name in self.read or name in _IGNORED or is_type or empty or counts):
                return name
        return None

    def option(self, name: str, value: Any, why: str) -> ConversionError:
        """An error about an attribute's value."""
        return self.fail(f"attribute '{name}' is {value!r}, but {why}", Code.INVALID_OP_ATTR)


def channels_first(call: Call, x: Any) -> bool:
    """Whether images have the channels first. Errors: ConversionError for what is no image."""
    if len(shape_of(x)) != 4:
        raise call.fail(f"a tensor of {len(shape_of(x))} axes, 4 are needed")
    return call.choice("data_format", "NHWC", "NHWC", "NCHW") == "NCHW"


def spatial(values: Sequence[int], first: bool, call: Call, name: str) -> tuple[int, int]:
    """Of four numbers, one for each axis, those of rows and columns; the others must be 1."""
    rows, columns = (2, 3) if first else (1, 2)
    if (
        len(values) != 4
        or min(values) < 1
        or any(v != 1 for i, v in enumerate(values) if i not in (rows, columns))
    ):
        raise call.option(name, list(values), "must be 1 for images and channels and at least 1 elsewhere")
    return values[rows], values[columns]
