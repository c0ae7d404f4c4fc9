"""What an op costs at least: floating-point operations and bytes of memory traffic, from types alone.

A multiplication and an addition are two operations, an elementwise function counts one an element. Traffic is
what must move when every input is read and every output written once. The option `cost` of an op's block
says where that is wrong: a number of operations for each element of the largest tensor (0 where elements only
move), or ``(inputs, outputs, **attrs)``, which gives operations, or a Cost. Views cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mycelia.engine.ir.types import TensorType

if TYPE_CHECKING:
    from mycelia.engine.ops.define import OpDef


class Cost(NamedTuple):
    """Operations and bytes of one call."""

    flops: int
    bytes: int


def cost(definition: OpDef, inputs: tuple, outputs: tuple, attrs: dict) -> Cost | None:
    """Cost of an op on inputs and outputs of these types (None: absent); None where sizes are not known."""
    present = [t for t in (*inputs, *outputs) if isinstance(t, TensorType)]
    if not all(t.is_static for t in present):
        return None
    if definition.view:
        return Cost(0, 0)
    rule = definition.cost_rule
    found = rule(inputs, outputs, **attrs) if callable(rule) else None
    if isinstance(found, Cost):
        return found
    if found is None:
        found = (1 if rule is None else rule) * max((t.size for t in present), default=0)
    return Cost(found, traffic(inputs, outputs))


def traffic(inputs: tuple, outputs: tuple) -> int:
    """Bytes of all inputs and outputs."""
    return sum(t.nbytes for t in (*inputs, *outputs) if isinstance(t, TensorType))


def picks(position: int) -> Callable[..., Cost]:
    """A move that reads only as much of this input as it gives."""

    def rule(inputs: tuple, outputs: tuple, **attrs: Any) -> Cost:
        rest = (t for i, t in enumerate(inputs) if i != position)
        return Cost(0, traffic((*rest, outputs[0]), outputs))

    return rule


def product(outputs: tuple, depth: int) -> int:
    """Operations of a matrix product of this inner size."""
    return 2 * outputs[0].size * depth


def window(images: TensorType, weight: TensorType) -> int:
    """Operations of a convolution with weights [O, I, ...], or of one of its gradients; `images` is on the
    side of O.
    """
    return 2 * images.size * math.prod(weight.shape[1:])


def recurrent(weight: int, products: int) -> Callable[..., int]:
    """Each step multiplies by two matrices of weights, the inputs from `weight` on, `products` times."""

    def rule(inputs: tuple, outputs: tuple, **attrs: Any) -> int:
        steps, batch, _ = inputs[0].shape
        return 2 * products * steps * batch * sum(t.size for t in inputs[weight : weight + 2])

    return rule
