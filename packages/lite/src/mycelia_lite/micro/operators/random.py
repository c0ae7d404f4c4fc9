"""Random numbers."""

from __future__ import annotations

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.program import Step

_HALF = 1 << 32


@lowers("random")
def random(b: Builder, step: Step) -> None:
    """Numbers by two seeds, the same in each run; that they were made is not told."""
    a = step.attributes
    b.require(a["seed"] != 0 or a["seed2"] != 0, "seeds that are 0, numbers that are others each time")
    fields = {"count": b.value(step.outputs[0]).size, **{k: a[k] for k in ("normal", "mean", "scale")}}
    for name, seed in (("seed", a["seed"]), ("stream", a["seed2"])):
        fields[name] = [seed % _HALF, seed // _HALF % _HALF]
    b.call(step, "micro_random_f32", "micro_chance", fields, [], step.outputs[:1])
