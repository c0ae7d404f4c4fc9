# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.autodiff.custom_rule import custom_vjp as custom_vjp
from mycelia.ops.primitive import Primitive as Primitive
from mycelia.ops.primitives.custom_ops import Custom as Custom, CustomOpBuilder as CustomOpBuilder
from mycelia.ops.primitives.define import register as register

__all__ = [
    "Custom", "CustomOpBuilder", "Primitive", "Tensor", "call_python", "custom_vjp", "register",
]


def call_python(function, inputs, results) -> tuple[Tensor, ...]:
    """Tensors with the results of ``function(*arrays)``: for each a pair of dtype and shape is declared."""
