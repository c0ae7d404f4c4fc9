"""Arguments of operators: numbers, texts, tuples and Tensors, in the forms that different files give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycelia.engine import ops
from mycelia.engine.base.dtypes import DType
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.values import dtype_of_id

_FORMATS = ("NCHW", "NHWC", "NHWC4", "HWKC", "HWCK", "KCHW", "CKHW", "KHWC", "CHWK", "HW", "HW4", "NC", "NC4",
            "NC4HW4", "NCDHW", "NWC", "NCW", "NDHWC")  # fmt: skip
_PAD_MODES = ("pad", "same", "valid", "full")
REDUCTIONS = ("sum", "mean", "none")


def text(value: Any, names: Sequence[str]) -> str:
    """An enumeration as lower-case text: it is a number as an input, text of either case as an attribute."""
    return names[value] if isinstance(value, int) else value.lower()


def is_channels_last(data_format: Any) -> bool:
    name = _FORMATS[data_format] if isinstance(data_format, int) and data_format >= 0 else data_format
    return name in ("NHWC", "NDHWC", "NWC")


def pad_mode_text(value: Any) -> str:
    mode = text(value, _PAD_MODES)
    return "pad" if mode == "calculated" else mode


def as_dtype(value: Any) -> DType | None:
    return dtype_of_id(value) if isinstance(value, int) and not isinstance(value, bool) else value


def ints(value: Any) -> tuple[int, ...]:
    """A tuple of ints from an int, a sequence, or a Tensor."""
    if isinstance(value, Tensor):
        return tuple(int(v) for v in value.asnumpy().reshape(-1))
    if isinstance(value, (tuple, list)):
        return tuple(int(v) for v in value)
    return (int(value),)


def axes_or_all(value: Any) -> tuple[int, ...] | None:
    """Axes of a reduction; None stands for all, as an empty tuple does in files."""
    return None if value is None else ints(value) or None


def one_axis(value: Any) -> int:
    return ints(value)[0]


def number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def image_sizes(value: Any, rank: int = 2) -> tuple[int, ...]:
    """Sizes of the image dimensions: older files give (1, 1, h, w)."""
    values = ints(value)
    return (values * rank)[:rank] if len(values) == 1 else values[-rank:]


def channels_first(function: Callable, x: Tensor, data_format: Any) -> Tensor:
    """Applies a channels-first function to data of either layout."""
    if not is_channels_last(data_format):
        return function(x)
    last = x.ndim - 1
    y = function(ops.transpose(x, (0, last, *range(1, last))))
    return ops.transpose(y, (0, *range(2, last + 1), 1))
