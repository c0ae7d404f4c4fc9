"""`mint.optim`: optimizers with `param_groups` whose steps are those of torch's."""

from __future__ import annotations

from mycelia.faces.mint.optim.adam import Adam, AdamW, FusedAdamW
from mycelia.faces.mint.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "FusedAdamW"]
