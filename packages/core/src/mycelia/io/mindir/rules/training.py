"""Rules of training steps that are operators of their own; others are compositions (`io/compositions`)."""

from __future__ import annotations

from mycelia.engine.ir import Node
from mycelia.io.mindir.rules.shape import part_of
from mycelia.io.mindir.rules.table import Unsupported, require_static, rule
from mycelia.io.mindir.rules.windows import max_windows, pool


@rule("stop_gradient")
def _stop_gradient(w, node, inputs):
    return inputs[0]


@rule("max_pool_grad")
def _max_pool_grad(w, node, inputs):
    x, dy, attrs = node.inputs[0].type, node.inputs[1].type, node.attrs
    if x.rank != 4 or attrs["data_format"] != "NCHW" or any(d != 1 for d in attrs["dilation"]):
        raise Unsupported("max_pool_grad of other than images with channels first, or with dilation")
    require_static(node, x)
    forward = Node(node.op, node.inputs[:1], attrs, [dy])
    name, kernel, stride, begins, ends = max_windows(w, forward, inputs[0])
    pooled = pool(w, "MaxPool", name, kernel, stride, dy)
    sizes = dict(kernel_size=(1, 1, *kernel), strides=(1, 1, *stride))
    grad = w.primitive(
        "MaxPoolGrad", name, pooled, inputs[1], pad_mode="VALID", format="NCHW", data_format="NCHW", **sizes
    )
    return part_of(w, grad, (0, 0, *begins), x.shape, (1,) * 4, x) if any((*begins, *ends)) else grad
