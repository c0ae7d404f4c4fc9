# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.experimental.optim.adam import (
    Adam as Adam, AdamW as AdamW, Adamax as Adamax, NAdam as NAdam, RAdam as RAdam,
)
from mycelia.faces.experimental.optim.optimizer import (
    Optimizer as Optimizer, above as above, at_least as at_least, count_step as count_step,
    fractions as fractions,
)

__all__ = [
    "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "Parameter", "RAdam", "Tensor", "above", "at_least",
    "count_step", "fractions",
]
