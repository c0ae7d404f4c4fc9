# Written by tools/gen_stubs.py.
from mycelia.engine.autodiff.batching import vmap as vmap
from mycelia.engine.autodiff.clipping import clip_by_value as clip_by_value
from mycelia.engine.autodiff.custom_rule import custom_vjp as custom_vjp
from mycelia.engine.autodiff.jacobian import (
    hessian as hessian, jacfwd as jacfwd, jacrev as jacrev, linearize as linearize,
)
from mycelia.engine.autodiff.jacobian_products import jvp as jvp, vjp as vjp
from mycelia.engine.autodiff.recompute import recompute as recompute
from mycelia.engine.autodiff.taylor import derivative as derivative, jet as jet
from mycelia.engine.autodiff.transforms import (
    get_grad as get_grad, grad as grad, value_and_grad as value_and_grad,
)
from mycelia.engine.ops.control_flow.control import stop_gradient as stop_gradient
from mycelia.ops import clip_by_global_norm as clip_by_global_norm

__all__ = [
    "clip_by_global_norm", "clip_by_value", "custom_vjp", "derivative", "get_grad", "grad", "hessian",
    "jacfwd", "jacrev", "jet", "jvp", "linearize", "recompute", "stop_gradient", "value_and_grad", "vjp",
    "vmap",
]
