"""Operators of TensorFlow that run functions of the graph, and the lists of tensors that its loops keep.

A list is a tensor of its elements, stacked; one that is reserved gets the type of the first element put in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import Trace
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.importers import regions
from mycelia_lite.converter.importers.onnx.calls import (
    along,
    cast,
    integers,
    is_number,
    known,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.tensorflow import graph_pb2
from mycelia_lite.converter.importers.tensorflow.calls import operator
from mycelia_lite.converter.importers.tflite.calls import as_tensor as tensor_of

OF_VERSION_1 = (
    "Switch",
    "Merge",
    "Enter",
    "RefEnter",
    "Exit",
    "NextIteration",
    "LoopCond",
    "RefSwitch",
    "RefMerge",
)
CALLS = ("PartitionedCall", "StatefulPartitionedCall")  # functions that run in place


@dataclass
class Surroundings:
    """Where a node stands. `run`: ``(name of a function, arguments, trace)`` -> its results."""

    trace: Trace
    run: Callable[[str, Sequence[Any], Trace], list[Any]]

    def within(self, function: str, arguments: Sequence[Any], region: Trace) -> list[Any]:
        """The results of a function as tensors."""
        return [_value(v) for v in self.run(function, arguments, region)]


def _value(value: Any) -> Any:
    return value if isinstance(value, Reserved) or value is obstacles.UNKNOWN else tensor_of(value)


@operator(*CALLS, sizes=range(1 << 10))
def _partitioned(call, *inputs):
    for name in ("config", "config_proto", "executor_type"):
        call.get(name)
    return tuple(call.around.run(call.need("f", graph_pb2.NameAttrList).name, inputs, call.around.trace))


def _truth(condition: Any) -> Any:
    """Numbers are true unless they are 0."""
    condition = ops.reshape(condition, ())
    return condition if condition.dtype == ms.bool_ else ops.not_equal(condition, scalar(0, condition))


@operator("If", "StatelessIf")
def _if(call, condition, *inputs):
    branches = [call.need(f"{name}_branch", graph_pb2.NameAttrList).name for name in ("then", "else")]
    condition = _truth(condition)
    if known(condition) is not None:
        return tuple(call.around.run(branches[0 if known(condition) else 1], inputs, call.around.trace))

    def results(name: str) -> Callable:
        return lambda region: call.around.within(name, inputs, region)

    return tuple(regions.conditional(call, call.around.trace, condition, *map(results, branches)))


@operator("While", "StatelessWhile")
def _while(call, *inputs):
    around, names = call.around, [call.need(name, graph_pb2.NameAttrList).name for name in ("cond", "body")]
    inputs = [_value(v) for v in inputs]
    if any(isinstance(v, Reserved) for v in inputs):
        region = Trace("body", around.trace)
        with region:  # which shows what the lists will hold
            results = around.within(names[1], inputs, region)
            if obstacles.hide(results):
                return [obstacles.UNKNOWN] * len(inputs)
            shapes = [None if isinstance(v, Reserved) else (v.dtype, shape_of(v)) for v in results]
        inputs = [
            v.filled(*shape) if isinstance(v, Reserved) and shape else v
            for v, shape in zip(inputs, shapes, strict=True)
        ]

    def run(name: str) -> Callable:
        return lambda region, values: around.within(name, values, region)

    return tuple(regions.while_loop(call, around.trace, inputs, *map(run, names)))


# ---- lists


@dataclass(eq=False)
class Reserved:
    """A list of so many elements without a type."""

    count: Any

    def filled(self, dtype: Any, shape: Sequence[Any]) -> Any:
        """It with zeros, of this shape with the count in front."""
        return ops.broadcast_to(cast(ms.Tensor(0), dtype), tuple(shape))


@operator("TensorListReserve", "EmptyTensorList", sizes=(0, 1))
def _reserve(call, shape, count):
    if call.kind == "EmptyTensorList":
        raise call.fail("a list that grows")
    (number,) = integers(call, count, "num_elements")
    return Reserved(number)


@operator("TensorListFromTensor", sizes=(1,))
def _from_tensor(call, x, shape):
    return x


@operator("TensorListStack", sizes=(1,))
def _stack(call, x, shape):
    wanted = call.get("num_elements", -1)
    if isinstance(x, Reserved):
        raise call.fail("a list into which nothing is put")
    if wanted >= 0 and is_number(shape_of(x)[0]) and shape_of(x)[0] != wanted:
        raise call.option("num_elements", wanted, f"there are {shape_of(x)[0]}")
    return x


@operator("TensorListGetItem", sizes=(2,))
def _get_item(call, x, index, shape):
    if isinstance(x, Reserved):
        raise call.fail("a list into which nothing is put")
    return ops.gather(x, ops.reshape(index, ()), 0)


@operator("TensorListSetItem")
def _set_item(call, x, index, item):
    call.get("resize_if_index_out_of_bounds", False)
    rank = len(shape_of(item)) + 1
    if isinstance(x, Reserved):
        x = x.filled(item.dtype, (x.count, *shape_of(item)))
    count = shape_of(x)[0]
    if not is_number(count):
        raise call.fail("a list of an open number of elements: give inputShape")
    places = along(cast(ms.Tensor(np.arange(count)), index.dtype), 0, rank)
    return ops.where(ops.equal(places, ops.reshape(index, ())), ops.expand_dims(item, 0), x)


@operator("TensorListLength")
def _length(call, x):
    count = x.count if isinstance(x, Reserved) else shape_of(x)[0]
    if not is_number(count):
        raise call.fail("a list of an open number of elements: give inputShape")
    return ms.Tensor(count, ms.int32)
