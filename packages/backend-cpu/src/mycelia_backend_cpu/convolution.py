"""Which algorithm computes a channels-last convolution, by an estimate of its cycles.

Only 3x3 windows of stride 1 have a choice. The estimates are in native/kernels/src/choice.cc.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from mycelia.engine.compile.passes import accuracy
from mycelia.engine.compile.passes.algorithms import choose
from mycelia.engine.ir.graph import Graph, Node
from mycelia.engine.ir.sizes import hint_of

_ALGORITHMS = {"direct": 0, "winograd4": 1, "winograd6": 2, "winograd2": 4}  # as mycelia/cpu.h numbers them


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
    """The algorithm for images `x` [N, H, W, I] to `channels` outputs: one of _ALGORITHMS or "depthwise".

    `strict`: no Winograd. `constant`: weights are packed once, not in every run. Sizes of x below 0 are not
    known: then nothing is estimated, and it is direct.
    """
    if group == channels == x[3] and group > 1:
        return "depthwise"
    free = tuple(kernel) == (3, 3) and (*stride, *dilation) == (1, 1, 1, 1) and group == 1
    if strict or not free or min(*x, channels) < 1:
        return "direct"
    return _choose(tuple(x), channels, tuple(pad), constant)


@functools.cache
def _choose(x: tuple[int, ...], channels: int, pad: tuple[int, ...], constant: bool) -> str:
    costs = {name: cycles(name, x, channels, pad, not constant) for name in _ALGORITHMS}
    return min(costs, key=costs.get)


def cycles(
    algorithm: str, x: tuple[int, ...], channels: int, pad: tuple[int, ...], packs: bool = False
) -> float:
    """The estimate of one algorithm; with `packs` that of the packing of weights is in it."""
    from mycelia_backend_cpu import _native

    return _native.conv_cycles(_ALGORITHMS[algorithm], x, channels, pad, packs)
