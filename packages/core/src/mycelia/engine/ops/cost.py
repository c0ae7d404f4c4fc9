"""What an op costs at least: floating-point operations and bytes of memory traffic, from types alone.

A multiplication and an addition are two operations, an elementwise function counts one an element. Traffic is
what must move when every input is read and every output written once. Only ops for which that is wrong have a
rule here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import OpDef
from mycelia.engine.ops.lowered.fused import step_count


class Cost(NamedTuple):
    """Operations and bytes of one call."""

    flops: int
    bytes: int


_flops: dict[str, Callable[[tuple, tuple, dict], int]] = {}

# Ops that move elements or look at shapes.
_MOVES = frozenset(
    """assign broadcast_to cast col2im concat conv_pack diagonal embedding expand_dims fill_like flip gather
    gather_d gather_nd im2col linear_pack one_hot pad_constant reshape roll shape_of sort split squeeze stack
    stop_gradient strided_assign strided_place strided_slice strided_write tile transpose tril triu unstack
    where""".split()
)
# Ops that read only as much as they give of the input at this position.
_PARTS = {"embedding": 1, "gather": 0, "gather_d": 0, "gather_nd": 0, "strided_slice": 0}
# Operations an element of the largest tensor, of ops that do more than one.
_FACTORS = {
    "softmax": 4, "log_softmax": 4, "softmax_grad": 4, "log_softmax_grad": 4,
    "layer_norm": 7, "layer_norm_grad": 10,
    "rms_norm": 4, "rms_norm_grad": 8, "group_norm": 7, "group_norm_grad": 10, "batch_norm_train": 7,
    "batch_norm_infer": 2, "batch_norm_grad": 10, "batch_norm_act_train": 9,
    "batch_norm_act_grad": 13, "gelu": 8, "gelu_grad": 16, "silu": 4, "silu_grad": 6,
    "adam": 12, "adamw": 14, "adam_weight_decay": 14, "apply_momentum": 4, "sgd": 4,
}  # fmt: skip


def cost(definition: OpDef, inputs: tuple, outputs: tuple, attrs: dict) -> Cost | None:
    """Cost of an op on inputs and outputs of these types (None: absent); None where sizes are not known."""
    present = [t for t in (*inputs, *outputs) if isinstance(t, TensorType)]
    if not all(t.is_static for t in present):
        return None
    if definition.view:
        return Cost(0, 0)
    name = definition.name
    traffic = sum(t.nbytes for t in present)
    if name in _PARTS:
        traffic += outputs[0].nbytes - inputs[_PARTS[name]].nbytes
    if name in _MOVES:
        return Cost(0, traffic)
    rule = _flops.get(name)
    if rule is not None:
        return Cost(rule(inputs, outputs, attrs), traffic)
    return Cost(_FACTORS.get(name, 1) * max((t.size for t in present), default=0), traffic)


def _rule(*names: str):
    def register(function):
        _flops.update((name, function) for name in names)
        return function

    return register


@_rule("mat_mul", "batch_matmul")
def _product(inputs, outputs, attrs):
    return 2 * outputs[0].size * inputs[0].shape[-2 if attrs["transpose_a"] else -1]


@_rule("dense", "linear")
def _dense(inputs, outputs, attrs):
    return 2 * outputs[0].size * inputs[0].shape[-1]


@_rule("conv")
def _conv(inputs, outputs, attrs):
    return 2 * outputs[0].size * math.prod(inputs[1].shape[1:])


@_rule("conv_input_grad")
def _conv_input_grad(inputs, outputs, attrs):
    return 2 * inputs[0].size * math.prod(inputs[1].shape[1:])


@_rule("conv_weight_grad")
def _conv_weight_grad(inputs, outputs, attrs):
    return 2 * inputs[1].size * math.prod(outputs[0].shape[1:])


@_rule("conv_last")
def _conv_last(inputs, outputs, attrs):
    return 2 * outputs[0].size * math.prod(attrs["kernel"]) * (inputs[0].shape[-1] // attrs["group"])


@_rule("conv_last_separable")
def _conv_last_separable(inputs, outputs, attrs):
    pixels, places = inputs[0].size // inputs[0].shape[-1], outputs[0].size // outputs[0].shape[-1]
    expanding = 0 if inputs[6] is None else pixels * inputs[0].shape[-1]
    return 2 * attrs["hidden"] * (expanding + places * (math.prod(attrs["kernel"]) + outputs[0].shape[-1]))


@_rule("conv_last_input_grad")
def _conv_last_input_grad(inputs, outputs, attrs):
    return 2 * inputs[0].size * math.prod(attrs["kernel"]) * (outputs[0].shape[-1] // attrs["group"])


@_rule("conv_last_weight_grad")
def _conv_last_weight_grad(inputs, outputs, attrs):
    return 2 * inputs[1].size * math.prod(outputs[0].shape[1:])


@_rule("attention")
def _attention(inputs, outputs, attrs):
    query, key, value = inputs[:3]
    scores = math.prod(query.shape[:-1]) * key.shape[-2] // (2 if attrs["is_causal"] else 1)
    return scores * (2 * query.shape[-1] + 2 * value.shape[-1] + 4)


@_rule("attention_grad")
def _attention_grad(inputs, outputs, attrs):
    query, key, value = inputs[1:4]
    scores = math.prod(query.shape[:-1]) * key.shape[-2] // (2 if attrs["is_causal"] else 1)
    return scores * (6 * query.shape[-1] + 4 * value.shape[-1] + 8)


def _recurrent(first_weight: int, products: int):
    """Each step multiplies by both matrices of weights, `products` times."""

    def flops(inputs, outputs, attrs):
        steps, batch, _ = inputs[0].shape
        weights = sum(t.size for t in inputs[first_weight : first_weight + 2])
        return 2 * products * steps * batch * weights

    return flops


_rule("lstm_layer")(_recurrent(3, 1))
_rule("gru_layer", "rnn_layer")(_recurrent(2, 1))
_rule("lstm_layer_grad")(_recurrent(3, 2))
_rule("gru_layer_grad", "rnn_layer_grad")(_recurrent(2, 2))


@_rule("fused_map")
def _fused(inputs, outputs, attrs):
    return step_count(attrs["code"]) * max(t.size for t in inputs if isinstance(t, TensorType))
