"""Gradients against finite differences, first and second order, in float64 on the reference bodies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mycelia.engine import _C
from mycelia.engine.autodiff.transforms import grad
from mycelia.engine.ops.reductions.reduce import sum as total_of

_PROBES = 12  # coordinates and directions tried per check: a wrong rule fails almost everywhere
_STEP = 1e-5  # central differences in float64: error about step^2, rounding about 1e-16 / step


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sum(a.astype(np.float64) * b))


def check_gradient(
    fn: Callable, args: list[np.ndarray], *, second: bool = True, rtol: float = 2e-5, seed: int = 0
) -> None:
    """Check the derivatives of ``fn(*Tensors) -> tuple of Tensors`` for all of `args` (float64 arrays).

    Raises AssertionError that tells which order, input and direction disagree.
    """
    rng = np.random.default_rng(seed)
    outs = [o.asnumpy() for o in fn(*(_C.Tensor(a) for a in args))]
    weights = [rng.normal(size=o.shape) if o.dtype.kind == "f" else None for o in outs]
    if not any(w is not None and o.size for o, w in zip(outs, weights)):
        return
    positions = tuple(range(len(args)))

    def scalar(*tensors):
        total = None
        for o, w in zip(fn(*tensors), weights):
            if w is not None and o.size:
                term = total_of(o * _C.Tensor(w))
                total = term if total is None else total + term
        return total

    def value(arrays) -> float:
        return float(scalar(*(_C.Tensor(a) for a in arrays)))

    # One position gives a Tensor, several a tuple.
    gradient_of = grad(scalar, positions)

    def first(*tensors):
        found = gradient_of(*tensors)
        return found if isinstance(found, tuple) else (found,)

    def gradients(arrays) -> list[np.ndarray]:
        return [g.asnumpy() for g in first(*(_C.Tensor(a) for a in arrays))]

    found = gradients(args)
    for i, a in enumerate(args):
        assert found[i].shape == a.shape, f"gradient {i} has shape {found[i].shape}, its input {a.shape}"
    for _ in range(_PROBES):
        directions = [rng.normal(size=a.shape) for a in args]
        plus = value([a + _STEP * d for a, d in zip(args, directions)])
        minus = value([a - _STEP * d for a, d in zip(args, directions)])
        numeric = (plus - minus) / (2 * _STEP)
        exact = sum(_dot(g, d) for g, d in zip(found, directions))
        scale = max(1.0, abs(numeric), max((float(np.abs(g).max()) for g in found if g.size), default=0.0))
        assert abs(numeric - exact) <= rtol * scale, (
            f"first order: rule gives {exact}, differences give {numeric}"
        )
    if not second:
        return
    for _ in range(max(2, _PROBES // 4)):
        directions = [rng.normal(size=a.shape) for a in args]

        def along(*tensors, directions=directions):
            total = None
            for g, d in zip(first(*tensors), directions):
                term = total_of(g * _C.Tensor(d))
                total = term if total is None else total + term
            return total

        product = grad(along, positions)(*(_C.Tensor(a) for a in args))
        product = [g.asnumpy() for g in (product if isinstance(product, tuple) else (product,))]
        plus = gradients([a + _STEP * d for a, d in zip(args, directions)])
        minus = gradients([a - _STEP * d for a, d in zip(args, directions)])
        for i, p in enumerate(product):
            numeric = (plus[i] - minus[i]) / (2 * _STEP)
            scale = max(1.0, float(np.abs(numeric).max(initial=0.0)))
            error = float(np.abs(p - numeric).max(initial=0.0))
            assert error <= 20 * rtol * scale, (
                f"second order, input {i}: largest difference {error} (scale {scale})"
            )
