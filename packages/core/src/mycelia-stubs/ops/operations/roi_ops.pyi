# Written by tools/gen_stubs.py.
from mycelia.engine.autodiff.custom_rule import custom_vjp as custom_vjp
from mycelia.ops.operations import PSROIPooling as PSROIPooling, PSROIPoolingGrad as PSROIPoolingGrad
from mycelia.ops.operations.array_ops import positive as positive
from mycelia.ops.operations.custom_ops import call_python as call_python
from mycelia.ops.primitives.checks import Misfit as Misfit, real as real
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "Misfit", "PSROIPooling", "PSROIPoolingGrad", "call_python", "custom_vjp", "positive", "primitive",
    "real",
]
