"""Convolutions of TensorFlow Lite over three dimensions, with the channels last."""

from __future__ import annotations

from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.importers.onnx.calls import known_shape, need_known, shape_of
from mycelia_lite.converter.importers.tflite.calls import activated, operator, rank_of
from mycelia_lite.converter.importers.tflite.windows import positive, same_pads, transposed_pads

_conv_op, _conv_input_grad = find("conv"), find("conv_input_grad")
_TABLE = "Conv3DOptions"
_FIRST, _LAST = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)


def _steps(call):
    """Strides and dilations."""
    axes = ("d", "h", "w")
    strides = positive(call, _TABLE, *(f"stride_{axis}" for axis in axes))
    return strides, positive(call, _TABLE, *(f"dilation_{axis}_factor" for axis in axes))


def _volumes(call, *values):
    for value in values:
        if rank_of(value) != 5:
            raise call.fail(f"a tensor of {rank_of(value)} axes, 5 are needed")


@operator("CONV_3D")
def _conv(call, x, weight, bias=None):
    """Weights are [d, h, w, I, O]."""
    _volumes(call, x, weight)
    strides, dilations = _steps(call)
    spans = [(k - 1) * gap + 1 for k, gap in zip(known_shape(call, weight)[:3], dilations)]
    same = call.name_of(_TABLE, "padding") == "SAME"
    pads = same_pads(call, shape_of(x)[1:4], spans, strides) if same else (0,) * 6
    turned = ops.transpose(weight, (4, 3, 0, 1, 2))
    y = _conv_op(
        ops.transpose(x, _FIRST), turned, bias, stride=strides, pad=pads, dilation=dilations, group=1
    )
    return activated(call, _TABLE, ops.transpose(y, _LAST))


@operator("CONV_3D_TRANSPOSE")
def _transposed(call, size, weight, x, bias=None):
    """Weights are [d, h, w, O, I]; the sizes of the result are an input."""
    _volumes(call, x, weight)
    strides, dilations = _steps(call)
    wanted = need_known(call, size, "output_shape").reshape(-1).tolist()
    channels = known_shape(call, weight)[3:]
    if len(wanted) != 5 or min(wanted) < 1 or channels != (wanted[4], known_shape(call, x, (4,))[4]):
        raise call.fail(f"a result of shape {wanted} of weights {list(shape_of(weight))}")
    sizes, kernel = known_shape(call, x, (1, 2, 3))[1:4], known_shape(call, weight)[:3]
    spans = [(k - 1) * gap + 1 for k, gap in zip(kernel, dilations)]
    same = call.name_of(_TABLE, "padding") == "SAME"
    y = _conv_input_grad(
        ops.transpose(x, _FIRST), ops.transpose(weight, (4, 3, 0, 1, 2)), size=tuple(wanted[1:4]),
        stride=strides, pad=transposed_pads(call, sizes, spans, strides, wanted[1:4], same),
        dilation=dilations, group=1,
    )  # fmt: skip
    y = ops.transpose(y, _LAST)
    return activated(call, _TABLE, y if bias is None else ops.add(y, bias))
