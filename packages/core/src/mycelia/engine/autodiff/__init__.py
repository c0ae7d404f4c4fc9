"""Gradients: one reverse-mode driver and the transforms made from it."""

from mycelia.engine.autodiff.batching import vmap
from mycelia.engine.autodiff.clipping import clip_by_global_norm, clip_by_value
from mycelia.engine.autodiff.custom_rule import custom_vjp
from mycelia.engine.autodiff.jacobian import hessian, jacfwd, jacrev, linearize
from mycelia.engine.autodiff.jacobian_products import jvp, vjp
from mycelia.engine.autodiff.recompute import recompute
from mycelia.engine.autodiff.taylor import derivative, jet
from mycelia.engine.autodiff.transforms import get_grad, grad, stop_gradient, value_and_grad

__all__ = [
    "clip_by_global_norm", "clip_by_value", "custom_vjp", "derivative", "get_grad", "grad", "hessian",
    "jacfwd", "jacrev", "jet", "jvp", "linearize", "recompute", "stop_gradient", "value_and_grad", "vjp",
    "vmap",
]  # fmt: skip
