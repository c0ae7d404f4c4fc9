"""Gradients, losses, normalization by the batch and optimizers: Custom nodes of the op's name."""

from __future__ import annotations

from mycelia.ir import Node
from mycelia_lite.converter.rules.customs import windows
from mycelia_lite.converter.rules.table import rule
from mycelia_lite.converter.writer import Writer
from mycelia_lite.format.custom import custom

_NUMBERS = {  # texts of attributes, in the order of their numbers
    "approximate": ("none", "tanh"),
    "reduction": ("mean", "sum", "none"),
    "data_format": ("NCHW", "NHWC"),
}
_REAL = (
    "alpha", "dampening", "epsilon", "gradient_scale", "max_val", "min_val", "momentum", "weight_decay",
)  # fmt: skip


@rule(
    "relu_grad", "sigmoid_grad", "tanh_grad", "silu_grad", "hardswish_grad", "leaky_relu_grad", "elu_grad",
    "hardtanh_grad", "gelu_grad", "softmax_grad", "log_softmax_grad",
    "sparse_softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits",
    "sigmoid_cross_entropy_with_logits", "squared_error", "squared_error_grad", "batch_norm_train",
    "batch_norm_grad", "apply_gradient_descent", "sgd", "apply_momentum", "adam", "adam_weight_decay",
    "adamw",
)  # fmt: skip
def _of_name(w: Writer, node: Node) -> None:
    w.emit_all(node.outputs, custom(node.op.name, **_plain(node.attrs)), [w.first(v) for v in node.inputs])


@rule("batch_norm_act_train", "batch_norm_act_grad")
def _joined_norm(w: Writer, node: Node) -> None:
    attrs = _plain({k: v for k, v in node.attrs.items() if k != "activation"})
    attrs["activation"] = ("relu", "relu6").index(node.attrs["activation"])
    inputs = [w.first(v) for v in node.inputs if v is not None]
    w.emit_all(node.outputs, custom(node.op.name, **attrs), inputs)


@rule("conv_weight_grad", "max_pool_grad", "avg_pool_grad")
def _of_windows(w: Writer, node: Node) -> None:
    attrs, rank = dict(node.attrs), node.inputs[0].type.rank - 2
    if attrs.pop("data_format", "NCHW") != "NCHW":
        raise w.fail("a gradient of images with the channels last")
    attrs |= windows(attrs, rank)
    if "size" in attrs:
        attrs["size"] = [int(n) for n in attrs["size"]]
    if "divisor" in attrs:
        attrs["divisor"] = attrs["divisor"] or 0
    given = custom(node.op.name, **_plain(attrs))
    w.emit(node.outputs[0], given, [w.first(v) for v in node.inputs])


def _plain(attrs: dict) -> dict:
    """Attributes as numbers."""
    made = {}
    for name, value in attrs.items():
        if name in _NUMBERS:
            made[name] = _NUMBERS[name].index(value)
        elif name in _REAL:
            made[name] = float(value)
        elif isinstance(value, bool):
            made[name] = int(value)
        else:
            made[name] = list(value) if isinstance(value, tuple) else value
    return made
