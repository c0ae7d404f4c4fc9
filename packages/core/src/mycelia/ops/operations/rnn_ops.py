"""Recurrent networks."""

import math

from mycelia import errors, ops
from mycelia.ops.operations.checks import boolean, natural, positive, real, within
from mycelia.ops.operations.define import primitive
from mycelia.ops.rnn import _lstm_layer


def _split(flat, shapes):
    parts, begin = [], 0
    for shape in shapes:
        end = begin + math.prod(shape)
        parts.append(ops.reshape(flat[begin:end], shape))
        begin = end
    return parts


@primitive
def LSTM(
    input, h, c, w,
    *, input_size: positive, hidden_size: positive, num_layers: positive, has_bias: boolean,
    bidirectional: boolean, dropout: within(real, 0.0, 1.0), proj_size: natural = 0,
):  # fmt: skip
    """Long short-term memory over sequences, the weights of all layers in one tensor.

    `w` holds the weights [4H, in] of each layer and direction (gates input, forget, cell, output), then those
    of [4H, H], then, with `has_bias`, the biases [4H]; what follows is not used.
    Shapes: input [T, N, in], h and c [layers * directions, N, H], w [size, 1, 1] -> output [T, N,
    directions * H], h's, c's, and two tensors [1] that only other targets use.
    """
    if proj_size:
        raise errors.error(errors.NotSupportedError, "LSTM", "proj_size is for other targets than CPU")
    if input.ndim != 3 or input.shape[2] != input_size:
        raise errors.value_error(
            "LSTM", f"input must be [T, N, {input_size}], but its shape is {tuple(input.shape)}"
        )
    directions, gates = 1 + bidirectional, 4 * hidden_size
    count = num_layers * directions
    widths = [input_size] * directions + [directions * hidden_size] * (count - directions)
    sizes = [(gates, n) for n in widths] + [(gates, hidden_size)] * count + [(gates,)] * (has_bias * count)
    parts = _split(ops.reshape(w, (-1,)), sizes)
    hidden, cells, x = [], [], input
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            weights = parts[k::count]
            if has_bias:
                weights.append(ops.zeros_like(weights[-1]))
            sequence = ops.flip(x, (0,)) if direction else x
            y, last, cell = _lstm_layer(sequence, h[k], c[k], *weights)[:3]
            outputs.append(ops.flip(y, (0,)) if direction else y)
            hidden.append(last)
            cells.append(cell)
        x = outputs[0] if directions == 1 else ops.concat(tuple(outputs), -1)
        if dropout and layer + 1 < num_layers:
            x = ops.dropout(x, dropout)
    nothing = ops.zeros((1,), input.dtype)
    return x, ops.stack(hidden), ops.stack(cells), nothing, nothing
