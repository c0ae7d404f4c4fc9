# Written by tools/gen_stubs.py.
from mycelia.faces.mint.optim.adam import Adam as Adam, AdamW as AdamW, FusedAdamW as FusedAdamW
from mycelia.faces.mint.optim.sgd import SGD as SGD

__all__ = [
    "SGD", "Adam", "AdamW", "FusedAdamW",
]
