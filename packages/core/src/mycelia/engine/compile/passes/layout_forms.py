"""Convolutions of images with the channels last: which packed form they take.

Other ops say in their blocks how they become channels last (`ops/layout_rules.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mycelia.engine.compile.passes.selection import accuracy
from mycelia.engine.ir.graph import Node, Value
from mycelia.engine.ir.sizes import hint_of
from mycelia.engine.ops.layout_rules import LayoutRule, float32_images, nhwc_shape
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


def _chosen(rewriter: NHWCRewriter, x: Sequence[int], channels: int, how: dict[str, Any]) -> str:
    """The backend's algorithm for images `x` [N, H, W, I] and `channels` outputs."""
    sizes = [hint_of(n) for n in x]
    return rewriter.backend.backend.choose_convolution(
        sizes, channels, how["kernel"], stride=how["stride"], pad=how["pad"], dilation=how["dilation"],
        group=how["group"], strict=accuracy() == "strict",
    )  # fmt: skip


def _conv(rewriter: NHWCRewriter, node: Node) -> Sequence[Value]:
    x, weight, bias = node.inputs
    how = _geometry(node, weight.type.shape[2:])
    channels = weight.type.shape[0]
    algorithm = _chosen(rewriter, nhwc_shape(x.type.shape), channels, how)
    pack = _pack(rewriter, weight, algorithm, how["group"])
    attrs = dict(channels=channels, algorithm=algorithm, **how)
    return rewriter.emit("conv_last", [rewriter.last(x), pack, bias, None], attrs)


def _conv_input_grad(rewriter: NHWCRewriter, node: Node) -> Sequence[Value]:
    dy, weight = node.inputs
    how = _geometry(node, weight.type.shape[2:])
    channels, pad = weight.type.shape[1] * how["group"], how["pad"]
    reach = [d * (k - 1) for d, k in zip(how["dilation"], how["kernel"])] * 2
    if how["stride"] == (1, 1) and all(p <= r for p, r in zip(pad, reach)):
        # Without a stride it is a convolution of dy with the turned weights.
        how["pad"] = tuple(r - p for p, r in zip(pad, reach))
        algorithm = _chosen(rewriter, nhwc_shape(dy.type.shape), channels, how)
        pack = _pack(rewriter, weight, algorithm, how["group"], transposed=True)
        attrs = dict(channels=channels, algorithm=algorithm, **how)
        return rewriter.emit("conv_last", [rewriter.last(dy), pack, None, None], attrs)
    alone = how["group"] == channels == weight.type.shape[0]
    algorithm = "depthwise" if alone else "direct"
    pack = _pack(rewriter, weight, algorithm, how["group"], transposed=True)
    attrs = dict(channels=channels, size=node.attrs["size"], algorithm=algorithm, **how)
    return rewriter.emit("conv_last_input_grad", [rewriter.last(dy), pack], attrs)


def _weight_gradient_images(node: Node):
    return ((0, 1), ()) if float32_images((0, 1), (0,)).images(node) else None


def _conv_weight_grad(rewriter: NHWCRewriter, node: Node) -> Sequence[Value]:
    how = _geometry(node, node.attrs["kernel"])
    plain = how["kernel"] == (3, 3) and (*how["stride"], *how["dilation"], how["group"]) == (1, 1, 1, 1, 1)
    how["algorithm"] = "winograd4" if plain and accuracy() != "strict" else "direct"
    return rewriter.emit("conv_last_weight_grad", [rewriter.last(v) for v in node.inputs], how)


#: op -> its channels-last form.
CONVOLUTIONS = {
    "conv": float32_images((0,), (0,), 1)._replace(emit=_conv),
    "conv_input_grad": float32_images((0,), (0,), 1)._replace(emit=_conv_input_grad),
    "conv_weight_grad": LayoutRule(_weight_gradient_images, _conv_weight_grad),
}
