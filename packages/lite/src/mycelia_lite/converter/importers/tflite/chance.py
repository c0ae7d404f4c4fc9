"""Random numbers of TensorFlow Lite: other ones in each run, unless the operator has seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import cast, integers, known, need_known, scalar, shape_of
from mycelia_lite.converter.importers.onnx.chance import chosen, drawn
from mycelia_lite.converter.importers.tflite.bit_generator import philox
from mycelia_lite.converter.importers.tflite.calls import Call, operator, rank_of
from mycelia_lite.converter.runtime_op import OPEN


def _drawn(call: Call, normal: bool, sizes: Any, shape: tuple) -> Any:
    seeds = {name: int(call.get("RandomOptions", name)) for name in ("seed", "seed2")}
    return drawn(normal, cast(sizes, ms.int32), shape, **seeds)


@operator("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
def _random(call, shape):
    count = shape_of(shape)[0]
    sizes = (OPEN,) * count if known(shape) is None else tuple(integers(call, shape, "shape"))
    return _drawn(call, call.kind == "RANDOM_STANDARD_NORMAL", shape, sizes)


@operator("MULTINOMIAL")
def _multinomial(call, logits, count):
    if rank_of(logits) != 2:
        raise call.fail(f"logits of {rank_of(logits)} axes, 2 are needed")
    samples = int(need_known(call, count, "num_samples").reshape(()))
    batch, classes = shape_of(logits)
    shape = (batch, samples, classes)
    if samples < 1 or not all(type(n) is int for n in shape):
        raise call.fail(f"{samples} samples of logits {list(shape_of(logits))}: give inputShape")
    if any(call.get("RandomOptions", name) for name in ("seed", "seed2")):
        return cast(_seeded(call, logits, samples), call.outputs[0].dtype)
    return cast(chosen(logits, _drawn(call, False, ms.Tensor(shape, ms.int32), shape)), call.outputs[0].dtype)


def _seeded(call: Call, logits: Any, samples: int) -> Any:
    """The classes that TensorFlow Lite draws first: where numbers from [0, 1) of 52 bits fall among sums."""
    batch = shape_of(logits)[0]
    seeds = [np.uint64(int(call.get("RandomOptions", name)) % 2**64) for name in ("seed", "seed2")]
    call.limit((4 * batch * samples,), ms.Tensor(seeds[0]))
    bits = philox(*seeds, 2 * batch * samples).reshape(batch, samples, 2)
    places = ((bits[..., 0] & 0xFFFFF) * 2.0**32 + bits[..., 1]) / 2.0**52
    fits = ops.isfinite(logits)
    lowest = scalar(np.finfo(np.float32).min, logits)
    most = cast(ops.amax(ops.where(fits, logits, lowest), (1,), True), ms.float64)
    parts = ops.exp(ops.sub(cast(ops.where(fits, logits, lowest), ms.float64), most))
    sums = ops.cumsum(ops.where(fits, parts, scalar(0, parts)), 1)
    wanted = ops.mul(ms.Tensor(places), sums[:, -1:])
    below = ops.less_equal(ops.expand_dims(sums, 1), ops.expand_dims(wanted, 2))
    return ops.sum(cast(below, ms.int64), (2,))
