"""Primitives that few networks have; numbers are MindSpore's."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops


def floats(values):
    return Tensor(np.array(values, np.float32))


def test_categories_are_those_of_the_seed():
    logits = floats(np.log([[1, 2, 3, 4]]))
    draw = ops.RandomCategorical(ms.int32)
    assert draw(logits, 8, 7).asnumpy().tolist() == [[2, 3, 3, 2, 3, 1, 1, 3]]
    assert draw(logits, 8, 7).asnumpy().tolist() == [[3, 3, 1, 3, 3, 2, 1, 3]]
    assert draw(logits, 8, 9).asnumpy().tolist() == [[1, 2, 2, 0, 2, 1, 3, 2]]
    again = ops.RandomCategorical(ms.int32)
    compiled = ms.jit(lambda logits: again(logits, 8, 7))
    assert compiled(logits).asnumpy().tolist() == [[2, 3, 3, 2, 3, 1, 1, 3]]
    assert compiled(logits).asnumpy().tolist() == [[3, 3, 1, 3, 3, 2, 1, 3]]


def test_uniform_of_a_tensor():
    x = Tensor(np.zeros((50, 3), np.float16))
    drawn = ops.operations.Uniform(1.0, 3.0, seed=4)(x)
    assert drawn.shape == x.shape and drawn.dtype is ms.float16
    assert 1.0 <= drawn.asnumpy().min() < 1.5 and 2.5 < drawn.asnumpy().max() <= 3.0
    with pytest.raises(ValueError, match="minval"):
        ops.operations.Uniform(2.0, 1.0)
    with pytest.raises(TypeError, match="floating"):
        ops.operations.Uniform()(Tensor([1, 2]))


def test_position_sensitive_pooling_and_its_gradient():
    rois = floats([[[0], [1], [0], [5], [4]]])
    x = floats(np.arange(120).reshape(1, 4, 5, 6))
    pool = ops.operations.PSROIPooling(0.5, 2, 1)
    np.testing.assert_allclose(pool(x, rois).asnumpy(), [[[[1, 32], [67, 98]]]])
    weights = floats([[1, 2], [3, 4]])
    for run in (ms.grad, lambda f: ms.jit(ms.grad(f))):
        dx = run(lambda x: (pool(x, rois) * weights).sum())(x)
        np.testing.assert_allclose(dx.asnumpy().sum((2, 3)), [[1, 2, 3, 4]])
    found = ops.operations.PSROIPoolingGrad((5, 6), 0.5, 2, 1)(weights.reshape((1, 1, 2, 2)), rois)
    np.testing.assert_allclose(found.asnumpy(), dx.asnumpy())
    with pytest.raises(RuntimeError, match="features"):
        pool(x[:, :3], rois)
    with pytest.raises(ValueError, match="group_size"):
        ops.operations.PSROIPooling(0.5, -1, 1)


def test_fractional_max_pool_gradient_by_the_cells():
    x = floats([[1, 2, 0, 5], [4, 3, 7, 6], [0, 1, 9, 2], [8, 0, 3, 4]]).reshape((1, 4, 4, 1))
    begins = Tensor(np.array([0, 2, 4]))
    dy = floats([1, 2, 3, 4]).reshape((1, 2, 2, 1))
    apart = ops.operations.FractionalMaxPoolGrad()(x, dy, dy, begins, begins)
    wanted = [[0, 0, 0, 0], [1, 0, 2, 0], [0, 0, 4, 0], [3, 0, 0, 0]]
    assert apart.asnumpy()[0, :, :, 0].tolist() == wanted
    shared = ops.operations.FractionalMaxPoolGrad(overlapping=True)(x, dy, dy, begins, begins)
    wanted = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 10, 0], [0, 0, 0, 0]]
    assert shared.asnumpy()[0, :, :, 0].tolist() == wanted


def test_counts_of_a_sparse_tensor():
    places = Tensor(np.array([[0, 1], [1, 0], [1, 1]]))
    values, weights = Tensor(np.array([1, 3, 3])), floats([2, 3, 4])
    shape = Tensor(np.array([2, 3]))

    def count(**settings):
        found = ops.operations.SparseCountSparseOutput(**settings)(places, values, shape, weights)
        return [part.asnumpy().tolist() for part in found]

    assert count() == [[[0, 1], [1, 3]], [2, 7], [2, 4]]
    assert count(binary_output=True, minlength=9) == [[[0, 1], [1, 3]], [1, 1], [2, 9]]
    assert count(maxlength=2) == [[[0, 1]], [2], [2, 2]]
    with pytest.raises(RuntimeError, match="shape"):
        ops.operations.SparseCountSparseOutput()(places, values, shape, weights[:2])


SINES = floats(np.sin(np.arange(54))).reshape((-1, 1, 1))
STEPS, STATE = floats(np.linspace(-1, 1, 6)).reshape((3, 1, 2)), floats([[[0.5, -0.5]]])


def test_gated_recurrent_units_and_their_gradient():
    sizes, lengths = (2, 2, 1, True, False, 0.0), Tensor(np.array([3], np.int32))
    inputs = STEPS, STATE, SINES[:36], lengths
    y, last, *nothing = ops.operations.GRUV2(*sizes)(*inputs)
    wanted = [[-0.509012, 0.310686], [-0.169468, -0.370355], [0.315496, -0.634164]]
    np.testing.assert_allclose(y.asnumpy()[:, 0], wanted, atol=1e-5)
    np.testing.assert_allclose(last.asnumpy(), y.asnumpy()[-1:])
    dx, dh, dw = ops.operations.GRUV2Grad(*sizes)(
        *inputs, y, last, ops.ones_like(y), ops.zeros_like(last), nothing[0]
    )
    assert dx.shape == STEPS.shape and dw.shape == (30, 1, 1)
    np.testing.assert_allclose(dh.asnumpy()[0, 0], [0.886119, 0.618570], atol=1e-5)
    np.testing.assert_allclose(dw.asnumpy()[[0, 1, -1], 0, 0], [-0.473897, -0.512732, 1.529680], atol=1e-5)


def test_lstm_with_a_projection():
    found = ops.LSTM(2, 3, 1, False, False, 0.0, 2)(STEPS, STATE, floats([[[0.1, 0.2, 0.3]]]), SINES)
    wanted = [[-0.151911, 0.218622], [-0.069134, 0.077477], [-0.430540, 0.432687]]
    np.testing.assert_allclose(found[0].asnumpy()[:, 0], wanted, atol=1e-5)
    np.testing.assert_allclose(found[2].asnumpy()[0, 0], [0.179042, 0.538093, -0.092716], atol=1e-5)


def test_a_norm_of_high_power():
    x = floats([[0.25], [-0.125]])
    norm = ops.LpNorm([0], 90)
    np.testing.assert_allclose(norm(x).asnumpy(), [0.25], rtol=1e-6)
    np.testing.assert_allclose(ms.grad(norm)(x).asnumpy(), [[1], [0]], atol=1e-6)
    assert norm(floats([[0], [0]])).asnumpy().tolist() == [0]


def test_root_mean_square_of_rows_keeps_those_without_gradient():
    var, mean, moved = (
        ms.Parameter(floats([[a], [a]]), name=n) for a, n in ((1, "v"), (0.25, "m"), (0.5, "o"))
    )
    step = ops.operations.SparseApplyRMSProp(0.5, 0.1, 1e-6)
    step(var, mean, moved, 0.1, floats([[0], [1]]), Tensor(np.array([0, 1], np.int32)))
    np.testing.assert_allclose(mean.asnumpy(), [[0.25], [0.625]])
    np.testing.assert_allclose(moved.asnumpy(), [[0.05], [0.05 + 0.1 / np.sqrt(0.625001)]], rtol=1e-6)
    np.testing.assert_allclose(var.asnumpy(), 1 - moved.asnumpy())
    with pytest.raises(TypeError, match="indices"):
        step(var, mean, moved, 0.1, floats([[0], [1]]), floats([0, 1]))


def test_a_generator_steps():
    generator = ms.Generator().manual_seed(3)
    assert [int(n) for n in generator._step(Tensor(5))] == [3, 0]
    assert [int(n) for n in generator._step(2)] == [3, 5]
    assert generator.get_state().asnumpy().view(np.int64).tolist() == [3, 7]


def test_what_is_refused():
    with pytest.raises(TypeError, match="dtype"):
        ops.nextafter(floats([1]), Tensor(np.array([2.0])))
    with pytest.raises(TypeError, match="floating"):
        ops.nanmean(Tensor([1, 2]))
    with pytest.raises(RuntimeError, match="empty"):
        ops.adaptive_max_pool3d(floats(np.zeros((0, 3, 3, 4))), 1)
    with pytest.raises(TypeError, match="shape"):
        Tensor([1, 2, 3]).reshape({3})
    with pytest.raises(ValueError, match="paddings"):
        ms.nn.Pad(((0, 0), (-1, -1)))(floats(np.ones((3, 3))))
    assert not ops.dropout2d(floats(np.ones((1, 2, 2, 2))), 1.0).asnumpy().any()


def test_sparse_and_dense_together():
    coo = ms.COOTensor(Tensor([[0, 1], [1, 0]]), floats([2, 3]), (2, 2))
    dense = floats([[1, 2], [3, 4]])
    for run in (lambda f: f, ms.jit):
        assert run(lambda d: d + coo)(dense).asnumpy().tolist() == [[1, 4], [6, 4]]
        assert run(lambda d: coo - d)(dense).asnumpy().tolist() == [[-1, 0], [0, -4]]
        assert run(lambda d: d - coo)(dense).asnumpy().tolist() == [[1, 0], [0, 4]]
        assert run(lambda d: (d * coo).values)(dense).asnumpy().tolist() == [4, 9]
    assert ops.dtype(coo) is ms.float32
    (gradient,) = ops.GradOperation(get_all=True)(lambda s: s.values * s.values)(coo)
    assert isinstance(gradient, ms.COOTensor) and gradient.values.asnumpy().tolist() == [4, 6]


def test_gradients_of_extremes_beside_nan_and_of_integers():
    x, y = floats([1, np.nan, 2, 3]), floats([1, 1, 5, np.nan])
    dx, dy = ms.grad(ops.maximum, (0, 1))(x, y)
    assert dx.asnumpy().tolist() == [0.5, 1, 0, 1] and dy.asnumpy().tolist() == [0.5, 1, 1, 1]
    counts = [Tensor(np.array(n, np.uint16)) for n in ([1, 2, 3], [3, 2, 1], [6, 7, 8])]
    dx, dy = ops.GradOperation(get_all=True, sens_param=True)(ops.Minimum())(*counts)
    assert dx.asnumpy().tolist() == [6, 3, 0] and dy.asnumpy().tolist() == [0, 3, 8]


def test_medians_of_the_whole():
    whole = ops.operations.Median(True)
    assert np.isnan(whole(floats(np.zeros((2, 0))))[0].asnumpy())
    assert int(whole(Tensor(np.zeros((2, 0), np.int32)))[0]) == 0
    x = floats([1, np.nan, 3, 4])
    assert np.isnan(whole(x)[0].asnumpy())
    assert float(ops.operations.Median(True, ignore_nan=True)(x)[0]) == 3


def test_losses_of_rows_with_their_gradient():
    loss, slope = ops.operations.SparseSoftmaxCrossEntropyWithLogitsV2()(
        floats([[2, 3, 1], [2, 1, 2]]), Tensor(np.array([0, 1], np.int32))
    )
    np.testing.assert_allclose(loss.asnumpy(), [1.407606, 1.861995], rtol=1e-5)
    np.testing.assert_allclose(slope.asnumpy()[0], [-0.755272, 0.665241, 0.090031], rtol=1e-4)


def test_rows_of_a_cache():
    table = ms.Parameter(Tensor(np.arange(8, dtype=np.int32).reshape(4, 2)))
    rows = Tensor(np.array([[9, 9], [8, 8], [7, 7]], np.int32))
    done = ops.operations.UpdateCache()(table, Tensor(np.array([[-1, 2, 4]], np.int32)), rows, 4)
    assert table.asnumpy().tolist() == [[0, 1], [2, 3], [8, 8], [6, 7]] and done.asnumpy().tolist() == [0]


@pytest.mark.parametrize(
    "shape, rate, seed, error",
    [
        ((3,), floats([1]), 1, TypeError),
        (Tensor([[3]]), floats([1]), 1, ValueError),
        (Tensor([3]), Tensor([True]), 1, TypeError),
        (Tensor([3]), [1.0], 1, TypeError),
        (Tensor([3]), floats([1]), 0.5, TypeError),
        (Tensor([3]), floats([1]), -1, ValueError),
    ],
)
def test_what_poisson_refuses(shape, rate, seed, error):
    with pytest.raises(error, match="random_poisson"):
        ops.random_poisson(shape, rate, seed)


def test_shifts():
    x = Tensor(np.arange(6).reshape(2, 3))
    shift = ops.operations.Shift
    assert shift(1)(x, 9).asnumpy().tolist() == [[9, 0, 1], [9, 3, 4]]
    assert shift(-2, 1)(x, 9).asnumpy().tolist() == [[2, 9, 9], [5, 9, 9]]
    assert shift(5, 0)(x, 9).asnumpy().tolist() == [[9] * 3] * 2
    assert shift(0)(x, 9).asnumpy().tolist() == x.asnumpy().tolist()


def test_equal_distances_between_tensors():
    def spread(a, b):
        return ops.linspace(a, b, 3)

    starts, ends = floats([1, 2]), floats([3, 8])
    for run in (lambda f: f, ms.jit):
        found = run(lambda a, b: ops.vmap(spread)(a, b))(starts, ends)
        assert found.asnumpy().tolist() == [[1, 2, 3], [2, 5, 8]]
    assert float(ms.grad(lambda a: spread(a, ends[0]).sum())(starts[0])) == 0


def test_scatters_refuse_other_indices():
    with pytest.raises(TypeError, match="int32"):
        ops.tensor_scatter_add(floats([1]), Tensor(np.array([[0]], np.int8)), floats([1]))
    with pytest.raises(ValueError, match="src"):
        ops.slice_scatter(floats(np.zeros((2, 3))), floats([1]), 0, 0, 1)
    with pytest.raises(TypeError, match="keepdim"):
        ops.sum(floats([1]), 0, 12)


def test_boxes_that_overlap_go():
    random = np.random.RandomState(3)
    low = random.randint(0, 30, (400, 2))
    rows = np.concatenate([low, low + random.randint(1, 20, (400, 2)), random.rand(400, 1)], 1)
    boxes, places, kept = ops.NMSWithMask(0.3)(floats(rows))
    boxes, kept = boxes.asnumpy(), kept.asnumpy()
    assert (np.diff(boxes[:, 4]) <= 0).all() and places.asnumpy().tolist() == list(range(400))

    def overlap(a, b):
        shared = np.clip(np.minimum(a[2:4], b[2:4]) - np.maximum(a[:2], b[:2]), 0, None).prod()
        return shared / ((a[2:4] - a[:2]).prod() + (b[2:4] - b[:2]).prod() - shared)

    for i in range(0, 400, 7):
        rivals = [j for j in range(i) if kept[j] and overlap(boxes[i], boxes[j]) > 0.3]
        assert kept[i] == (not rivals)


def test_bent_windows_of_a_part():
    from mycelia.ops import operations

    x = floats(np.arange(9)).reshape((1, 1, 3, 3))
    offsets = floats(np.arange(12) % 7 * 0.1).reshape((1, 12, 1, 1))
    how = (1, 1, 1, 1), (0, 0, 0, 0), (2, 2)
    dx, moves = operations.DeformableOffsetsGrad(*how)(floats(np.ones((1, 1, 2, 2))), x, offsets)
    np.testing.assert_allclose(dx.asnumpy()[0, 0, 0], [0.06, 0.09, 0.01], atol=1e-6)
    np.testing.assert_allclose(moves.asnumpy()[0, [0, -1], 0, 0], [0.1, 4.3], atol=1e-5)
    last = operations.DeformableOffsetsGrad(*how, data_format="NHWC")
    turned = last(floats(np.ones((1, 2, 2, 1))), x.reshape((1, 3, 3, 1)), offsets.reshape((1, 1, 1, 12)))
    np.testing.assert_allclose(turned[0].asnumpy().reshape(-1), dx.asnumpy().reshape(-1), atol=1e-6)
    np.testing.assert_allclose(turned[1].asnumpy().reshape(-1), moves.asnumpy().reshape(-1), atol=1e-6)


def test_gradients_of_convolutions_follow_the_sizes_of_the_weight():
    from mycelia.ops import operations

    dy, x = floats(np.ones((1, 1, 2, 2))), floats(np.arange(16)).reshape((1, 1, 4, 4))
    found = operations.Conv2DBackpropFilter(4, 1)(dy, x, (1, 1, 3, 3))
    assert found.asnumpy()[0, 0].tolist() == [[10, 14, 18], [26, 30, 34], [42, 46, 50]]
    found = operations.Conv2DBackpropInput(4, 1)(dy, floats(np.ones((1, 1, 3, 3))), (1, 1, 4, 4))
    assert found.asnumpy()[0, 0].tolist() == [[1, 2, 2, 1], [2, 4, 4, 2], [2, 4, 4, 2], [1, 2, 2, 1]]


def test_slopes_beyond_one():
    assert ops.rrelu(floats([0, -1, 2]), 5, 5).asnumpy().tolist() == [0, -5, 2]
    with pytest.raises(ValueError, match="upper"):
        ops.rrelu(floats([1]), 5, 4)
    for arguments, error in (
        ((2,), TypeError),
        ((floats([1]), -3), ValueError),
        ((floats([1]), 0.5), TypeError),
    ):
        with pytest.raises(error, match="shuffle"):
            ops.shuffle(*arguments)


def test_what_does_not_concatenate():
    def coo(shape, dtype=ms.int32):
        return ms.COOTensor(Tensor([[0, 1]]), Tensor([5], dtype), shape)

    assert ops.coo_concat((coo((2, 3)), coo((2, 4))), 1).shape == (2, 7)
    for other, axis, error in (
        (coo((2, 3)), 2, IndexError), (coo((2, 3)), 1.0, TypeError), (coo((3, 3)), 1, RuntimeError),
        (coo((2, 3), ms.float32), 1, TypeError),
    ):  # fmt: skip
        with pytest.raises(error, match="coo_concat"):
            ops.coo_concat((coo((2, 3)), other), axis)


def test_older_and_inner_names():
    from mycelia.ops import operations

    x = floats([1, 2])
    assert operations.AddV2()(x, x).asnumpy().tolist() == [2, 4]
    assert x.add([3, 4]).asnumpy().tolist() == [4, 6] and x.sub((3, 4)).asnumpy().tolist() == [-2, -2]
    sizes = [Tensor(np.array(n, np.int32)) for n in ([2, 3, 4], [2, 5, 4], [2, 1, 4])]
    starts = operations.ConcatOffsetV1()(Tensor(1, ms.int32), sizes)
    assert [s.asnumpy().tolist() for s in starts] == [[0, 0, 0], [0, 3, 0], [0, 8, 0]]
    with pytest.raises(RuntimeError, match="axis 0"):
        operations.ConcatOffsetV1()(Tensor(0, ms.int32), sizes)


def test_gradient_of_fractional_means():
    from mycelia.ops import operations

    cells = Tensor(np.array([0, 2, 5])), Tensor(np.array([0, 3, 5]))
    dy = floats([1, 2, 3, 4]).reshape((1, 2, 2, 1))
    dx = operations.FractionalAvgPoolGrad()((1, 5, 5, 1), dy, *cells).asnumpy()[0, :, :, 0]
    np.testing.assert_allclose(dx[[0, 4]], [[1 / 6] * 3 + [0.5] * 2, [1 / 3] * 3 + [2 / 3] * 2], rtol=1e-6)


def test_slope_of_relu6_at_its_ends():
    assert ms.grad(ops.relu6)(floats([0, 3, 6, 6.5])).asnumpy().tolist() == [0, 1, 1, 0]


def test_overloads_of_the_largest_element():
    x = floats([[0, 3], [2, 1]])
    values, places = x.max(0)
    assert values.asnumpy().tolist() == [2, 3] and places.asnumpy().tolist() == [1, 0]
    assert x.min(dim=1, keepdim=True)[1].asnumpy().tolist() == [[0], [1]]
    assert x.max(0, True, initial=None).asnumpy().tolist() == [[2, 3]]
    assert x.max(0, keepdims=True).asnumpy().tolist() == [[2, 3]]
    assert x.max(axis=0, return_indices=True)[1].asnumpy().tolist() == [1, 0]
    assert ms.jit(lambda x: x.max(0)[1])(x).asnumpy().tolist() == [1, 0]  # as eagerly
    assert ms.jit(lambda x: x.max(dim=0)[1])(x).asnumpy().tolist() == [1, 0]
    with pytest.raises(TypeError, match="positional"):
        x.max(0, True, None)
    with pytest.raises(TypeError, match="keyword"):
        x.max(dims=0)
    with pytest.raises(TypeError, match="rank"):
        ops.rank(1)


def test_layer_norm_gradient_by_other_statistics():
    from mycelia.ops import operations

    x, dy = floats([[1, 2, 4]]), floats([[0.5, -1, 2]])
    given = floats([[4.0]]), floats([[1.0]])  # variance and mean
    dx, dgamma, dbeta = operations.LayerNormGrad()(x, dy, *given, floats([1, 1, 1]))
    normal = np.array([0, 0.5, 1.5])
    slope = (dy.asnumpy()[0] * normal).mean()
    want = (dy.asnumpy()[0] - 0.5 - slope * (normal - normal.mean())) * 0.5
    np.testing.assert_allclose(dx.asnumpy()[0], want, rtol=1e-5)
    np.testing.assert_allclose(dgamma.asnumpy(), dy.asnumpy()[0] * normal, rtol=1e-6)
    assert dbeta.asnumpy().tolist() == [0.5, -1, 2]


def test_products_of_complex_vectors_and_what_is_no_matrix():
    a, b = (Tensor(np.array(n, np.complex64)) for n in ([1 + 2j, 3 - 1j], [2 - 1j, 1j]))
    assert complex(ops.vecdot(a, b).asnumpy()) == -1 - 2j
    with pytest.raises(TypeError, match="mat2"):
        ops.mm(floats([[1]]), 3)


def test_samples_of_regions_by_their_size():
    x = floats(np.arange(36)).reshape((1, 1, 6, 6))
    rois = floats([[0, 1, 0.5, 4.3, 5.2]])
    found = [ops.ROIAlign(2, 2, 0.8, n)(x, rois).asnumpy() for n in (-1, 0)]
    np.testing.assert_allclose(found[0][0, 0], [[10.9, 12.62], [24.58, 26.3]], rtol=1e-5)
    np.testing.assert_array_equal(*found)


def test_seeds_of_choices_may_be_negative():
    places, real = ops.RandomChoiceWithMask(4, 1, -1024)(Tensor([True, False, True, True]))
    assert real.asnumpy().tolist() == [True, True, True, False]
    assert sorted(places.asnumpy()[:3, 0].tolist()) == [0, 2, 3]
