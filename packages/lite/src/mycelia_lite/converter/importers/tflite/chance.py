"""Random numbers of TensorFlow Lite: other ones in each run, unless the operator has seeds."""

from __future__ import annotations

from typing import Any

import mycelia as ms
from mycelia_lite.converter.importers.onnx.calls import cast, integers, known, need_known, shape_of
from mycelia_lite.converter.importers.onnx.chance import chosen, drawn
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
    return cast(chosen(logits, _drawn(call, False, ms.Tensor(shape, ms.int32), shape)), call.outputs[0].dtype)
