"""What the functions of Caffe's layers share: the layer at work, its parameters, the table of layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mycelia as ms
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.nodes import NodeCall
from mycelia_lite.converter.importers.onnx.calls import shape_of

LAYERS: dict[str, Callable] = {}
# Of training, or how to compute; never what.
_IGNORED = {
    "weight_filler", "bias_filler", "filler", "engine", "force_nd_im2col", "stable_prod_grad",
    "dropout_ratio",
}  # fmt: skip


def layer(*types: str) -> Callable:
    """Decorator: ``(call, *inputs)`` imports the layers of these types."""

    def enter(function: Callable) -> Callable:
        LAYERS.update(dict.fromkeys(types, function))
        return function

    return enter


class Call(NodeCall):
    """One layer: parameters are read by `get`; one that is set and that no one read is an error."""

    unit = "layer"

    def __init__(self, kind: str, message: Any, blobs: Sequence[ms.Tensor]) -> None:
        super().__init__(kind, message.name)
        self.message, self.blobs = message, blobs
        self.read: set[tuple[str, str]] = set()

    def _block(self, block: str) -> Any:
        return getattr(self.message, block, None)

    def get(self, block: str, name: str) -> Any:
        """A parameter, its default if it is not set; a list for one that repeats."""
        self.read.add((block, name))
        value = getattr(self._block(block), name)
        return list(value) if hasattr(value, "append") else value

    def has(self, block: str, name: str) -> bool:
        """Whether a parameter is set."""
        self.read.add((block, name))
        value = getattr(self._block(block), name)
        return bool(len(value)) if hasattr(value, "append") else self._block(block).HasField(name)

    def choice(self, block: str, name: str) -> str:
        """The name of an enum's member."""
        value = self.get(block, name)
        return self._block(block).DESCRIPTOR.fields_by_name[name].enum_type.values_by_number[value].name

    def unread(self) -> str | None:
        """A parameter that is set and was not read."""
        for field, value in self.message.ListFields():
            if not field.name.endswith("_param"):
                continue
            for inner, _ in value.ListFields():
                if (field.name, inner.name) not in self.read and inner.name not in _IGNORED:
                    return f"{field.name}.{inner.name}"
        return None

    def weights(self, least: int, most: int | None = None) -> list[ms.Tensor]:
        """The layer's blobs."""
        if not least <= len(self.blobs) <= (least if most is None else most):
            raise self.fail(
                f"it has {len(self.blobs)} blobs in the weight file, {least} are needed",
                Code.GRAPH_FILE_ERROR,
            )
        return list(self.blobs)

    def parameter(self, name: str, value: Any, why: str) -> ConversionError:
        """An error about a parameter's value."""
        return self.fail(f"attribute '{name}' is {value!r}, {why}", Code.INVALID_OP_ATTR)

    def axis(self, block: str, x: Any, name: str = "axis", extra: int = 0) -> int:
        """An axis of x counted from the front."""
        axis, rank = self.get(block, name), len(shape_of(x)) + extra
        if not -rank <= axis < rank:
            raise self.parameter(name, axis, f"but there are {rank} axes")
        return axis % rank
