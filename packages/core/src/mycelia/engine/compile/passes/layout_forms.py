"""How each op looks on images with the channels last: the table that `layout` works with.

A plane is a rank 4 value [N, C, H, W]; its twin holds the same numbers as [N, H, W, C]. A form says which
inputs and outputs of a node are planes, and emits the node on twins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelia.engine.base import dtypes
from mycelia.engine.compile.passes.selection import accuracy
from mycelia.engine.ir.graph import Node, Value
from mycelia.engine.ir.sizes import hint_of
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.nn_ops.conv import full_attributes

if TYPE_CHECKING:
    from mycelia.engine.compile.passes.layout import Twins

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)  # `dims` of the transpose to channels last, and back
_POSITION = {0: 0, 1: 3, 2: 1, 3: 2}  # axis of a plane -> axis of its twin


def twin_shape(shape: Sequence[int]) -> tuple[int, ...]:
    n, c, h, w = shape
    return n, h, w, c


def is_plane(value: Value | None) -> bool:
    return value is not None and len(value.type.shape) == 4 and value.type.is_static


@dataclass(frozen=True, slots=True)
class Form:
    """`planes` gives the positions of the inputs and outputs that are planes, or None if the node has no
    channels-last form; `emit` appends that form and returns what stands for the node's outputs: twins of the
    planes, other values as they were.
    """

    planes: Callable[[Node], tuple[Sequence[int], Sequence[int]] | None]
    emit: Callable[[Twins, Node], Sequence[Value]]


FORMS: dict[str, Form] = {}


def _form(*names: str, planes: Callable) -> Callable:
    def add(emit: Callable) -> Callable:
        for name in names:
            FORMS[name] = Form(planes, emit)
        return emit

    return add


def _fixed(inputs: Sequence[int], outputs: Sequence[int]) -> Callable:
    """Planes at these positions, all of rank 4."""

    def planes(node: Node):
        if all(is_plane(node.inputs[i]) for i in inputs) and all(is_plane(node.outputs[i]) for i in outputs):
            return inputs, outputs
        return None

    return planes


def _same_attrs(twins: Twins, node: Node, inputs: Sequence[Value | None], **changed: Any) -> list[Value]:
    return twins.emit(node.op, inputs, {**node.attrs, **changed})


# ---- elementwise -------------------------------------------------------------------------------------------

ELEMENTWISE = frozenset((
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "binary_cross_entropy",
    "bitwise_and", "bitwise_or", "bitwise_xor", "cast", "ceil", "celu", "clip", "clip_grad", "copysign",
    "cos", "cosh", "div", "elu", "elu_grad", "equal", "erf", "erfc", "erfinv", "exp", "exp2", "expm1",
    "fast_gelu", "fill_like", "floor", "floor_div", "floor_mod", "gelu", "gelu_grad", "greater",
    "greater_equal", "hardshrink", "hardsigmoid", "hardswish", "hardswish_grad", "hardtanh",
    "hardtanh_grad", "hypot", "isfinite", "isinf", "isnan", "leaky_relu", "leaky_relu_grad", "less",
    "less_equal", "lgamma", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logsigmoid", "masked_fill", "maximum", "minimum", "mish", "mul", "neg",
    "not_equal", "pow", "reciprocal",
    "recomputed", "relu", "relu6", "relu_grad", "round_bf16", "round_f16", "rsqrt", "selu", "sigmoid",
    "sigmoid_cross_entropy_with_logits", "sigmoid_grad", "sign", "silu", "silu_grad", "sin", "sinh",
    "smooth_l1", "softplus", "softplus_grad", "softshrink", "softsign", "sqrt", "square", "stop_gradient",
    "sub", "tan", "tanh", "tanh_grad", "threshold", "trunc", "where", "xlogy",
))  # fmt: skip


def _elementwise_planes(node: Node):
    if len(node.outputs) != 1 or not is_plane(node.outputs[0]):
        return None
    return [i for i, v in enumerate(node.inputs) if is_plane(v)], (0,)


def _elementwise(twins: Twins, node: Node) -> Sequence[Value]:
    inputs = [twins.aligned(v) for v in node.inputs]
    out = node.outputs[0].type
    return twins.append(node, inputs, node.attrs, [TensorType(out.dtype, twin_shape(out.shape))])


for _name in ELEMENTWISE:
    FORMS[_name] = Form(_elementwise_planes, _elementwise)


# ---- convolution -------------------------------------------------------------------------------------------


def _is_image_op(node: Node, *positions: int) -> bool:
    """Float32 values of rank 4 throughout."""
    values = [node.inputs[i] for i in positions] + node.outputs
    return all(is_plane(v) and v.type.dtype is dtypes.float32 for v in values)


def _geometry(node: Node, kernel: Sequence[int]) -> dict[str, Any]:
    kernel, stride, pad, dilation = full_attributes(
        2, kernel, node.attrs["stride"], node.attrs["pad"], node.attrs["dilation"]
    )
    return dict(kernel=kernel, stride=stride, pad=pad, dilation=dilation, group=node.attrs["group"])


def _pack(twins: Twins, weight: Value, algorithm: str, group: int, transposed: bool = False) -> Value:
    attrs = dict(algorithm=algorithm, group=group, transposed=transposed)
    return twins.emit("conv_pack", [weight], attrs)[0]


def _chosen(twins: Twins, x: Sequence[int], channels: int, how: dict[str, Any]) -> str:
    """The backend's algorithm for images `x` [N, H, W, I] and `channels` outputs."""
    sizes = [hint_of(n) for n in x]
    return twins.backend.backend.choose_convolution(
        sizes, channels, how["kernel"], stride=how["stride"], pad=how["pad"], dilation=how["dilation"],
        group=how["group"], strict=accuracy() == "strict",
    )  # fmt: skip


@_form("conv", planes=lambda node: ((0,), (0,)) if _is_image_op(node, 0, 1) else None)
def _conv(twins: Twins, node: Node) -> Sequence[Value]:
    x, weight, bias = node.inputs
    how = _geometry(node, weight.type.shape[2:])
    channels = weight.type.shape[0]
    algorithm = _chosen(twins, twin_shape(x.type.shape), channels, how)
    pack = _pack(twins, weight, algorithm, how["group"])
    attrs = dict(channels=channels, algorithm=algorithm, **how)
    return twins.emit("conv_last", [twins.last(x), pack, bias, None], attrs)


@_form("conv_input_grad", planes=lambda node: ((0,), (0,)) if _is_image_op(node, 0, 1) else None)
def _conv_input_grad(twins: Twins, node: Node) -> Sequence[Value]:
    dy, weight = node.inputs
    how = _geometry(node, weight.type.shape[2:])
    channels, pad = weight.type.shape[1] * how["group"], how["pad"]
    reach = [d * (k - 1) for d, k in zip(how["dilation"], how["kernel"])] * 2
    if how["stride"] == (1, 1) and all(p <= r for p, r in zip(pad, reach)):
        # Without a stride it is a convolution of dy with the turned weights.
        how["pad"] = tuple(r - p for p, r in zip(pad, reach))
        algorithm = _chosen(twins, twin_shape(dy.type.shape), channels, how)
        pack = _pack(twins, weight, algorithm, how["group"], transposed=True)
        attrs = dict(channels=channels, algorithm=algorithm, **how)
        return twins.emit("conv_last", [twins.last(dy), pack, None, None], attrs)
    alone = how["group"] == channels == weight.type.shape[0]
    algorithm = "depthwise" if alone else "direct"
    pack = _pack(twins, weight, algorithm, how["group"], transposed=True)
    attrs = dict(channels=channels, size=node.attrs["size"], algorithm=algorithm, **how)
    return twins.emit("conv_last_input_grad", [twins.last(dy), pack], attrs)


@_form("conv_weight_grad", planes=lambda node: ((0, 1), ()) if _is_image_op(node, 0, 1) else None)
def _conv_weight_grad(twins: Twins, node: Node) -> Sequence[Value]:
    how = _geometry(node, node.attrs["kernel"])
    plain = how["kernel"] == (3, 3) and (*how["stride"], *how["dilation"], how["group"]) == (1, 1, 1, 1, 1)
    how["algorithm"] = "winograd4" if plain and accuracy() != "strict" else "direct"
    return twins.emit("conv_last_weight_grad", [twins.last(v) for v in node.inputs], how)


# ---- ops with an attribute for it --------------------------------------------------------------------------

_VECTORS = {  # planes among the inputs and outputs
    "batch_norm_infer": ((0,), (0,)),
    "batch_norm_train": ((2,), (2,)),
    "batch_norm_grad": ((0, 1), (0,)),
    "bias_add": ((0,), (0,)),
    "max_pool": ((0,), (0,)),
    "max_pool_grad": ((0, 1), (0,)),
    "avg_pool": ((0,), (0,)),
    "avg_pool_grad": ((0,), (0,)),
}


def _formatted_planes(node: Node):
    inputs, outputs = _VECTORS[node.op.name]
    if node.attrs["data_format"] != "NCHW":
        return None
    return _fixed(inputs, outputs)(node)


@_form(*_VECTORS, planes=_formatted_planes)
def _formatted(twins: Twins, node: Node) -> Sequence[Value]:
    inputs, _ = _VECTORS[node.op.name]
    values = [twins.last(v) if i in inputs else twins.first(v) for i, v in enumerate(node.inputs)]
    return _same_attrs(twins, node, values, data_format="NHWC")


def _even_windows(data: Value, windows: Value) -> tuple[int, int] | None:
    """The window that adaptive pooling takes everywhere, if it is the same everywhere."""
    (h, w), (rows, columns) = data.type.shape[2:], windows.type.shape[2:]
    if 0 in (h, w, rows, columns) or h % rows or w % columns:
        return None
    return h // rows, w // columns


def _adaptive_planes(node: Node):
    pair = node.inputs[0], node.outputs[0]
    if not all(map(is_plane, pair)):
        return None
    data, windows = pair[::-1] if node.op.name == "adaptive_avg_pool_grad" else pair
    return ((0,), (0,)) if _even_windows(data, windows) else None


@_form("adaptive_avg_pool", planes=_adaptive_planes)
def _adaptive_avg_pool(twins: Twins, node: Node) -> Sequence[Value]:
    kernel = _even_windows(node.inputs[0], node.outputs[0])
    how = dict(kernel=kernel, stride=kernel, data_format="NHWC")
    return twins.emit("avg_pool", [twins.last(node.inputs[0])], how)


@_form("adaptive_avg_pool_grad", planes=_adaptive_planes)
def _adaptive_avg_pool_grad(twins: Twins, node: Node) -> Sequence[Value]:
    kernel = _even_windows(node.outputs[0], node.inputs[0])
    size = node.outputs[0].type.shape[2:]
    how = dict(size=size, kernel=kernel, stride=kernel, data_format="NHWC")
    return twins.emit("avg_pool_grad", [twins.last(node.inputs[0])], how)


# ---- along axes --------------------------------------------------------------------------------------------

_REDUCTIONS = {  # names of the attributes for axes and for keeping them
    "sum": ("dim", "keepdim"),
    "mean": ("axis", "keep_dims"),
    "prod": ("axis", "keep_dims"),
    "all": ("axis", "keep_dims"),
    "any": ("axis", "keep_dims"),
    "reduce_max": ("axis", "keepdims"),
    "reduce_min": ("axis", "keepdims"),
    "l2_norm": ("axis", "keepdims"),
    "argmax": ("axis", "keepdims"),
    "argmin": ("axis", "keepdims"),
}


def _axes(node: Node, name: str) -> tuple[int, ...]:
    given = node.attrs[name]
    if isinstance(given, int):
        return (given % 4,)
    return tuple(a % 4 for a in given) if given else (0, 1, 2, 3)


def _reduction_planes(node: Node):
    name, keep = _REDUCTIONS[node.op.name]
    if not is_plane(node.inputs[0]):
        return None
    if node.attrs[keep]:
        # The position of an extreme in the flat data depends on the layout.
        return None if node.attrs[name] is None and node.op.name.startswith("arg") else ((0,), (0,))
    if node.attrs[name] is None and node.op.name.startswith("arg"):
        return None
    gone = _axes(node, name)
    left = [_POSITION[a] for a in range(4) if a not in gone]
    return ((0,), ()) if left == sorted(left) else None


@_form(*_REDUCTIONS, planes=_reduction_planes)
def _reduction(twins: Twins, node: Node) -> Sequence[Value]:
    name, _ = _REDUCTIONS[node.op.name]
    axes: Any = node.attrs[name]
    if axes is not None:
        single = isinstance(axes, int)
        axes = _POSITION[axes % 4] if single else tuple(sorted(_POSITION[a] for a in _axes(node, name)))
    return _same_attrs(twins, node, [twins.last(node.inputs[0])], **{name: axes})


@_form("softmax", "log_softmax", planes=_fixed((0,), (0,)))
@_form("softmax_grad", "log_softmax_grad", planes=_fixed((0, 1), (0,)))
def _softmax(twins: Twins, node: Node) -> Sequence[Value]:
    axis = _POSITION[node.attrs["axis"] % 4]
    return _same_attrs(twins, node, [twins.last(v) for v in node.inputs], axis=axis)


def _all_planes(node: Node):
    if all(map(is_plane, node.inputs)) and all(map(is_plane, node.outputs)):
        return range(len(node.inputs)), range(len(node.outputs))
    return None


@_form("concat", "split", planes=_all_planes)
def _along(twins: Twins, node: Node) -> Sequence[Value]:
    axis = _POSITION[node.attrs["axis"] % 4]
    return _same_attrs(twins, node, [twins.last(v) for v in node.inputs], axis=axis)


def _gather_planes(node: Node):
    index = node.inputs[1]
    if len(index.type.shape) != 1 or node.attrs["batch_dims"]:
        return None
    return _fixed((0,), (0,))(node)


@_form("gather", "gather_grad", planes=_gather_planes)
def _gather(twins: Twins, node: Node) -> Sequence[Value]:
    changed: dict[str, Any] = dict(axis=_POSITION[node.attrs["axis"] % 4])
    if "shape" in node.attrs:
        changed["shape"] = twin_shape(node.attrs["shape"])
    return _same_attrs(twins, node, [twins.last(node.inputs[0]), node.inputs[1]], **changed)


# ---- cutting and padding -----------------------------------------------------------------------------------


@_form("pad_constant", planes=_fixed((0,), (0,)))
def _pad_constant(twins: Twins, node: Node) -> Sequence[Value]:
    pads = node.attrs["pads"]
    pairs = twin_shape([pads[2 * i : 2 * i + 2] for i in range(4)])
    return _same_attrs(twins, node, [twins.last(node.inputs[0])], pads=sum(map(tuple, pairs), ()))


def _slice_planes(node: Node):
    # A slice that also drops axes is left alone.
    return _fixed((0,), (0,))(node) if tuple(node.attrs["shape"]) == tuple(node.attrs["size"]) else None


@_form("strided_slice", planes=_slice_planes)
@_form("strided_place", planes=_fixed((0,), (0,)))
def _sliced(twins: Twins, node: Node) -> Sequence[Value]:
    turned = {name: twin_shape(v) for name, v in node.attrs.items()}
    return _same_attrs(twins, node, [twins.last(node.inputs[0])], **turned)


# ---- broadcasting ------------------------------------------------------------------------------------------


def _stretched_planes(node: Node):
    if not is_plane(node.outputs[0]) or not node.inputs[0].type.is_static:
        return None
    return [0] if is_plane(node.inputs[0]) else (), (0,)


@_form("broadcast_to", planes=_stretched_planes)
def _broadcast_to(twins: Twins, node: Node) -> Sequence[Value]:
    shape = twin_shape(node.outputs[0].type.shape)
    return twins.emit(node.op, [twins.aligned(node.inputs[0])], dict(shape=shape))


def _summed_planes(node: Node):
    if not is_plane(node.inputs[0]):
        return None
    shape = node.outputs[0].type.shape
    if len(shape) == 4:
        return (0,), (0,)
    return ((0,), ()) if keeps_order(shape) else None


@_form("sum_to", planes=_summed_planes)
def _sum_to(twins: Twins, node: Node) -> Sequence[Value]:
    shape = node.outputs[0].type.shape
    whole = twin_shape((1,) * (4 - len(shape)) + tuple(shape))
    found = twins.emit(node.op, [twins.last(node.inputs[0])], dict(shape=whole))
    return found if len(shape) == 4 else twins.emit("reshape", found, dict(shape=shape))


def keeps_order(shape: Sequence[int]) -> bool:
    """Whether a plane of this shape (padded by ones) and its twin hold their elements in the same order."""
    n, c, h, w = (1,) * (4 - len(shape)) + tuple(shape)
    return c == 1 or h * w == 1 or math.prod(shape) == 0
