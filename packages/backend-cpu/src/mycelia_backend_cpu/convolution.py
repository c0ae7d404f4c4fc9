"""Which algorithm computes a channels-last convolution, by an estimate of its cycles.

A measurement would choose now this, now that one where two are close: results would differ from run to run.

Only 3x3 windows of stride 1 have a choice. Winograd's F(m x m) multiplies 36 / (9 * 16) (m = 4) or
64 / (9 * 36) (m = 6) as often as the direct form, but reads 4 or 7.1 times its weights, transforms tiles
and computes whole ones. Estimates are cycles of one core; their constants were fitted to the kernels
(AVX2, weights from memory, as they come in a network).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from mycelia.engine.compile.passes import accuracy
from mycelia.engine.compile.passes.algorithms import choose
from mycelia.engine.ir.graph import Graph, Node
from mycelia.engine.ir.sizes import hint_of

PANEL = 16  # output channels computed together
VECTOR = 8  # channels transformed together

#: Cycles in which 64 bytes of weights, a panel's at one k, come from memory.
STREAM = 16.0


def run(graph: Graph) -> int:
    """The pass `winograd`: returns how many convolutions and gradients of weights got another algorithm.

    Only what is computed by plain sums has a choice, and with `accuracy="strict"` nothing has one.
    """
    if accuracy() == "strict":
        return 0
    return choose(graph, "conv_last", _algorithm_of) + sum(map(_transform_gradient, graph.nodes))


def _algorithm_of(node: Node) -> str:
    a = node.attrs
    if a["algorithm"] != "direct":
        return a["algorithm"]
    return choose_convolution(
        [hint_of(n) for n in node.inputs[0].type.shape], a["channels"], a["kernel"], stride=a["stride"],
        pad=a["pad"], dilation=a["dilation"], group=a["group"], strict=False,
    )  # fmt: skip


def _transform_gradient(node: Node) -> bool:
    """Lets the kernel of a gradient of weights transform tiles; it knows where that pays."""
    a = node.attrs
    if node.op.name != "conv_last_weight_grad" or a["algorithm"] != "direct" or tuple(a["kernel"]) != (3, 3):
        return False
    if (*a["stride"], *a["dilation"], a["group"]) != (1, 1, 1, 1, 1):
        return False
    node.attrs = {**a, "algorithm": "winograd4"}
    return True


def choose_convolution(
    x: Sequence[int],
    channels: int,
    kernel: Sequence[int],
    *,
    stride: Sequence[int],
    pad: Sequence[int],
    dilation: Sequence[int],
    group: int,
    strict: bool,
    constant: bool = True,
) -> str:
    """ "direct", "winograd4", "winograd6" or "depthwise" for images `x` [N, H, W, I] to `channels` outputs.

    `strict`: no Winograd. `constant`: weights are packed once, not in every run. Sizes of x below 0 are not
    known: then nothing is estimated, and it is direct.
    """
    if group == channels == x[3]:
        return "depthwise"
    free = tuple(kernel) == (3, 3) and (*stride, *dilation) == (1, 1, 1, 1) and group == 1
    if strict or not free or min(*x, channels) < 1:
        return "direct"
    return _choose(tuple(x), channels, tuple(pad), constant)


@functools.cache
def _choose(x: tuple[int, ...], channels: int, pad: tuple[int, ...], constant: bool) -> str:
    costs = {name: estimate(x, channels, pad) for name, estimate in ESTIMATES.items()}
    if not constant:
        for name, cycles in PACKING.items():
            costs[name] += cycles * x[3] * channels
    return min(costs, key=costs.get)


def _direct_cycles(x: tuple[int, ...], channels: int, pad: tuple[int, ...]) -> float:
    n, height, width, depth = x

    def taps(size, begin, end):  # of all outputs along an axis, without those on padding
        out = size + begin + end - 2
        return sum(max(0, min(out, size + begin - t) - max(0, begin - t)) for t in range(3))

    panels = math.ceil(channels / PANEL)
    # A panel and element of k takes a cycle a pixel and a bit, or as long as its weights need.
    rows = n * taps(height, pad[0], pad[2]) * taps(width, pad[1], pad[3]) / 9
    return 9 * panels * depth * max(1.1 * rows, STREAM)


def _winograd_cycles(
    m: int, transforms: float, caution: float, x: tuple[int, ...], channels: int, pad: tuple[int, ...]
) -> float:
    n, height, width, depth = x
    rows, columns = height + pad[0] + pad[2] - 2, width + pad[1] + pad[3] - 2
    tiles = n * math.ceil(rows / m) * math.ceil(columns / m)
    products = (m + 2) ** 2 * math.ceil(channels / PANEL) * depth * max(1.15 * tiles, STREAM)
    vectors = math.ceil(depth / VECTOR) + math.ceil(channels / VECTOR)
    return (products + tiles * vectors * transforms) * caution


#: Estimated cycles by algorithm. F(6 x 6) rounds worse than F(4 x 4): it must win clearly.
ESTIMATES = {
    "direct": _direct_cycles,
    "winograd4": functools.partial(_winograd_cycles, 4, 300.0, 1.0),
    "winograd6": functools.partial(_winograd_cycles, 6, 900.0, 1.1),
}

#: Cycles to pack the weights of one pair of channels.
PACKING = {"direct": 9 * 1.1, "winograd4": 36 * 1.7, "winograd6": 64 * 1.7}
