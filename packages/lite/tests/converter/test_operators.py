"""Operators of `.ms` files: a net of each, through MindIR and the converter, answers as in core."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia import mint, nn, ops
from mycelia_lite.converter import convert
from mycelia_lite.format import Table, read, write

from .ms_files import answer as run

RNG = np.random.default_rng(7)
IMAGE = RNG.normal(size=(2, 3, 6, 5)).astype(np.float32)
CUBE = RNG.normal(size=(2, 3, 4)).astype(np.float32)
POSITIVE = np.abs(CUBE) + np.float32(0.1)
NUMBERS = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
LONG = NUMBERS.astype(np.int64)
TRUTHS = RNG.integers(0, 2, (3, 4)).astype(bool)


class Function(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *inputs):
        return self.function(*inputs)


def converted(net, folder, arrays, open_batch=False):
    shapes = [((None,) if open_batch else a.shape[:1]) + a.shape[1:] for a in arrays]
    inputs = [ms.Tensor(shape=list(s), dtype=ms.Tensor(a).dtype) for s, a in zip(shapes, arrays)]
    ms.export(net.set_train(False), *inputs, file_name=str(folder / "net.mindir"), file_format="MINDIR")
    return convert(mslite.FmkType.MINDIR, str(folder / "net.mindir"), str(folder / "net"))


def compare(net, folder, arrays, open_batch=False):
    """Convert, run both, compare; how many nodes of each kind the file has."""
    made = converted(net, folder, arrays, open_batch)
    expected = net(*map(ms.Tensor, arrays))
    expected = expected if isinstance(expected, (tuple, list)) else (expected,)
    found = run(made.path, *arrays)
    assert len(found) == len(expected)
    for y, want in zip(found, expected):
        want = want.asnumpy()
        assert (y.shape, y.dtype) == (want.shape, want.dtype)
        if want.dtype.kind == "f":
            scale = np.abs(want[np.isfinite(want)]).max(initial=1e-30)
            np.testing.assert_allclose(y, want, rtol=3e-6, atol=3e-6 * scale)
        else:
            np.testing.assert_array_equal(y, want)
    return collections.Counter(node.primitive.kind for node in read(made.path).nodes), made


UNARY = [ops.abs, ops.neg, ops.exp, ops.square, ops.sin, ops.cos, ops.floor, ops.ceil, ops.round, ops.erf]
CASES = {
    "unary": (lambda x: tuple(f(x * 3) for f in UNARY), CUBE),
    "roots": (lambda x: (ops.log(x), ops.sqrt(x), ops.rsqrt(x), ops.log1p(x), ops.reciprocal(x)), POSITIVE),
    "integers": (
        lambda x: (ops.abs(x), ops.neg(x), ops.square(x), x + x, x * x, ops.maximum(x, -x)),
        NUMBERS,
    ),
    "cast": (lambda x: (x.astype(ms.int32), x.astype(ms.int64), (x > 0).astype(ms.float32)), CUBE * 5),
    "cast numbers": (lambda x: (x.astype(ms.float32) / 3, x.astype(ms.bool_), x.astype(ms.int64)), NUMBERS),
    "means": (lambda x: (x.mean(1), x.mean((0, 2), keep_dims=True), x.mean()), CUBE),
    "sums": (lambda x: (x.sum(-1), ops.prod(x, 2), ops.sum(x, dim=(0, 1), keepdim=True)), CUBE),
    "sums of integers": (lambda x: (x.sum(0), x.sum()), NUMBERS),
    "sums of long": (lambda x: (x.sum(1), *x.max(0), *x.min(1)), LONG),
    "extremes": (lambda x: (ops.amax(x, 1), ops.amin(x, (0, 1), keepdims=True), x.max()), CUBE),
    "truths": (lambda x: (ops.all(x, 1), ops.any(x, 0), ops.all(x), ops.logical_not(x)), TRUTHS),
    "pad": (lambda x: ops.pad(x, (1, 2, 0, 3), value=1.5), CUBE),
    "pad and cut": (lambda x: ops.pad(x, (-1, 2)), CUBE),
    "pad mirrored": (lambda x: ops.pad(x, (1, 2), mode="reflect"), CUBE),
    "split": (lambda x: (*ops.split(x, (1, 3), 2), *ops.split(x, 1, 1)), CUBE),
    "slices": (lambda x: (x[1:, ::2], x[..., 1], x[:, 0:2, 1:-1], x[:, 1:2], x[0]), CUBE),
    "turned": (lambda x: ops.flip(x, (0, 2)), CUBE),
    "gather": (lambda x, i: (ops.gather(x, i % 3, 1), ops.gather(x, i % 2, 0)), CUBE, NUMBERS),
    "gather along": (lambda x, i: mint.gather(x, 1, i % 4), CUBE[0], NUMBERS),
    "gather points": (lambda x, i: ops.gather_nd(x, i), CUBE, np.asarray([[0, 1], [1, 2]], np.int32)),
    "clip": (lambda x: (ops.clamp(x, -0.5, 0.5), ops.clamp(x, 0.1), ops.hardtanh(x)), CUBE),
    "clip integers": (lambda x: ops.clamp(x, -3, 4), NUMBERS),
    "power": (lambda x: (ops.pow(x, 2.5), ops.pow(x, x)), POSITIVE),
    "compare": (lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y), CUBE, CUBE[:, :1]),
    "compare integers": (lambda x: (x == 3, x < 2, x >= -1), NUMBERS),
    "compare long": (lambda x: (x != 3, x <= 2, x > -1), LONG),
    "logic": (
        lambda x, y: (ops.logical_and(x, y), ops.logical_or(x, y), ops.logical_xor(x, y)),
        TRUTHS,
        ~TRUTHS[:1],
    ),
    "where": (
        lambda c, x: (ops.where(c, x, -x), ops.where(c, x, x[:1]), ops.where(c, x, 7)),
        TRUTHS,
        NUMBERS,
    ),
    "masked": (lambda x: ops.masked_fill(x, x > 0, ms.Tensor(-1.0)), CUBE),
    "broadcast": (lambda x: (ops.broadcast_to(x[:, :1], (2, 3, 4)), ops.tile(x, (2, 1, 3))), CUBE),
    "broadcast integers": (lambda x: (ops.broadcast_to(x, (2, 3, 4)), ops.tile(x, (1, 2))), NUMBERS),
    "stack": (lambda x: (ops.stack((x, x + 1), 1), *ops.unbind(x, 2)), CUBE),
    "places": (lambda x: (ops.argmax(x, 1), ops.argmin(x, 0), ops.argmax(x, 2, True), ops.argmax(x)), CUBE),
    "places of integers": (lambda x: ops.argmax(x, 1), NUMBERS),
    "largest": (lambda x: (*ops.topk(x, 2), *ops.topk(x, 3, 1, largest=False)), CUBE),
    "log softmax": (lambda x: (ops.log_softmax(x, 1), ops.softmax(x, 0)), CUBE),
    "one hot": (lambda i: ops.one_hot(i % 5, 5, ms.Tensor(2.0), ms.Tensor(-1.0)), NUMBERS),
    "running sums": (lambda x: (ops.cumsum(x, 1), ops.cumsum(x, 0)), CUBE),
    "running sums of integers": (lambda x: ops.cumsum(x, 1), NUMBERS),
    "shape": (lambda x: (ops.expand_dims(x, 1), ops.squeeze(x[:1], 0), x[:1, :1, :1].reshape(())), CUBE),
    "division": (lambda x: (x // 4, ops.floor_mod(x, 4)), NUMBERS),
    "activations": (lambda x: (ops.softplus(x), ops.mish(x), ops.logsigmoid(x)), CUBE),
    "any size": (lambda x: (ops.adaptive_avg_pool2d(x, (4, 3)), ops.adaptive_avg_pool2d(x, 1)), IMAGE),
    "cross entropy": (
        lambda x, y: ops.binary_cross_entropy_with_logits(x, y, ops.ones_like(y), ops.ones_like(y)),
        CUBE,
        POSITIVE,
    ),
    "products of batches": (lambda x: ops.matmul(x, ms.Tensor(CUBE.swapaxes(1, 2))), CUBE),
    "normalized": (lambda x: ops.L2Normalize(1)(x), CUBE),
    "neighbours": (lambda x: ops.lrn(x, 2, 1.0, 0.5, 0.75), RNG.normal(size=(2, 7, 3, 3)).astype(np.float32)),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_answer_as_in_core(name, tmp_path):
    function, *arrays = CASES[name]
    compare(Function(function), tmp_path, arrays)


OPEN = ["unary", "means", "largest", "clip", "compare integers", "log softmax"]


@pytest.mark.parametrize("name", OPEN)
def test_the_batch_may_be_open(name, tmp_path):
    function, *arrays = CASES[name]
    _, made = compare(Function(function), tmp_path, arrays, open_batch=True)
    more = [np.concatenate([a, a[:1]]) for a in arrays]
    for y, want in zip(run(made.path, *more), Function(function)(*map(ms.Tensor, more))):
        np.testing.assert_allclose(y, want.asnumpy(), rtol=3e-6, atol=1e-5)


LAYERS = {
    "layer norm": (nn.LayerNorm((3, 4), 1, 1), CUBE),
    "batch norm of rows": (nn.BatchNorm1d(4), CUBE[0]),
    "convolution of lines": (
        nn.Conv1d(3, 4, 3, stride=2, dilation=1, pad_mode="pad", padding=2, has_bias=True),
        CUBE,
    ),
    "grouped lines": (
        nn.Conv1d(4, 6, 2, group=2, pad_mode="valid"),
        RNG.normal(size=(2, 4, 9)).astype(np.float32),
    ),
    "groups of channels": (nn.GroupNorm(2, 4), RNG.normal(size=(2, 4, 3, 5)).astype(np.float32)),
    "groups without factors": (
        nn.GroupNorm(3, 6, affine=False),
        RNG.normal(size=(2, 6, 7)).astype(np.float32),
    ),
    "each channel": (nn.InstanceNorm2d(3), IMAGE),
    "slopes": (nn.PReLU(3, 0.3), IMAGE),
    "slopes of a signal": (nn.PReLU(3, 0.3), RNG.normal(size=(2, 3, 5)).astype(np.float32)),
    "slopes of a volume": (nn.PReLU(3, 0.3), RNG.normal(size=(2, 3, 2, 2, 4)).astype(np.float32)),
    "a slope for a signal": (nn.PReLU(1, 0.3), RNG.normal(size=(2, 3, 5)).astype(np.float32)),
    "transposed": (nn.Conv2dTranspose(3, 4, 3, stride=2, pad_mode="same", has_bias=True), IMAGE),
    "transposed valid": (nn.Conv2dTranspose(3, 2, (2, 3), stride=(3, 1), pad_mode="valid"), IMAGE),
    "transposed depthwise": (
        nn.Conv2dTranspose(3, 3, 3, stride=2, group=3, pad_mode="pad", padding=1, output_padding=1),
        IMAGE,
    ),
    "embedding": (nn.Embedding(9, 5), np.abs(NUMBERS) % 9),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_answer_as_in_core(name, tmp_path):
    ms.set_seed(3)
    net, array = LAYERS[name]
    trained(net)
    compare(net, tmp_path, [array])


def trained(net):
    """Parameters and statistics that are not those of a new net."""
    rng = np.random.default_rng(11)
    for p in net.get_parameters():
        change = rng.uniform(0.2, 0.8, p.shape)
        p.set_data(ms.Tensor(p.asnumpy() + change.astype(p.asnumpy().dtype), p.dtype))


# ---- layouts and fusions ---------------------------------------------------------------------------------


class Inverted(nn.Cell):
    """Sandler et al. 2018 with the gate of Howard et al. 2019, twice, and a classifier."""

    def __init__(self):
        super().__init__()
        self.expand, self.norm1 = nn.Conv2d(3, 12, 1, has_bias=True), nn.BatchNorm2d(12)
        self.spread, self.norm2 = nn.Conv2d(12, 12, 3, group=12), nn.BatchNorm2d(12)
        self.squeeze, self.widen = nn.Conv2d(12, 4, 1), nn.Conv2d(4, 12, 1)
        self.reduce, self.norm3 = nn.Conv2d(12, 3, 1), nn.BatchNorm2d(3)
        self.classes = nn.Dense(3, 5)

    def block(self, x):
        y = ops.relu6(self.norm1(self.expand(x)))
        y = ops.hardswish(self.norm2(self.spread(y)))
        gate = ops.hardsigmoid(self.widen(ops.relu(self.squeeze(y.mean((2, 3), keep_dims=True)))))
        return x + self.norm3(self.reduce(y * gate))

    def construct(self, x):
        x = ops.pad(self.block(self.block(x)), (1, 0, 0, 1))
        low, high = ops.split(ops.clamp(x * 2, -3.0, 3.0), (1, 2), 1)
        x = ops.concat((high, low), 1)[:, :, 1:]
        return self.classes(x.mean((2, 3)))


def test_blocks_are_computed_with_the_channels_last_throughout(tmp_path):
    ms.set_seed(5)
    net = Inverted()
    trained(net)
    kinds, made = compare(net, tmp_path, [IMAGE])
    assert kinds["Transpose"] == 1  # of the input
    assert made.fusions["ConvBatchNormFusion"] == 6 and kinds["FusedBatchNorm"] == 0
    assert made.fusions["ConvActivationFusion"] == 4


def test_a_normalization_stays_where_its_input_is_used_twice(tmp_path):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

        def construct(self, x):
            y = self.conv(x)
            return y + self.norm(y)

    net = Net()
    trained(net)
    kinds, made = compare(net, tmp_path, [IMAGE])
    assert kinds["ScaleFusion"] == 1 and made.fusions["ConvBatchNormFusion"] == 0


def test_a_fold_that_is_not_finite_is_left(tmp_path):
    net = nn.SequentialCell(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, eps=1e-30))
    net[1].moving_variance.set_data(ms.Tensor([1.0, 0.0, 1.0, 1.0], ms.float32))
    net[1].gamma.set_data(ms.Tensor(np.full(4, 1e30), ms.float32))
    assert converted(net, tmp_path, [IMAGE]).fusions["ConvBatchNormFusion"] == 0


# ---- operators that the converter does not write -------------------------------------------------------


def model_of(path, primitive, shape, out, *constants, dtype="FLOAT32", outputs=1):
    """A file of one operator on `x`, the constants after it."""
    tensors = [Table("Tensor", nodeType=2, name="x", dataType=dtype, dims=list(shape))]
    for array in constants:
        kind = mslite.DataType.of(array.dtype)
        tensors.append(Table("Tensor", name="c", dataType=int(kind), dims=list(array.shape)))
        tensors[-1].data = np.ascontiguousarray(array).tobytes()
    node = Table("CNode", name="node", primitive=primitive, inputIndex=list(range(len(tensors))))
    node.outputIndex = [len(tensors) + i for i in range(outputs)]
    for _ in range(outputs):
        tensors.append(Table("Tensor", nodeType=2, name="y", dataType=dtype, dims=list(out)))
    graph = Table(
        "MetaGraph", nodes=[node], allTensors=tensors, inputIndex=[0], outputIndex=list(node.outputIndex)
    )
    write(str(path), graph)
    return str(path)


def int32(*values):
    return np.asarray(values, np.int32)


LAST = IMAGE.transpose(0, 2, 3, 1)
ALONE = {
    "scale": (
        Table("ScaleFusion", axis=1, activation_type="RELU"),
        (np.float32([2, 3, -1]), np.float32([0, 1, 2])),
        lambda x: np.maximum(x * np.float32([2, 3, -1])[:, None] + np.float32([0, 1, 2])[:, None], 0),
    ),
    "power": (Table("PowFusion", scale=2.0, shift=20.0), (np.float32(2),), lambda x: (2 * x + 20) ** 2),
    "exp": (Table("ExpFusion", base=2.0, scale=3.0, shift=1.0), (), lambda x: 2 ** (3 * x + 1)),
    "sum of squares": (
        Table("ReduceFusion", mode="ReduceSumSquare", reduce_to_end=True, coeff=0.5),
        (int32(1),),
        lambda x: 0.5 * (x * x).sum((1, 2)),
    ),
    "sum of magnitudes": (Table("ReduceFusion", mode="ReduceASum"), (int32(0),), lambda x: np.abs(x).sum(0)),
    "exclusive": (
        Table("CumSum", exclusive=True),
        (int32(2),),
        lambda x: np.cumsum(x, 2) - x,
    ),
    "exclusive from the end": (
        Table("CumSum", exclusive=True, reverse=True),
        (int32(1),),
        lambda x: x[:, ::-1].cumsum(1)[:, ::-1] - x,
    ),
    "part": (Table("SliceFusion", axes=[0, 2]), (int32(1, -3), int32(1, 2)), lambda x: x[1:2, :, 1:3]),
    "named slices": (
        Table("StridedSlice"),
        (int32(-1, 0), int32(-9, 9), int32(2, 0), int32(-2, 1)),
        lambda x: x[:, :, ::-2],
    ),
    "masks": (
        Table("StridedSlice", begin_mask=1, end_mask=1, shrink_axis_mask=2),
        (int32(1, -1), int32(1, 0), int32(1, 1)),
        lambda x: x[:, -1],
    ),
    "mirror": (
        Table("PadFusion", padding_mode="SYMMETRIC"),
        (np.int32([[1, 2], [0, 3], [0, 0]]),),
        lambda x: np.pad(x, [(1, 2), (0, 3), (0, 0)], "symmetric"),
    ),
    "difference": (
        Table("SquaredDifference"),
        (np.float32([1, 2, 3, 4]),),
        lambda x: (x - [1, 2, 3, 4]) ** 2,
    ),
    "norm": (
        Table("BatchNorm", epsilon=0.1),
        (np.float32([1, 2, 3, 4]), np.float32([4, 3, 2, 1])),
        lambda x: (x - [1, 2, 3, 4]) / np.sqrt(np.array([4, 3, 2, 1]) + 0.1),
    ),
    "lengths": (
        Table("L2NormalizeFusion", axis=[1, 2], epsilon=1e-6),
        (),
        lambda x: x / np.sqrt((x * x).sum((1, 2), keepdims=True)),
    ),
    "repeated axes": (Table("TileFusion", dims=[2, 0]), (int32(3, 2),), lambda x: np.tile(x, (2, 1, 3))),
}


@pytest.mark.parametrize("name", ALONE)
def test_operators_of_files_by_others(name, tmp_path):
    primitive, constants, meaning = ALONE[name]
    x = CUBE
    if name == "mirror":
        x = RNG.normal(size=(3, 3, 2)).astype(np.float32)
    want = meaning(x)
    (y,) = run(model_of(tmp_path / "one.ms", primitive, x.shape, want.shape, *constants), x)
    np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_becomes_space_and_back(tmp_path, mode):
    x = RNG.normal(size=(2, 3, 2, 8)).astype(np.float32)
    primitive = Table("DepthToSpace", block_size=2, format="NHWC", mode=mode)
    (y,) = run(model_of(tmp_path / "d.ms", primitive, x.shape, (2, 6, 4, 2)), x)
    order = (0, 1, 3, 2, 4, 5) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    inner = (2, 2, 2)
    np.testing.assert_array_equal(y, x.reshape(2, 3, 2, *inner).transpose(order).reshape(2, 6, 4, 2))
    if mode == "DCR":
        back = Table("SpaceToDepth", block_size=2, format="NHWC")
        np.testing.assert_array_equal(run(model_of(tmp_path / "s.ms", back, y.shape, x.shape), y)[0], x)


WRONG = {
    "an axis": (Table("ReduceFusion", mode="ReduceSum"), (int32(3),), "axis 3 is not one of 3"),
    "a mode": (Table("ReduceFusion", mode=9), (int32(0),), "mode 9 is unknown"),
    "sizes": (Table("Split", size_splits=[1], axis=0), (), "cannot be split"),
    "a dtype": (Table("Cast"), (int32(1000),), "unknown"),
    "a stride": (Table("StridedSlice"), (int32(0), int32(1), int32(0)), "stride is 0"),
    "a begin": (Table("SliceFusion"), (int32(5), int32(1)), "do not lie in axis 0"),
    "pads": (Table("PadFusion"), (int32(1, 1),), "2 paddings do not fit"),
    "a negative pad": (Table("PadFusion"), (int32(1, -1, 0, 0, 0, 0),), "out of range"),
    "a long mirror": (Table("PadFusion", padding_mode="REFLECT"), (int32(2, 0, 0, 0, 0, 0),), "too short"),
    "indices": (Table("Gather"), (np.float32([1]), int32(0)), "indices must be int32"),
    "k": (Table("TopKFusion", axis=1), (int32(4),), "k does not fit"),
    "a shape": (Table("BroadcastTo", shape=[2, 3, 5]), (), "cannot be broadcast to size 5"),
    "multiples": (Table("TileFusion"), (int32(1, -1, 1),), "out of range"),
    "dimensions": (Table("Unsqueeze", axis=[0, 1, 2, 3, 4, 5]), (), "more than 8 dimensions"),
    "gamma": (
        Table("LayerNormFusion", begin_norm_axis=2, begin_params_axis=2),
        (np.float32([1]),),
        "does not fit",
    ),
    "channels": (Table("BatchNorm"), (np.float32([1]), np.float32([1])), "does not fit the channels"),
    "a scale": (Table("ScaleFusion", axis=2), (np.float32([1, 2]),), "does not fit"),
    "an input": (Table("PowFusion"), (), "input 1 is missing"),
    "a block": (Table("DepthToSpace", block_size=0), (), "images must be"),
    "huge": (Table("TileFusion"), (int32(2**30, 2**30, 1),), "too large"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_told(name, tmp_path):
    primitive, constants, reason = WRONG[name]
    path = model_of(tmp_path / "wrong.ms", primitive, CUBE.shape, CUBE.shape, *constants)
    with pytest.raises(RuntimeError, match=reason):
        mslite.Model().build_from_file(path)


def test_an_index_beyond_the_end_is_told(tmp_path):
    path = model_of(tmp_path / "g.ms", Table("Gather"), CUBE.shape, (1, 3, 4), int32(2), int32(0))
    with pytest.raises(RuntimeError, match="index 2"):
        run(path, CUBE)


@pytest.mark.parametrize("limits", [{}, {"nan": 1.5, "posinf": 2.5, "neginf": -3.5}])
def test_numbers_in_place_of_nan(tmp_path, limits):
    x = np.array([[np.nan, np.inf, -np.inf, 0.0, -7.5]], np.float32)
    compare(Function(lambda x: ops.nan_to_num(x, **limits)), tmp_path, [x])


def test_sums_of_exponentials(tmp_path):
    x = np.array([[1.0, 2.0], [-np.inf, -np.inf], [1000.0, 999.0]], np.float32)
    compare(Function(lambda x: ops.logsumexp(x, 1)), tmp_path, [x])
