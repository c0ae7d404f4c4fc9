"""Bytes of a tensor as elements of another type."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia_lite.converter.importers.nodes import NodeCall
from mycelia_lite.converter.importers.onnx.calls import is_number, known, shape_of
from mycelia_lite.converter.runtime_op import custom
from mycelia_lite.enums import DataType


def reinterpreted(call: NodeCall, x: Any, dtype: Any) -> Any:
    """The bytes of `x` as elements of `dtype`, little endian.

    Wider ones take the last axis away, which is one element of them, narrower ones add one.

    Errors: ConversionError where they do not fit, and for bool, of which not all bytes are one.
    """
    shape, kinds = list(shape_of(x)), [np.dtype(t.np) for t in (x.dtype, dtype)]
    for kind in (x.dtype, dtype):
        if kind is ms.bfloat16:
            raise call.fail("the bits of bfloat16")
    if dtype is ms.bool_ and x.dtype is not ms.bool_:
        raise call.fail(f"the bits of {x.dtype} as bool")
    width, wanted = (kind.itemsize for kind in kinds)
    if width > wanted:
        shape.append(width // wanted)
    elif wanted > width:
        last = shape.pop() if shape else None
        if not is_number(last) or last * width != wanted:
            raise call.fail(f"elements of {wanted} bytes of an axis of {last} with {width} each")
    number = known(x)
    if number is not None:
        return ms.Tensor(np.ascontiguousarray(number).reshape(-1).view(kinds[1]).reshape(shape))
    return custom("bitcast", [x], [(dtype, shape)], dtype=int(DataType.of(kinds[1])))
