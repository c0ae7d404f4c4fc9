# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.experimental.optim.optimizer import (
    Optimizer as Optimizer, at_least as at_least, fractions as fractions,
)
from mycelia.faces.mint.optim.adam import Adam as Adam, AdamW as AdamW, FusedAdamW as FusedAdamW

__all__ = [
    "Adam", "AdamW", "FusedAdamW", "Optimizer", "Parameter", "Tensor", "at_least", "fractions",
]
