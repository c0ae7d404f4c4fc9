"""Steps of optimizers for gradients of some rows: `grad` [K, ...] belongs to the rows `indices` [K].

Gradients of one row are added up first, and only rows that are named change.
"""

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.ops.nn_ops import adaptive_optim as _adaptive_optim
from mycelia.engine.ops.nn_ops import optim as _optim
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.ops.primitives.checks import Misfit, boolean, within
from mycelia.ops.primitives.define import primitive
from mycelia.ops.primitives.optim_ops import _MEM, _now


def _float(value):
    if not isinstance(value, float):
        raise Misfit(TypeError, "a float")
    return value


_rate = within(_float, 0.0, open="low")
_penalty = within(_float, 0.0)
_power = within(_float, None, 0.0)


def _sparse(function):
    return primitive(extra=_MEM)(function)


def _whole(var, grad, indices):
    """The gradient of all rows, and which rows it names."""
    for name, value in (("grad", grad), ("indices", indices)):
        if not is_tensor(value):
            raise errors.type_error(f"{name} must be a Tensor, but got {type(value).__name__}")
    if indices.dtype not in (dtypes.int32, dtypes.int64):
        raise errors.type_error(f"indices must be int32 or int64, but they are {indices.dtype}")
    if indices.ndim != 1 or grad.shape != (*indices.shape, *var.shape[1:]):
        raise errors.value_error(
            f"grad must be [K, {', '.join(map(str, var.shape[1:]))}] for indices [K], but their shapes are "
            f"{tuple(grad.shape)} and {tuple(indices.shape)}"
        )
    places = ops.cast(ops.expand_dims(indices, -1), dtypes.int64)
    total = ops.tensor_scatter_add(ops.zeros_like(var), places, grad)
    ones = ops.ones((indices.shape[0],), dtypes.float32)
    named = ops.tensor_scatter_add(ops.zeros((var.shape[0],), dtypes.float32), places, ones) > 0
    return total, ops.reshape(named, (-1, *(1,) * (var.ndim - 1)))


def _rows(step, variables, grad, indices):
    """Run `step(*variables, gradient)` on copies; the rows named are taken over. Returns the variables."""
    total, named = _whole(variables[0], grad, indices)
    copies = [v + 0 for v in variables]
    step(*copies, total)
    for variable, copy in zip(variables, copies, strict=True):
        assign(variable, ops.where(named, copy, variable))
    return _now(*variables)


@_sparse
def FusedSparseAdam(
    var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, indices,
    *, use_locking: boolean = False, use_nesterov: boolean = False,
):  # fmt: skip
    """A step of Adam in which rows that are not named have a gradient of zero; returns var, m, v."""
    total, _ = _whole(var, grad, indices)
    numbers = (beta1_power, beta2_power, lr, beta1, beta2, epsilon)
    _adaptive_optim._adam(var, m, v, *numbers, total, use_nesterov=use_nesterov)
    return _now(var, m, v)


@_sparse
def FusedSparseLazyAdam(
    var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, indices,
    *, use_locking: boolean = False, use_nesterov: boolean = False,
):  # fmt: skip
    """A step of Adam on the rows that are named; returns var, m, v."""

    def step(var, m, v, total):
        numbers = (beta1_power, beta2_power, lr, beta1, beta2, epsilon)
        _adaptive_optim._adam(var, m, v, *numbers, total, use_nesterov=use_nesterov)

    return _rows(step, (var, m, v), grad, indices)


def _ftrl(var, accum, linear, grad, indices, lr, l1, l2, lr_power):
    def step(var, accum, linear, total):
        _optim._apply_ftrl(var, accum, linear, total, lr, l1, l2, lr_power)

    return _rows(step, (var, accum, linear), grad, indices)


@_sparse
def FusedSparseFtrl(
    var, accum, linear, grad, indices,
    *, lr: _rate, l1: _penalty, l2: _penalty, lr_power: _power, use_locking: boolean = False,
):  # fmt: skip
    """Follow the regularized leader on the rows that are named; returns var, accum, linear."""
    return _ftrl(var, accum, linear, grad, indices, lr, l1, l2, lr_power)


@_sparse
def SparseApplyFtrl(
    var, accum, linear, grad, indices,
    *, lr: _rate, l1: _penalty, l2: _penalty, lr_power: _power, use_locking: boolean = False,
):  # fmt: skip
    """Follow the regularized leader on the rows that are named; returns var, accum, linear."""
    return _ftrl(var, accum, linear, grad, indices, lr, l1, l2, lr_power)


@_sparse
def SparseApplyFtrlV2(
    var, accum, linear, grad, indices,
    *, lr: _rate, l1: _penalty, l2: _penalty, l2_shrinkage: _float, lr_power: _power,
    use_locking: boolean = False,
):  # fmt: skip
    """`SparseApplyFtrl` with the gradient moved by ``2 * l2_shrinkage * var``; returns var, accum, linear."""
    rows = ops.gather(var, indices, 0)
    return _ftrl(var, accum, linear, grad + rows * (2 * l2_shrinkage), indices, lr, l1, l2, lr_power)


def _proximal(var, accum, lr, l1, l2, grad, indices):
    def step(var, accum, total):
        _optim._apply_proximal_adagrad(var, accum, lr, l1, l2, total)

    return _rows(step, (var, accum), grad, indices)


@_sparse
def FusedSparseProximalAdagrad(var, accum, lr, l1, l2, grad, indices, *, use_locking: boolean = False):
    """Proximal Adagrad on the rows that are named; returns var and accum."""
    return _proximal(var, accum, lr, l1, l2, grad, indices)


@_sparse
def SparseApplyProximalAdagrad(var, accum, lr, l1, l2, grad, indices, *, use_locking: boolean = False):
    """Proximal Adagrad on the rows that are named; returns var and accum."""
    return _proximal(var, accum, lr, l1, l2, grad, indices)


@_sparse
def SparseApplyAdagrad(
    var, accum, grad, indices, *, lr: _float, update_slots: boolean = True, use_locking: boolean = False
):
    """Adagrad on the rows that are named; returns var and accum. dtypes: float16, float32."""
    if var.dtype not in (dtypes.float16, dtypes.float32):
        raise errors.type_error("SparseApplyAdagrad", f"var must be float16 or float32, not {var.dtype}")

    def step(var, accum, total):
        _adaptive_optim._apply_adagrad(var, accum, lr, total, update_slots=update_slots)

    return _rows(step, (var, accum), grad, indices)


@_sparse
def SparseApplyAdagradV2(
    var, accum, grad, indices,
    *, lr: _float, epsilon: _float, use_locking: boolean = False, update_slots: boolean = True,
):  # fmt: skip
    """Adagrad with `epsilon` on the rows that are named; returns var and accum. dtypes: float16, float32."""
    if var.dtype not in (dtypes.float16, dtypes.float32):
        raise errors.type_error("SparseApplyAdagradV2", f"var must be float16 or float32, not {var.dtype}")

    def step(var, accum, total):
        _adaptive_optim._apply_adagrad_v2(var, accum, lr, total, epsilon=epsilon, update_slots=update_slots)

    return _rows(step, (var, accum), grad, indices)


@_sparse
def SparseApplyAdadelta(
    var, accum, accum_update, lr, rho, grad, indices, *, epsilon: _float, use_locking: boolean = False
):
    """Adadelta on the rows that are named; returns var, accum, accum_update."""

    def step(var, accum, accum_update, total):
        _adaptive_optim._apply_adadelta(var, accum, accum_update, lr, rho, epsilon, total)

    return _rows(step, (var, accum, accum_update), grad, indices)


@_sparse
def SparseApplyRMSProp(
    var, ms, mom, lr, grad, indices,
    *, rho: _float, momentum: _float, epsilon: _float, use_locking: boolean = False,
):  # fmt: skip
    """Scaling by the root mean square on the rows that are named; returns var, ms, mom.

    Where a gradient is 0 its `ms` stays.
    """

    def step(var, ms, mom, total):
        wide = [ops.cast(v, dtypes.float32) for v in (var, ms, mom, total)]
        gradient = wide[3]
        mean = ops.where(gradient == 0, wide[1], wide[1] * rho + gradient * gradient * (1.0 - rho))
        moved = wide[2] * momentum + 1 / ops.sqrt(mean + epsilon) * lr * gradient
        moved = ops.cast(moved, mom.dtype)
        assign(ms, ops.cast(mean, ms.dtype))
        assign(mom, moved)
        assign(var, var - moved)

    return _rows(step, (var, ms, mom), grad, indices)
