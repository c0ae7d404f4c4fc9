"""Convolutions of images with the channels last: which packed form they take.

Other ops say in their blocks how they become channels last (`ops/layout_rules.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mycelia.engine.ir.graph import Node, Value
from mycelia.engine.ops.layout_rules import LayoutRule, float32_images
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes

if TYPE_CHECKING:
    from mycelia.engine.compile.passes.layout import NHWCRewriter


def _geometry(node: Node, kernel: Sequence[int]) -> dict[str, Any]:
    kernel, stride, pad, dilation = full_attributes(
        2, kernel, node.attrs["stride"], node.attrs["pad"], node.attrs["dilation"]
    )
    return dict(kernel=kernel, stride=stride, pad=pad, dilation=dilation, group=node.attrs["group"])


def _pack(
    rewriter: NHWCRewriter, weight: Value, algorithm: str, group: int, transposed: bool = False
) -> Value:
    attrs = dict(algorithm=algorithm, group=group, transposed=transposed)
    return rewriter.emit("conv_pack", [weight], attrs)[0]


def _algorithm(inputs: int, channels: int, group: int) -> str:
    """How a convolution is computed unless the backend knows a better way (`algorithms.py`)."""
    return "depthwise" if group == channels == inputs else "direct"


def _conv(rewriter: NHWCRewriter, node: Node) -> Sequence[Value]:
    x, weight, bias = node.inputs
    how = _geometry(node, weight.type.shape[2:])
    channels = weight.type.shape[0]
    algorithm = _algorithm(x.type.shape[1], channels, how["group"])
    pack = _pack(rewriter, weight, algorithm, how["group"])
    attrs = dict(channels=channels, algorithm=algorithm, **how)
    return rewriter.emit("conv_last", [rewriter.last(x), pack, bias, None], attrs, rewriter.types)


def _conv_input_grad(rewriter: NHWCRewriter, node: Node) -> Sequence[Value]:
    dy, weight = node.inputs
    how = _geometry(node, weight.type.shape[2:])
    channels, pad = weight.type.shape[1] * how["group"], how["pad"]
    reach = [d * (k - 1) for d, k in zip(how["dilation"], how["kernel"])] * 2
    if how["stride"] == (1, 1) and all(p <= r for p, r in zip(pad, reach)):
        # Without a stride it is a convolution of dy with the turned weights.
        how["pad"] = tuple(r - p for p, r in zip(pad, reach))
        algorithm = _algorithm(dy.type.shape[1], channels, how["group"])
        pack = _pack(rewriter, weight, algorithm, how["group"], transposed=True)
        attrs = dict(channels=channels, algorithm=algorithm, **how)
        return rewriter.emit("conv_last", [rewriter.last(dy), pack, None, None], attrs, rewriter.types)
    algorithm = _algorithm(weight.type.shape[0], channels, how["group"])
    pack = _pack(rewriter, weight, algorithm, how["group"], transposed=True)
    attrs = dict(channels=channels, size=node.attrs["size"], algorithm=algorithm, **how)
    return rewriter.emit("conv_last_input_grad", [rewriter.last(dy), pack], attrs, rewriter.types)


def _weight_gradient_images(node: Node):
    return ((0, 1), ()) if float32_images((0, 1), (0,)).images(node) else None


def _conv_weight_grad(rewriter: NHWCRewriter, node: Node) -> Sequence[Value]:
    how = _geometry(node, node.attrs["kernel"])
    inputs = [rewriter.last(v) for v in node.inputs]
    return rewriter.emit("conv_last_weight_grad", inputs, how, rewriter.types)


#: op -> its channels-last form.
CONVOLUTIONS = {
    "conv": float32_images((0,), (0,), 1)._replace(emit=_conv),
    "conv_input_grad": float32_images((0,), (0,), 1)._replace(emit=_conv_input_grad),
    "conv_weight_grad": LayoutRule(_weight_gradient_images, _conv_weight_grad),
}
