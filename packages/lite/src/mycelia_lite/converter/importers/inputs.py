"""Inputs of a model: their shapes as the file has them or as they are asked for, and the Tensors for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mycelia.capture.trace import Trace
from mycelia.ir import TensorType
from mycelia_lite.converter.errors import Code, ConversionError


def require_inputs(names: Collection[str], given: Mapping[str, Sequence[int]]) -> None:
    """Errors: ConversionError if a shape is given for what is no input."""
    for name in given:
        if name not in names:
            raise ConversionError(
                Code.INPUT_PARAM_INVALID, f"inputShape names '{name}', but the inputs are {list(names)}"
            )


def given_shape(name: str, shape: Sequence[int], given: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """The shape of an input, `shape` in the file.

    Errors: ConversionError for another number of dimensions.
    """
    wanted = tuple(given.get(name, shape))
    if len(wanted) != len(shape):
        raise ConversionError(
            Code.INPUT_PARAM_INVALID,
            f"inputShape gives '{name}' {len(wanted)} dimensions, but it has {len(shape)}",
        )
    return wanted


def parameter(
    trace: Trace, name: str, dtype: Any, shape: Sequence[int], labels: Sequence[str], symbols: dict[str, Any]
) -> Any:
    """A Tensor for an input; sizes of -1 are open, those with the same label ("" has none) are the same."""
    tensor = trace.parameter(TensorType(dtype, tuple(shape)), name)
    sizes = list(tensor.traced.type.shape)
    for axis, (n, label) in enumerate(zip(shape, labels)):
        if n < 0 and label:
            sizes[axis] = symbols.setdefault(label, sizes[axis])
    tensor.traced.type = TensorType(dtype, tuple(sizes))
    return tensor
