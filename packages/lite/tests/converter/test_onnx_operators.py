"""ONNX operators against what the specification says, written in NumPy; above all what versions changed and
what converters are known to get wrong."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mycelia_lite.converter import ConversionError
from mycelia_lite.converter.importers import onnx

from .onnx_models import converted, model, node, places, run, write


def f32(*values):
    return np.array(values, np.float32)


def _x(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def same(found, wanted, tolerance=2e-6):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


A = f32(-3, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 7)
SOFT = np.exp(A - A.max()) / np.exp(A - A.max()).sum()

UNARY = [
    ("LeakyRelu", {}, np.where(A < 0, A * np.float32(0.01), A)),
    ("LeakyRelu", dict(alpha=2.0), np.where(A < 0, 2 * A, A)),
    ("Elu", dict(alpha=2.0), np.where(A < 0, 2 * np.expm1(A), A)),
    ("HardSigmoid", {}, np.clip(0.2 * A + 0.5, 0, 1)),
    ("HardSigmoid", dict(alpha=1 / 6), np.clip(A / 6 + 0.5, 0, 1)),
    ("HardSwish", {}, A * np.clip(A / 6 + 0.5, 0, 1)),
    ("Celu", dict(alpha=2.0), np.maximum(A, 0) + np.minimum(0, 2 * np.expm1(A / 2))),
    ("Selu", {}, 1.0507009873554805 * np.where(A > 0, A, 1.6732632423543772 * np.expm1(A))),
    ("Gelu", {}, np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in A.tolist()])),
    ("Round", {}, np.round(A)),
    ("Softplus", {}, np.log1p(np.exp(A))),
    ("Shrink", dict(lambd=1.0, bias=0.5), np.where(A < -1, A + 0.5, np.where(A > 1, A - 0.5, 0))),
    ("ThresholdedRelu", dict(alpha=1.5), np.where(A > 1.5, A, 0)),
    ("Softmax", {}, SOFT),
    ("Mish", {}, A * np.tanh(np.log1p(np.exp(A)))),
]


@pytest.mark.parametrize(
    ("kind", "attributes", "wanted"), UNARY, ids=lambda v: v if isinstance(v, str) else ""
)
def test_activations(tmp_path, kind, attributes, wanted):
    opset = 20 if kind == "Gelu" else 18
    same(run(tmp_path, kind, [A], opset=opset, **attributes)[0], wanted.astype(np.float32))


@pytest.mark.parametrize(
    ("ends", "opset"), [
        ((None, None), 11), ((-1, None), 11), ((None, 1), 13), ((-1, 1), 13), ((0, 6), 13), ((0, 6), 6),
    ]
)  # fmt: skip
def test_clip_has_either_end_or_none(tmp_path, ends, opset):
    x = f32(-9, -0.5, 3, 8, np.nan)
    wanted = np.clip(x, *(e if e is not None else o * np.inf for e, o in zip(ends, (-1, 1))))
    if opset == 6:
        found = run(tmp_path, "Clip", [x], opset=6, min=float(ends[0]), max=float(ends[1]))
    else:
        arrays = [x, *(None if e is None else np.float32(e) for e in ends)]
        found = run(tmp_path, "Clip", arrays, opset=opset)
    same(found[0], wanted)


def test_softmax_before_version_13_takes_all_axes_from_one_on(tmp_path):
    x = _x(2, 3, 4)
    rows = np.exp(x.reshape(2, 12))
    same(run(tmp_path, "Softmax", [x], opset=11)[0], (rows / rows.sum(1, keepdims=True)).reshape(2, 3, 4))
    last = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    same(run(tmp_path, "Softmax", [x], opset=13)[0], last)
    same(run(tmp_path, "LogSoftmax", [x], opset=13)[0], np.log(last))


def test_operands_before_version_7_broadcast_from_an_axis_on(tmp_path):
    x, y = _x(2, 3, 4), _x(3, seed=1)
    same(run(tmp_path, "Add", [x, y], opset=6, broadcast=1, axis=1)[0], x + y[:, None])
    with pytest.raises(ConversionError, match="broadcast"):
        run(tmp_path, "Add", [x, y], opset=6)


def test_integers_divide_to_zero_and_remainders_have_the_sign_asked_for(tmp_path):
    a, b = np.array([-7, 7, -7, 7, 2**62 + 1]), np.array([2, -2, -2, 2, 1])
    assert run(tmp_path, "Div", [a, b])[0].tolist() == [-3, -3, 3, 3, 2**62 + 1]
    assert run(tmp_path, "Mod", [a, b])[0].tolist() == [1, -1, -1, 1, 0]
    assert run(tmp_path, "Mod", [a, b], fmod=1)[0].tolist() == [-1, 1, -1, 1, 0]


def test_powers_have_the_type_of_the_base(tmp_path):
    same(run(tmp_path, "Pow", [f32(2, 3), np.array([3, 2])])[0], f32(8, 9))
    same(run(tmp_path, "Pow", [np.array([4, 9], np.int32), f32(0.5, 2)])[0], np.array([2, 81], np.int32))
    same(run(tmp_path, "Pow", [np.array([4, 2, -1]), np.array([2, -2, -3])])[0], np.array([16, 0, -1]))


# ---- windows -----------------------------------------------------------------------------------------------


def _convolved(x, w, stride, pads, dilation):
    """Correlation over two dimensions, by loops over the kernel."""
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    kh, kw = ((k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation))
    h, v = (x.shape[2] - kh) // stride[0] + 1, (x.shape[3] - kw) // stride[1] + 1
    y = np.zeros((x.shape[0], w.shape[0], h, v))
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            rows = slice(i * dilation[0], i * dilation[0] + h * stride[0], stride[0])
            columns = slice(j * dilation[1], j * dilation[1] + v * stride[1], stride[1])
            y += np.einsum("nchw,oc->nohw", x[:, :, rows, columns], w[:, :, i, j])
    return y.astype(np.float32)


@pytest.mark.parametrize(
    ("mode", "pads"), [("SAME_UPPER", (0, 1, 1, 1)), ("SAME_LOWER", (1, 1, 0, 1)), ("VALID", (0, 0, 0, 0))]
)
def test_convolutions_pad_as_auto_pad_says(tmp_path, mode, pads):
    x, w = _x(2, 3, 7, 8), _x(4, 3, 2, 3, seed=1)
    wanted = _convolved(x, w, (1, 1), pads, (1, 1))
    same(run(tmp_path, "Conv", [x, w], auto_pad=mode)[0], wanted, 1e-5)


def test_convolutions_with_all_attributes(tmp_path):
    x, w, b = _x(1, 2, 9, 8), _x(3, 2, 3, 2, seed=1), f32(1, 2, 3)
    wanted = _convolved(x, w, (2, 1), (1, 0, 2, 1), (2, 3)) + b[:, None, None]
    how = dict(strides=[2, 1], pads=[1, 0, 2, 1], dilations=[2, 3], kernel_shape=[3, 2])
    same(run(tmp_path, "Conv", [x, w, b], **how)[0], wanted, 1e-5)


def test_transposed_convolutions_are_the_adjoint(tmp_path):
    """<conv(x), y> = <x, conv_transpose(y)> for the same attributes."""
    how = dict(strides=[2, 1], pads=[1, 0, 0, 1], dilations=[1, 2])
    x, w = _x(1, 3, 8, 9), _x(4, 3, 3, 2, seed=1)
    y = _x(*_convolved(x, w, (2, 1), (1, 0, 0, 1), (1, 2)).shape, seed=2)
    (back,) = run(tmp_path, "ConvTranspose", [y, w], output_shape=[8, 9], strides=[2, 1], dilations=[1, 2])
    (padded,) = run(tmp_path, "ConvTranspose", [y, w], output_padding=[0, 0], **how)
    assert back.shape == x.shape and padded.shape[1] == 3
    part = x[:, :, : padded.shape[2], : padded.shape[3]]
    if padded.shape[2] < 8:
        x[:, :, padded.shape[2] :] = 0
    left = (_convolved(x, w, (2, 1), (1, 0, 0, 1), (1, 2)) * y).sum()
    assert abs(left - (part * padded).sum()) < 1e-3


def test_means_count_the_padding_if_they_are_told_to(tmp_path):
    x = np.ones((1, 1, 2, 2), np.float32)
    how = dict(kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    assert run(tmp_path, "AveragePool", [x], **how)[0].ravel().tolist() == [1, 1, 1, 1]
    counted = run(tmp_path, "AveragePool", [x], count_include_pad=1, **how)[0]
    assert counted.ravel().tolist() == [0.25, 0.5, 0.5, 1]


def test_pools_with_dilations_ceiling_and_indices(tmp_path):
    x = np.arange(50, dtype=np.float32).reshape(1, 2, 5, 5)
    y, places = run(tmp_path, "MaxPool", [x], 2, kernel_shape=[2, 2], dilations=[2, 2], strides=[2, 2])
    assert y.ravel().tolist() == [12, 14, 22, 24, 37, 39, 47, 49] and places.tolist() == y.tolist()
    (up,) = run(tmp_path, "MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    assert up[0, 0].tolist() == [[6, 8, 9], [16, 18, 19], [21, 23, 24]]


# ---- resize ------------------------------------------------------------------------------------------------

TOP_LEFT, CORNERS = ({"coordinate_transformation_mode": how} for how in ("asymmetric", "align_corners"))
LINE = f32(1, 2, 3, 4).reshape(1, 1, 1, 4)


@pytest.mark.parametrize(
    ("attributes", "scale", "wanted"),
    [
        (dict(TOP_LEFT, mode="nearest", nearest_mode="floor"), 2, [1, 1, 2, 2, 3, 3, 4, 4]),
        (dict(mode="nearest"), 2, [1, 1, 2, 2, 3, 3, 4, 4]),
        (dict(TOP_LEFT, mode="nearest", nearest_mode="ceil"), 2, [1, 2, 2, 3, 3, 4, 4, 4]),
        (dict(mode="nearest"), 0.5, [1, 3]),
        (dict(mode="nearest", nearest_mode="round_prefer_ceil"), 0.5, [2, 4]),
        (dict(mode="linear"), 2, [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4]),
        (dict(mode="linear"), 0.5, [1.5, 3.5]),
        (dict(TOP_LEFT, mode="linear"), 2, [1, 1.5, 2, 2.5, 3, 3.5, 4, 4]),
        (dict(CORNERS, mode="linear"), 1.75, [1, 1.5, 2, 2.5, 3, 3.5, 4]),
        (dict(mode="linear", antialias=1), 0.5, [1.625, 3.375]),
        (dict(TOP_LEFT, mode="cubic"), 2, [1, 1.40625, 2, 2.5, 3, 3.59375, 4, 4.09375]),
    ],
)  # fmt: skip
def test_resize(tmp_path, attributes, scale, wanted):
    found = run(tmp_path, "Resize", [LINE, None, f32(1, 1, 1, scale)], opset=19, constants=[2], **attributes)
    same(found[0].ravel(), f32(*wanted))


def test_resize_takes_sizes_and_axes(tmp_path):
    x = _x(1, 2, 3, 4)
    arrays = [x, None, None, np.array([6, 8])]
    (found,) = run(tmp_path, "Resize", arrays, opset=18, constants=[3], axes=[2, 3], mode="nearest")
    same(found, x.repeat(2, 2).repeat(2, 3))
    policy = dict(axes=[2, 3], mode="nearest", keep_aspect_ratio_policy="not_larger")
    assert run(tmp_path, "Resize", arrays, opset=18, constants=[3], **policy)[0].shape == (1, 2, 6, 8)
    same(run(tmp_path, "Upsample", [x, f32(1, 1, 2, 1)], opset=9, constants=[1])[0], x.repeat(2, 2))


# ---- shapes and indices ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 3])
def test_every_slice_of_an_axis(tmp_path, n):
    """Constants, and data that the runtime reads, which it does for one file."""
    x = np.arange(n, dtype=np.float32)
    least = -(2**31) + 1
    cases = list(
        itertools.product(
            (least, -4, -3, -1, 0, 1, 2, 4), (least, -4, -1, 0, 2, 4, 2**31 - 1), (1, 2, -1, -2)
        )
    )
    one = ("int64", (1,))
    inputs = {"x": ("float32", ("n",)), "a": one, "b": one, "c": one}
    late = converted(
        tmp_path, model([node("Slice", "x a b axis c", "y")], inputs, "y", {"axis": np.array([0])})
    )
    nodes = [node("Slice", f"x a{i} b{i} axis c{i}", f"y{i}") for i in range(len(cases))]
    weights = {f"{k}{i}": np.array([v]) for i, case in enumerate(cases) for k, v in zip("abc", case)}
    outputs = " ".join(f"y{i}" for i in range(len(cases)))
    for shape in ((n,), ("n",)):
        early = converted(
            tmp_path, model(nodes, {"x": ("float32", shape)}, outputs, weights | {"axis": np.array([0])})
        )
        for case, found in zip(cases, early(x), strict=True):
            np.testing.assert_array_equal(found, x[places(*case, n)], str(case))
    for case in cases:
        found = late(x, *(np.array([v]) for v in case))[0]
        np.testing.assert_array_equal(found, x[places(*case, n)], str(case))


def test_slices_from_the_back(tmp_path):
    x = np.arange(24).reshape(4, 6)
    limits = [np.array([-1, 4]), np.array([-(2**31), -100]), np.array([0, 1]), np.array([-2, -1])]
    same(run(tmp_path, "Slice", [x, *limits], constants=[1, 2, 3, 4])[0], x[::-2, 4::-1])
    same(run(tmp_path, "Slice", [x], opset=9, starts=[1], ends=[2**40], axes=[1])[0], x[:, 1:])


def test_reshape_keeps_and_infers(tmp_path):
    x = np.arange(24).reshape(2, 3, 4)
    assert run(tmp_path, "Reshape", [x, np.array([0, -1])], constants=[1])[0].shape == (2, 12)
    empty = np.zeros((0, 3))
    assert run(tmp_path, "Reshape", [empty, np.array([3, 0])], constants=[1], allowzero=1)[0].shape == (3, 0)


def test_pads_repeat_mirror_and_cut(tmp_path):
    x = np.arange(12).reshape(3, 4)
    pads = np.array([1, 2, 0, 1])
    for mode, like in (("constant", "constant"), ("reflect", "reflect"), ("edge", "edge"), ("wrap", "wrap")):
        (found,) = run(tmp_path, "Pad", [x, pads], opset=19, constants=[1], mode=mode)
        same(found, np.pad(x, ((1, 0), (2, 1)), like))
    (cut,) = run(tmp_path, "Pad", [x, np.array([-1, 0, 0, -1])], constants=[1])
    same(cut, x[1:, :-1])


def test_the_last_part_of_a_split_is_smaller_from_version_18_on(tmp_path):
    x = np.arange(7)
    parts = run(tmp_path, "Split", [x], 3, opset=18, num_outputs=3)
    assert [p.tolist() for p in parts] == [[0, 1, 2], [3, 4, 5], [6]]
    with pytest.raises(ConversionError, match="equal parts"):
        run(tmp_path, "Split", [x], 3, opset=13)
    parts = run(tmp_path, "Split", [x], 2, opset=11, split=[5, 2])
    assert [p.tolist() for p in parts] == [[0, 1, 2, 3, 4], [5, 6]]


def test_indices_count_from_the_back(tmp_path):
    x, i = np.arange(12).reshape(3, 4), np.array([[-1, 0], [2, -3]])
    for constants in ([], [1]):
        same(run(tmp_path, "Gather", [x, i], constants=constants)[0], x[i])
        same(
            run(tmp_path, "GatherElements", [x, i], constants=constants)[0],
            np.take_along_axis(x[:, :2], i, 0),
        )
        same(run(tmp_path, "GatherND", [x, i], constants=constants)[0], x[i[:, 0], i[:, 1]])
    with pytest.raises(ConversionError, match="into an axis of 3"):
        run(tmp_path, "Gather", [x, np.array([3])], constants=[1])


def test_scatters_combine_as_told(tmp_path):
    x, i, u = f32(1, 2, 3), np.array([1, 1, -1]), f32(5, 7, 1)
    wanted = dict(add=[1, 14, 4], mul=[1, 70, 3], max=[1, 7, 3], min=[1, 2, 1])
    for how, numbers in wanted.items():
        assert run(tmp_path, "ScatterElements", [x, i, u], opset=18, reduction=how)[0].tolist() == numbers
        assert run(tmp_path, "ScatterND", [x, i[:, None], u], opset=18, reduction=how)[0].tolist() == numbers


def test_order_and_places(tmp_path):
    x = f32(2, 5, 5, 1)
    values, places = run(tmp_path, "TopK", [x, np.array([2])], 2, constants=[1], largest=0)
    assert (values.tolist(), places.tolist(), places.dtype) == ([1, 2], [3, 0], np.int64)
    assert run(tmp_path, "ArgMax", [x], keepdims=0)[0] == 1
    assert run(tmp_path, "ArgMax", [x], keepdims=0, select_last_index=1)[0] == 2


@pytest.mark.parametrize(
    ("exclusive", "reverse", "wanted"),
    [(0, 0, [1, 3, 6]), (1, 0, [0, 1, 3]), (0, 1, [6, 5, 3]), (1, 1, [5, 3, 0])],
)
def test_running_sums(tmp_path, exclusive, reverse, wanted):
    arrays = [np.array([1, 2, 3], np.int32), np.int64(0)]
    (found,) = run(tmp_path, "CumSum", arrays, constants=[1], exclusive=exclusive, reverse=reverse)
    same(found, np.array(wanted, np.int32))


def test_reductions_keep_types_and_know_nothing(tmp_path):
    x = np.array([[1, -2], [3, 4]], np.int32)
    same(run(tmp_path, "ReduceSum", [x, np.array([1])], constants=[1])[0], np.array([[-1], [7]], np.int32))
    same(run(tmp_path, "ReduceMax", [x], keepdims=0)[0], np.array(4, np.int32))
    same(run(tmp_path, "ReduceMean", [x.astype(np.float32)], axes=[-1], keepdims=0)[0], f32(-0.5, 3.5))
    same(run(tmp_path, "ReduceSum", [x, np.zeros(0, np.int64)], constants=[1], noop_with_empty_axes=1)[0], x)
    empty = np.zeros((2, 0), np.float32)
    same(
        run(tmp_path, "ReduceMax", [empty, np.array([1])], opset=20, constants=[1])[0],
        f32([-np.inf], [-np.inf]),
    )


def test_shape_has_a_start_and_an_end(tmp_path):
    x = np.zeros((2, 3, 4, 5), np.float32)
    assert run(tmp_path, "Shape", [x], start=-3, end=-1)[0].tolist() == [3, 4]


# ---- norms, products ---------------------------------------------------------------------------------------


def test_normalizations(tmp_path):
    x, s, b = _x(2, 4, 3, 3), _x(4, seed=1), _x(4, seed=2)

    def normal(x, axes):
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    along = (slice(None), None, None)
    same(run(tmp_path, "InstanceNormalization", [x, s, b])[0], normal(x, (2, 3)) * s[along] + b[along], 1e-5)
    groups = normal(x.reshape(2, 2, 2, 3, 3), (2, 3, 4)).reshape(x.shape) * s[along] + b[along]
    same(run(tmp_path, "GroupNormalization", [x, s, b], opset=21, num_groups=2)[0], groups, 1e-5)
    m, v = _x(4, seed=3), np.abs(_x(4, seed=4)) + 0.5
    batch = (x - m[along]) / np.sqrt(v[along] + 1e-3) * s[along] + b[along]
    same(run(tmp_path, "BatchNormalization", [x, s, b, m, v], epsilon=1e-3)[0], batch, 1e-5)
    y, w = _x(2, 3, 5), _x(3, 5, seed=5)
    same(run(tmp_path, "LayerNormalization", [y, w, w], axis=1)[0], normal(y, (1, 2)) * w + w, 1e-5)
    padded = np.pad(x**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    around = sum(padded[:, i : i + 4] for i in range(3))
    lrn = x / (1 + 0.1 / 3 * around) ** 0.75
    same(run(tmp_path, "LRN", [x], size=3, alpha=0.1)[0], lrn.astype(np.float32), 1e-5)


def test_products(tmp_path):
    a, b, c = _x(3, 2), _x(4, 3, seed=1), _x(1, 4, seed=2)
    wanted = (np.float32(0.5) * (a.T @ b.T) + 2 * c).astype(np.float32)
    same(run(tmp_path, "Gemm", [a, b, c], transA=1, transB=1, alpha=0.5, beta=2.0)[0], wanted, 1e-5)
    v = _x(3, seed=3)
    same(run(tmp_path, "MatMul", [v, v])[0], np.asarray(v @ v), 1e-5)


def test_quantized_numbers_saturate_and_round_to_even(tmp_path):
    x = f32(-100, 0.25, 0.75, 1.25, 900)
    arrays = [x, np.float32(0.5), np.uint8(10)]
    (q,) = run(tmp_path, "QuantizeLinear", arrays)
    same(q, np.array([0, 10, 12, 12, 255], np.uint8))
    same(run(tmp_path, "DequantizeLinear", [q, *arrays[1:]])[0], f32(-5, 0, 1, 1, 122.5))


def test_a_node_of_constants_alone_is_computed_at_once(tmp_path):
    nodes = [node("Constant", "", "c", value=f32(1, 2)), node("Mul", "c c", "d"), node("Add", "x d", "y")]
    path = write(tmp_path / "m.onnx", model(nodes, {"x": ("float32", (2,))}, "y"))
    assert [n.op.name for n in onnx.load(path, {}).graph.nodes] == ["add"]


@pytest.mark.parametrize("shape", [(3, 0), (0, 4), (0, 0)])
@pytest.mark.parametrize("turned", [0, 1])
def test_products_by_a_matrix_without_elements(shape, turned, tmp_path):
    """The runtime packs it like any other."""
    w, b = np.ones(shape, np.float32), np.arange(shape[1], dtype=np.float32)
    x = np.ones((2, shape[0]), np.float32)
    message = model(
        [node("Gemm", "x w b", "y", transB=turned)],
        {"x": (x.dtype, x.shape)}, "y", {"w": w.T if turned else w, "b": b}, 17,
    )  # fmt: skip
    (found,) = converted(tmp_path, message)(x)
    assert found.shape == (2, shape[1])
    same(found, np.broadcast_to(b, found.shape))


def test_resizing_nothing_is_refused(tmp_path):
    arrays = [np.zeros((1, 1, 0, 4), np.float32), None, None, np.array([1, 1, 2, 4])]
    with pytest.raises(ConversionError, match=r"'it' \(Resize\): axis 2 of \[1, 1, 0, 4\] has no elements"):
        run(tmp_path, "Resize", arrays, constants=[3])
