"""Primitives that are gradients, and what has no gradient."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.ops import operations as P
from mycelia.ops.primitives.define import registry

GRAD = Tensor([[[1.0, 2.0], [3.0, 4.0]]])
LEFT, RIGHT = Tensor([[[1.0, 2.0], [3.0, 4.0]]]), Tensor([[[2.5, 1.0], [0.0, 0.5]]])
DISTANCES = Tensor([[[3.0, 2.0], [1.5, 4.0]]])


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (0.0, [[0.0, 0.0], [0.0, 0.0]]),
        (1.0, [[1.0, 3.0], [7.0, 7.0]]),
        (1.5, [[0.7071067, 2.309401], [5.196152, 7.9842978]]),
        (2.0, [[0.5, 1.8333334], [4.0, 9.5]]),
        (3.0, [[0.25, 1.2361112], [2.5833333, 15.0625]]),
        (float("inf"), [[0.0, 0.0], [0.0, 0.0]]),
    ],
)
def test_gradient_of_cdist_uses_the_distances_given(p, expected):
    found = registry["CdistGrad"](p)(GRAD, LEFT, RIGHT, DISTANCES)
    np.testing.assert_allclose(found.asnumpy()[0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("p", "expected"), [(2.0, [[1.0, 1.5], [1.0, 6.0]]), (1.0, [[1.0, 3.0], [7.0, 7.0]])]
)
def test_equal_points_do_not_pull(p, expected):
    apart = Tensor([[[0.0, 2.0], [1.5, 0.0]]])
    found = registry["CdistGrad"](p)(GRAD, LEFT, RIGHT, apart)
    np.testing.assert_allclose(found.asnumpy()[0], expected, rtol=1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_gradient_of_cdist_is_that_of_its_rule(p):
    cdist = P.Cdist(p)
    by_rule = ms.vjp(lambda x: cdist(x, RIGHT), LEFT)[1](GRAD)[0]
    found = registry["CdistGrad"](p)(GRAD, LEFT, RIGHT, cdist(LEFT, RIGHT))
    np.testing.assert_allclose(found.asnumpy(), by_rule.asnumpy(), rtol=1e-4)


def test_places_of_maxima_count_through_the_channels():
    x = Tensor(np.arange(48, dtype=np.float32).reshape(2, 2, 3, 4))
    pool = P.MaxPoolWithArgmax(kernel_size=2, strides=1)
    for y, places in (pool(x), ms.jit(lambda x: pool(x))(x)):
        assert places.dtype == ms.int32
        assert places.asnumpy().tolist() == 2 * [[[[5, 6, 7], [9, 10, 11]], [[17, 18, 19], [21, 22, 23]]]]
        given = ops.ones_like(y) * 2
        found = registry["MaxPoolGradWithArgmax"](kernel_size=2, strides=1)(x, given, places)
        by_rule = ms.vjp(lambda v: pool(v)[0], x)[1](given)[0]
        assert found.asnumpy().tolist() == by_rule.asnumpy().tolist()


def test_second_gradient_of_layer_norm():
    rng = np.random.default_rng(0)
    x, dy, d_dx = (Tensor(rng.random((2, 3), np.float32)) for _ in range(3))
    gamma, d_dg, d_db = (Tensor(rng.random(3, np.float32)) for _ in range(3))
    mean, variance = x.mean(1, True), x.var(1, keepdims=True)
    found = registry["LayerNormGradGrad"](1, 1)(x, dy, variance, mean, gamma, d_dx, d_dg, d_db)

    def normalized(x, gamma):
        centred = x - ops.mean(x, 1, True)
        return centred / ops.sqrt(ops.mean(ops.square(centred), 1, True)) * gamma

    def backward(x, dy, gamma):
        return (*ms.vjp(normalized, x, gamma)[1](dy), ops.sum(dy, 0))

    expected = ms.vjp(backward, x, dy, gamma)[1]((d_dx, d_dg, d_db))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-3, atol=1e-4)


def test_statistics_of_layers_have_no_gradient():
    x = Tensor([[1.0, 2.0, 4.0], [0.0, 1.0, 5.0]])
    scale, shift = Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 1.0, 1.0])
    norm = P.LayerNorm(1, 1, 1e-7)
    moving = [ms.Parameter(ops.ones(3), name=name) for name in ("mean", "variance")]
    batch = P.BatchNorm(is_training=True)
    for which in (1, 2):
        assert not ms.grad(lambda x, k=which: norm(x, scale, shift)[k])(x).asnumpy().any()
        assert not ms.grad(lambda x, k=which: batch(x, scale, shift, *moving)[k])(x).asnumpy().any()


def test_numbers_have_no_gradient():
    x = Tensor([1.0, 2.0])
    assert ms.grad(lambda n: ops.arange(n))(4) == ()
    value, gradient = ms.value_and_grad(lambda n, x: x * n)(5, x)
    assert value.asnumpy().tolist() == [5, 10]
    assert gradient == ()


def test_slots_of_a_padded_array():
    x, slots = Tensor([9, 13, 7, -1, -1, 6], ms.int32), Tensor([0, 2, 3, 6], ms.int32)
    shift = P.PadAndShift()
    assert shift(x, slots, 0).asnumpy().tolist() == [9, 13, -1, -1, -1, -1]
    assert shift(x, slots, 2).asnumpy().tolist() == [-1, -1, -1, 9, 13, 7]
    assert shift(x, slots, 3).asnumpy().tolist() == [-1] * 6


@pytest.mark.parametrize(
    ("reduction", "expected"), [("none", 2.0), ("sum", 2.0), ("mean", 0.5), ("batchmean", 1.0)]
)
def test_gradient_of_kl_div_loss(reduction, expected):
    x, target = Tensor([[0.3, 0.7], [0.5, 0.5]]), Tensor([[-1.0, 1.0], [0.0, -1.0]])
    found = registry["KLDivLossGrad"](reduction)(Tensor([2.0]), x, target)
    assert found.asnumpy().tolist() == [[expected, -expected], [0, expected]]
    with pytest.raises(ValueError, match="'reduction' must be a str"):
        registry["KLDivLossGrad"](1.0)


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="not equal"):
        registry["HSigmoidGrad"]()(ops.ones(3), ops.ones(4))


def test_lists_and_tuples_turn_into_one_another():
    assert registry["ListToTuple"]()([1, 2.5]) == (1, 2.5)
    assert registry["TupleToList"]()((1, 2.5)) == [1, 2.5]


def test_a_choice_larger_than_the_memory_is_refused():
    with pytest.raises(RuntimeError, match="memory"):
        P.RandomChoiceWithMask(count=2**46)(Tensor([[True, False]]))


def test_scope_tells_that_a_cell_is_recomputed():
    layer = nn.ReLU()
    assert layer.get_scope() is None
    layer.recompute()
    assert layer.get_scope() == "recompute_"


def test_lengths_of_ctc_are_integers():
    with pytest.raises(TypeError, match="target_lengths must be int32 or int64, but got Float32"):
        ops.ctc_loss(ops.zeros((2, 1, 3)), Tensor([[1, 2]]), (2,), (0.5,))


def test_examples_of_a_vmap_draw_as_rows_do():
    weights = Tensor([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    rows = P.Multinomial(seed=5, seed2=6)(weights, 4)
    each = ops.vmap(lambda w: P.Multinomial(seed=5, seed2=6)(w, 4))(weights)
    assert each.asnumpy().tolist() == rows.asnumpy().tolist()


def test_places_have_the_dtype_of_what_is_read():
    with pytest.raises(TypeError, match="input type must be same"):
        ops.grid_sample(ops.ones((1, 1, 2, 2)), ops.zeros((1, 2, 2, 2), ms.int32))


def test_a_primitive_keeps_what_its_user_gives():
    add = P.Add()
    assert add.get_user_data("note") is None
    add.set_user_data("note", 3)
    assert add.get_user_data("note") == 3
    assert P.Add().get_user_data("note") is None


def test_only_tensors_have_a_shape():
    assert ops.shape(LEFT) == (1, 2, 2)
    with pytest.raises(TypeError, match="must be a Tensor, but got list"):
        ops.shape([LEFT, RIGHT])


def test_primitives_made_in_graphs_of_numbers_that_change():
    @ms.jit
    def resized(x, size):
        return P.ResizeNearestNeighbor(size)(x)

    @ms.jit
    def pooled(x, *settings):
        return P.AvgPool(*settings)(x)

    x = Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    assert resized(x, ms.mutable((2, 4))).asnumpy().tolist() == [[[[1, 1, 2, 2], [3, 3, 4, 4]]]]
    assert resized(x, ms.mutable((2, 2))).asnumpy().tolist() == x.asnumpy().tolist()
    assert pooled(x, ms.mutable(2), ms.mutable(1)).asnumpy().tolist() == [[[[2.5]]]]
