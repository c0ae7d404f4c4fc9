"""Products of matrices of TensorFlow Lite."""

from __future__ import annotations

import math

from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import known, known_shape, shape_of
from mycelia_lite.converter.importers.tflite.calls import operator
from mycelia_lite.converter.importers.tflite.quantized import finished


@operator("FULLY_CONNECTED")
def _fully_connected(call, x, weight, bias=None):
    """x times the transposed weights [O, I]; rows are what is left of x, unless `keep_num_dims`."""
    table = "FullyConnectedOptions"
    if call.name_of(table, "weights_format") != "DEFAULT":
        raise call.option("weights_format", call.get(table, "weights_format").name, "is not imported")
    call.get(
        table, "asymmetric_quantize_inputs"
    )  # weights of integers are used as the numbers they stand for
    call.get(table, "quantized_bias_type")
    keep = call.get(table, "keep_num_dims")
    outputs, inputs = known_shape(call, weight)
    shape = shape_of(x)
    if keep and shape[-1] != inputs:
        raise call.fail(f"weights {[outputs, inputs]} for {list(shape)}")
    if len(shape) != 2 and not keep or len(shape) == 2 and shape[1] != inputs:
        rest = shape[1:]
        rows = shape[0] if rest and all(type(n) is int for n in rest) and math.prod(rest) == inputs else -1
        x = ops.reshape(x, (rows, inputs))
    return finished(call, table, (call.exact or ops.dense)(x, weight, bias))


@operator("BATCH_MATMUL")
def _batch_matmul(call, a, b):
    table = "BatchMatMulOptions"
    call.get(table, "asymmetric_quantize_inputs")
    if call.get(table, "adj_x"):
        a = ops.swapaxes(a, -1, -2)
    turned = call.get(table, "adj_y")
    if len(shape_of(b)) == 2 and len(shape_of(a)) > 1 and known(b) is not None:
        y = ops.dense(a, b if turned else ops.transpose(b, (1, 0)))
    else:
        y = ops.matmul(a, ops.swapaxes(b, -1, -2) if turned else b)
    return y if call.multiplier is None and not call.sums else finished(call, table, y)
