"""ONNX's random numbers: other ones in each run, unless the node has a seed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.calls import Call, cast, is_number, operator, scalar, shape_of
from mycelia_lite.converter.importers.onnx.file import dtype_of
from mycelia_lite.converter.runtime_op import OPEN, at_run_time

_LEAST = 1e-7  # of numbers whose logarithm is taken; beneath the distance of two numbers of the generator
# Functions are called several times, so that names of nodes do not tell drawings apart.
_drawings = itertools.count()


def drawn(normal: bool, sizes: Any, shape: Sequence[Any], seed: int = 0, seed2: int = 0) -> Any:
    """Numbers of float32 from [0, 1), or normal ones; `sizes`: the shape as a tensor, `shape`: what is known.

    Two drawings of the same shape are never one node. Without seeds each run draws others.
    """
    kind = "RandomStandardNormal" if normal else "UniformReal"
    known = [n if is_number(n) else OPEN for n in shape]
    return at_run_time(
        kind, (sizes,), [(ms.float32, known)], unlike=str(next(_drawings)), seed=seed, seed2=seed2
    )


def _drawn(call: Call, normal: bool, sizes: Any, shape: Sequence[Any]) -> Any:
    seed = call.get("seed")
    given = {} if seed is None else {"seed": int(np.float32(seed).view(np.uint32)), "seed2": 1}
    return drawn(normal, sizes, shape, **given)


def _scaled(call: Call, x: Any, dtype: Any) -> Any:
    """Numbers with the node's mean and scale, or between its bounds."""
    if call.kind.startswith("RandomNormal"):
        factor, start = call.get("scale", 1.0), call.get("mean", 0.0)
    else:
        start = call.get("low", 0.0)
        factor = call.get("high", 1.0) - start
    return cast(ops.add(ops.mul(x, scalar(factor, x)), scalar(start, x)), dtype)


def _place(call: Call) -> str:
    return f"node '{call.name}' ({call.kind}): its result"


@operator("RandomNormal", "RandomUniform")
def _random(call):
    shape, dtype = tuple(call.need("shape")), dtype_of(call.get("dtype", 1), _place(call))
    sizes = ms.Tensor(np.array(shape, np.int32))
    return _scaled(call, _drawn(call, call.kind == "RandomNormal", sizes, shape), dtype)


@operator("RandomNormalLike", "RandomUniformLike")
def _random_like(call, x):
    dtype = dtype_of(call.get("dtype"), _place(call)) if "dtype" in call.attributes else x.dtype
    return _scaled(call, _drawn(call, call.kind == "RandomNormalLike", run_time.sizes(x), shape_of(x)), dtype)


@operator("Bernoulli")
def _bernoulli(call, x):
    """1 with the probability x."""
    dtype = dtype_of(call.get("dtype"), _place(call)) if "dtype" in call.attributes else x.dtype
    return cast(ops.less(_drawn(call, False, run_time.sizes(x), shape_of(x)), cast(x, ms.float32)), dtype)


@operator("Multinomial")
def _multinomial(call, x):
    count, dtype = call.get("sample_size", 1), dtype_of(call.get("dtype", 6), _place(call))
    sizes = run_time.sizes(x)
    sizes = ops.concat((sizes[:1], ms.Tensor([count], sizes.dtype), sizes[1:]))
    shape = (shape_of(x)[0], count, shape_of(x)[1])
    return cast(chosen(x, _drawn(call, False, sizes, shape)), dtype)


def chosen(x: Any, uniform: Any) -> Any:
    """Classes by unnormalized logarithms of their probabilities x [B, C], and numbers [B, N, C] from [0, 1).

    The largest sum with the double logarithm of a uniform number is drawn so (Gumbel 1954).
    """
    noise = ops.neg(ops.log(ops.neg(ops.log(ops.maximum(uniform, scalar(_LEAST, uniform))))))
    return ops.argmax(ops.add(ops.expand_dims(cast(x, ms.float32), 1), noise), 2)
