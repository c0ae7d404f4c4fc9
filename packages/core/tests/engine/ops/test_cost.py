"""Operations and bytes of ops, counted from types."""

import pytest

from mycelia import dtypes
from mycelia.engine.ops.cost import Cost, cost
from mycelia.ir.types import TensorType
from mycelia.ops.define import find


def f32(*shape):
    return TensorType(dtypes.float32, shape)


def cost_of(name, *inputs, **attrs):
    definition = find(name).definition
    given = {a.name: attrs.get(a.name, a.default) for a in definition.attrs}
    outputs = definition.infer_types(inputs, given)
    return cost(definition, inputs, outputs, given)


def test_products_count_two_operations_an_element_of_the_sum():
    assert cost_of("mat_mul", f32(3, 5), f32(5, 7)) == Cost(2 * 3 * 5 * 7, 4 * (15 + 35 + 21))
    assert cost_of("mat_mul", f32(5, 3), f32(5, 7), transpose_a=True).flops == 2 * 3 * 5 * 7
    assert cost_of("batch_matmul", f32(2, 3, 5), f32(2, 7, 5), transpose_b=True).flops == 2 * 2 * 3 * 5 * 7
    assert cost_of("dense", f32(3, 5), f32(7, 5), f32(7)).flops == 2 * 3 * 5 * 7


def test_both_layouts_of_a_convolution_cost_the_same():
    window = dict(stride=(2, 2), pad=(1, 1, 1, 1), dilation=(1, 1), group=2)
    first = cost_of("conv", f32(2, 8, 10, 10), f32(16, 4, 3, 3), None, **window)
    pack = cost_of("conv_pack", f32(16, 4, 3, 3), algorithm="direct", group=2, transposed=False)
    assert pack.flops == 0
    packed = f32(2 * 9 * 4 * 16)
    last = cost_of(
        "conv_last", f32(2, 10, 10, 8), packed, None, None, channels=16, kernel=(3, 3), algorithm="direct",
        activation="none", **window,
    )  # fmt: skip
    assert first.flops == last.flops == 2 * (2 * 5 * 5 * 16) * 4 * 9


def test_gradients_of_a_convolution_cost_as_much_as_the_convolution():
    window = dict(stride=(1, 1), pad=(1, 1, 1, 1), dilation=(1, 1), group=1)
    x, w, dy = f32(2, 8, 10, 10), f32(16, 8, 3, 3), f32(2, 16, 10, 10)
    forward = cost_of("conv", x, w, None, **window).flops
    assert cost_of("conv_weight_grad", x, dy, kernel=(3, 3), **window).flops == forward
    assert cost_of("conv_input_grad", dy, w, size=(10, 10), **window).flops == forward


def test_moving_elements_is_no_arithmetic():
    assert cost_of("transpose", f32(3, 5), dims=(1, 0)) == Cost(0, 2 * 60)
    assert cost_of("reshape", f32(3, 5), shape=(15,)) == Cost(0, 0)


def test_a_lookup_reads_only_the_rows_it_gives():
    ids = TensorType(dtypes.int32, (6,))
    found = cost_of("embedding", ids, f32(30000, 8))
    assert found.flops == 0
    assert found.bytes < 4 * 30000 * 8


@pytest.mark.parametrize(("name", "gates"), [("lstm_layer", 4), ("gru_layer", 3), ("rnn_layer", 1)])
def test_recurrent_layers_multiply_by_both_matrices_each_step(name, gates):
    states = (f32(2, 6),) * (2 if name == "lstm_layer" else 1)
    found = cost_of(name, f32(9, 2, 5), *states, f32(gates * 6, 5), f32(gates * 6, 6), None, None)
    assert found.flops == 2 * 9 * 2 * gates * 6 * (5 + 6)


def test_unknown_sizes_have_no_cost():
    assert cost_of("exp", f32(-1, 3)) is None
