"""mint functions: for each call dtype, shape, last element and sum of absolute values of every result.

The numbers are those of the same call in PyTorch 2.13, whose signatures mint has; where MindSpore 2.10
computes these on the CPU it agrees.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import mint as m
from mycelia.mint.nn import functional as F


def wave(*shape, step=1.0, shift=0.0):
    return np.sin(np.arange(np.prod(shape)) * step + shift).reshape(shape).astype(np.float32)


def whole(*shape, low=-4, high=5):
    return (np.arange(np.prod(shape)) * 7 % (high - low) + low).reshape(shape)


ARRAYS = dict(
    f=wave(3, 4), g=wave(3, 4, step=2.3, shift=0.4), p=wave(3, 4, step=0.7) ** 2 + np.float32(0.1),
    v=wave(4, shift=0.5), s=wave(3, 3, step=1.7) + 2 * np.eye(3, dtype=np.float32), i=whole(3, 4),
    j=whole(3, 4, low=1, high=4), b=wave(3, 4) > 0, x=wave(2, 4, 6, 5, step=0.9), y=wave(2, 3, 4, step=1.3),
    n=np.array([[1, np.nan, np.inf], [-np.inf, 2, np.nan]], np.float32), z=wave(2, 2, 4, 4, 4, step=0.3),
    k=wave(2, 4, 3, 3, step=0.5), k1=wave(5, 3, 3, step=0.4), kt=wave(4, 3, 3, 3, step=0.6),
    c=np.array([0, 1, 1, 4, 2]), l=np.array([0, 3, 1]), h=whole(3, 2, low=0, high=4), w=wave(8, 3, step=0.35),
)  # fmt: skip

FUNCTIONS = """
    m.add(f, g, alpha=2)  ->  float32 [3,4] 0.074654 16.56
    m.add(f, i, alpha=0.5)  ->  float32 [3,4] -0.49999 13.84
    m.sub(i, j, alpha=3)  ->  int64 [3,4] -8 72
    m.div(i, j)  ->  float32 [3,4] 0.33333 18.167
    m.div(i, j, rounding_mode="trunc")  ->  int64 [3,4] 0 15
    m.divide(f, g, rounding_mode="floor")  ->  float32 [3,4] -2 31
    m.floor_divide(i, 3)  ->  int64 [3,4] 0 10
    m.fmod(i, 3)  ->  int64 [3,4] 1 10
    m.remainder(i, -3)  ->  int64 [3,4] -2 12
    m.pow(2, j)  ->  int64 [3,4] 8 56
    m.float_power(i, 2)  ->  float64 [3,4] 1 86
    m.sqrt(i * i)  ->  float32 [3,4] 1 28
    m.arcsin(f)  ->  float32 [3,4] -1.5664 9.4159
    m.frac(p * 5)  ->  float32 [3,4] 0.38238 4.4913
    m.fix(p * 5)  ->  float32 [3,4] 5 31
    m.round(f, decimals=1)  ->  float32 [3,4] -1 7.5
    m.lerp(f, g, 0.3)  ->  float32 [3,4] -0.5388 5.7409
    m.clamp(i, -2, 2)  ->  int64 [3,4] 1 19
    m.clamp(f, min=g)  ->  float32 [3,4] 0.53732 8.2866
    m.nan_to_num(n, nan=1.5)  ->  float32 [2,3] 1.5 6.8056e+38
    m.isneginf(n)  ->  bool [2,3] 0 1
    m.bitwise_not(i)  ->  int64 [3,4] -2 30
    m.xlogy(f, p)  ->  float32 [3,4] -0.073692 5.3942
    m.addcdiv(f, g, p, value=2)  ->  float32 [3,4] -0.0016922 45.921
    m.logaddexp2(f, g)  ->  float32 [3,4] 0.96442 13.449
    m.equal(f, f)  ->  True
    m.allclose(f, g)  ->  False
    m.sum(i)  ->  int64 [] 0 0
    m.sum(b, 1)  ->  int64 [3] 2 6
    m.sum(f, (0, 1), True)  ->  float32 [1,1] 0.4112 0.4112
    m.mean(f, 1, True)  ->  float32 [3,1] -0.035634 0.84314
    m.prod(j, 0)  ->  int64 [4] 6 24
    m.all(b, 1)  ->  bool [3] 0 0
    m.any(i, 0, True)  ->  bool [1,4] 1 4
    m.amax(f)  ->  float32 [] 0.98936 0.98936
    m.amin(f, (0, 1), True)  ->  float32 [1,1] -0.99999 0.99999
    m.max(f)  ->  float32 [] 0.98936 0.98936
    m.max(f, 1)  ->  float32 [3] 0.98936 2.5556 | int64 [3] 0 5
    m.max(f, g)  ->  float32 [3,4] 0.53732 8.2866
    m.min(i, dim=0, keepdim=True)  ->  int64 [1,4] -1 10 | int64 [1,4] 0 2
    m.argmax(f)  ->  int64 [] 8 8
    m.argmin(f, 0, True)  ->  int64 [1,4] 2 6
    m.argsort(f, 0, True)  ->  int64 [3,4] 2 12
    m.sort(f, dim=0, descending=True)  ->  float32 [3,4] -0.99999 7.4895 | int64 [3,4] 2 12
    m.topk(f, 2, 0, False)  ->  float32 [2,4] 0.14112 4.0924 | int64 [2,4] 0 9
    m.kthvalue(f, 2)  ->  float32 [3] -0.54402 1.4419 | int64 [3] 2 5
    m.median(f)  ->  float32 [] 0 0
    m.median(f, 1)  ->  float32 [3] -0.54402 1.4419 | int64 [3] 2 5
    m.std(f, 1)  ->  float32 [3] 0.90176 2.0906
    m.var(f, (0, 1), correction=0)  ->  float32 [] 0.49894 0.49894
    m.var_mean(f, 1, keepdim=True)  ->  float32 [3,1] 0.81318 1.5513 | float32 [3,1] -0.035634 0.84314
    m.std_mean(f, 0, correction=2)  ->  float32 [4] 1.1991 4.8621 | float32 [4] -0.067295 0.27166
    m.count_nonzero(i, 1)  ->  int64 [3] 4 11
    m.cumsum(b, 0)  ->  int64 [3,4] 2 13
    m.cumsum(f, -1)  ->  float32 [3,4] -0.14253 13.681
    m.cumprod(f, 1)  ->  float32 [3,4] 0.22181 3.6592
    m.cummax(f, 1)  ->  float32 [3,4] 0.98936 9.0675 | int64 [3,4] 0 10
    m.cummin(i, 0)  ->  int64 [3,4] -1 28 | int64 [3,4] 0 2
    m.diff(i, 2, 0)  ->  int64 [1,4] 0 9
    m.logsumexp(f, (0, 1), True)  ->  float32 [1,1] 2.7498 2.7498
    m.norm(f)  ->  float32 [] 2.4498 2.4498
    m.norm(f, 3, dim=(0, 1))  ->  float32 [] 1.7292 1.7292
    m.norm(f, "nuc")  ->  float32 [] 3.4179 3.4179
    m.linalg.norm(f, "nuc")  ->  float32 [] 3.4179 3.4179
    m.linalg.vector_norm(f, 3, 1, True)  ->  float32 [3,1] 1.3005 3.5804
    m.linalg.matrix_norm(f, -2)  ->  float32 [] 1.4913e-07 1.4913e-07
    m.linalg.inv(s)  ->  float32 [3,3] 0.35308 1.7627
    m.bincount(c)  ->  int64 [5] 1 5
    m.bincount(c, minlength=9)  ->  int64 [9] 0 5
    m.histc(f, 4, -1, 1)  ->  float32 [4] 4 12
    m.trace(i)  ->  int64 [] 3 3
    m.broadcast_to(v, (2, 4))  ->  float32 [2,4] -0.35078 4.8524
    m.cat((i, f), 1)  ->  float32 [3,8] -0.99999 35.49
    m.stack([f, g], 1)  ->  float32 [3,2,4] 0.53732 14.97
    m.chunk(f, 2, 1)  ->  float32 [3,2] 0.41212 3.9587 | float32 [3,2] -0.99999 3.5308
    m.split(v, [1, 3])  ->  float32 [1] 0.47943 0.47943 | float32 [3] -0.35078 1.9468
    m.flatten(x, 1, 2)  ->  float32 [2,24,5] 0.99509 152.46
    m.permute(x, (3, 0, 2, 1))  ->  float32 [5,2,6,4] 0.99509 152.46
    m.transpose(x, 1, 3)  ->  float32 [2,5,6,4] 0.99509 152.46
    m.tile(v, (2, 2))  ->  float32 [2,8] -0.35078 9.7047
    m.narrow(f, 1, 1, 2)  ->  float32 [3,2] -0.54402 3.9452
    m.squeeze(m.unsqueeze(f, 0), 1)  ->  float32 [1,3,4] -0.99999 7.4895
    m.squeeze(m.unsqueeze(f, 0), (0, 1))  ->  float32 [3,4] -0.99999 7.4895
    m.diag(v, 1)  ->  float32 [5,5] 0 2.4262
    m.diag(f, -1)  ->  float32 [2] 0.41212 1.1689
    m.meshgrid(v, v, indexing="xy")  ->  float32 [4,4] -0.35078 9.7047 | float32 [4,4] -0.35078 9.7047
    m.repeat_interleave(f, 2, 1)  ->  float32 [3,8] -0.99999 14.979
    m.gather(f, 1, h)  ->  float32 [3,2] -0.99999 3.3688
    m.scatter(f, 1, h, f)  ->  float32 [3,4] 0.41212 8.0794
    m.scatter_add(f, 1, h, f)  ->  float32 [3,4] -0.58787 10.624
    m.index_select(f, 1, h[0])  ->  float32 [3,2] -0.99999 3.5443
    m.index_add(f, 0, c[:2], f[:2], alpha=2)  ->  float32 [3,4] -0.99999 16.578
    m.select(f, 0, -1)  ->  float32 [4] -0.99999 2.9455
    m.where(b, f, 2.0)  ->  float32 [3,4] 2 15.95
    m.where(b)  ->  int64 [6] 2 5 | int64 [6] 1 10
    m.nonzero(i, as_tuple=True)  ->  int64 [11] 2 11 | int64 [11] 3 15
    m.unique(h, dim=0)  ->  int64 [2,2] 1 6
    m.unique_consecutive(c, return_counts=True)  ->  int64 [4] 2 7 | int64 [4] 1 5
    m.bmm(y, m.transpose(y, 1, 2))  ->  float32 [2,3,3] 2.3653 23.997
    m.mv(f, v)  ->  float32 [3] 0.91061 3.9617
    m.dot(v, v)  ->  float32 [] 1.7061 1.7061
    m.cdist(f, g, p=3.0)  ->  float32 [3,3] 1.6974 15.954
    m.arange(1, 6, 2)  ->  int64 [3] 5 9
    m.arange(0.0, 1.0, 0.3)  ->  float32 [4] 0.9 1.8
    m.full((2, 2), 3.5)  ->  float32 [2,2] 3.5 14
    m.full((2,), True)  ->  bool [2] 1 2
    m.full((3,), 4)  ->  int64 [3] 4 12
    m.linspace(0, 10, 5)  ->  float32 [5] 10 25
    m.softmax(f, 1)  ->  float32 [3,4] 0.071464 3
    m.special.log_softmax(f, 1)  ->  float32 [3,4] -2.6386 18.954
    m.special.round(f * 3)  ->  float32 [3,4] -3 23
"""

NN_FUNCTIONS = """
    F.relu6(f * 9)  ->  float32 [3,4] 0 28.892
    F.leaky_relu(f)  ->  float32 [3,4] -0.0099999 3.9857
    F.elu(f, 2.0)  ->  float32 [3,4] -1.2642 8.8364
    F.gelu(f, approximate="tanh")  ->  float32 [3,4] -0.15881 3.8456
    F.glu(x, 1)  ->  float32 [2,2,6,5] -0.56214 37.59
    F.hardtanh(f, -0.5, 0.5)  ->  float32 [3,4] -0.5 4.8327
    F.threshold(f, 0.1, 20.0)  ->  float32 [3,4] 20 123.95
    F.softmax(y)  ->  float32 [2,3,4] 0.12076 12
    F.log_softmax(f)  ->  float32 [3,4] -2.6386 18.954
    F.normalize(f, p=1.0, dim=0)  ->  float32 [3,4] -0.55614 4
    F.layer_norm(f, (4,), v, v)  ->  float32 [3,4] 0.082378 7.9724
    F.group_norm(x, 2)  ->  float32 [2,4,6,5] 1.3962 215.39
    F.batch_norm(x, v, v * v)  ->  float32 [2,4,6,5] 3.8366 343.46
    F.batch_norm(x, None, None, training=True)  ->  float32 [2,4,6,5] 1.3875 215.25
    F.linear(f, g, v[:3])  ->  float32 [3,3] 0.86959 6.2198
    F.conv1d(y, k1, padding="same")  ->  float32 [2,5,4] 1.187 37.54
    F.conv2d(x, k, stride=2, padding=1)  ->  float32 [2,2,3,3] 1.9371 167.78
    F.conv2d(x, k, padding="same", dilation=(1, 2))  ->  float32 [2,2,6,5] 2.3837 279.82
    F.conv2d(x[0], k)  ->  float32 [2,4,3] 6.5734 112.81
    F.conv3d(z, z[:, :, :2, :2, :2])  ->  float32 [2,2,3,3,3] 8.0478 552.73
    F.conv_transpose2d(x, kt, stride=2, padding=1, output_padding=1)  ->  float32 [2,3,12,10] 1.0723 1117.2
    F.max_pool2d(x, (2, 3), (1, 2), (1, 1), ceil_mode=True)  ->  float32 [2,4,7,3] 0.99509 123.04
    F.max_pool2d(x[0], 2, return_indices=True)  ->  float32 [4,3,2] 0.92037 17.124 | int64 [4,3,2] 23 333
    F.avg_pool1d(y, 2, 1, 1)  ->  float32 [2,3,5] -0.49925 12.887
    F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)  ->  float32 [2,4,4,3] 0.76808 26.359
    F.avg_pool2d(x, 2, divisor_override=3)  ->  float32 [2,4,3,2] 0.63998 23.31
    F.avg_pool3d(z, 2)  ->  float32 [2,2,2,2,2] 0.53447 10.607
    F.adaptive_avg_pool1d(y, 3)  ->  float32 [2,3,3] -0.65922 9.1234
    F.adaptive_avg_pool2d(x, (None, 2))  ->  float32 [2,4,6,2] 0.40457 45.938
    F.adaptive_avg_pool3d(z, 3)  ->  float32 [2,2,3,3,3] 0.53447 41.067
    F.adaptive_max_pool1d(y, 3, return_indices=True)  ->  float32 [2,3,3] -0.31994 11.573 | int64 [2,3,3] 2 28
    F.adaptive_max_pool2d(x, 4)  ->  float32 [2,4,4,4] 0.99509 94.541
    F.unfold(x, (2, 3), padding=1, stride=2)  ->  float32 [2,24,12] 0 213.9
    F.fold(F.unfold(x, 2), (6, 5), 2)  ->  float32 [2,4,6,5] 0.99509 407.2
    F.interpolate(x, scale_factor=1.7, mode="bilinear")  ->  float32 [2,4,10,8] 0.95503 308.64
    F.upsample(x, scale_factor=2.0)  ->  float32 [2,4,12,10] 0.99509 609.85
    F.pixel_shuffle(x, 2)  ->  float32 [2,1,12,10] 0.99509 152.46
    F.pad(x, (1, 1, 2, 2), mode="reflect")  ->  float32 [2,4,10,7] -0.83956 357
    F.one_hot(c)  ->  int64 [5,5] 0 5
    F.embedding(c, w)  ->  float32 [5,3] 0.33499 11.338
    F.cross_entropy(f, l, v * v, label_smoothing=0.1)  ->  float32 [] 1.3089 1.3089
    F.cross_entropy(f, m.softmax(g, 1))  ->  float32 [] 1.6197 1.6197
    F.nll_loss(f, l, v * v, reduction="sum")  ->  float32 [] -0.4909 0.4909
    F.mse_loss(f, g)  ->  float32 [] 1.0042 1.0042
    F.l1_loss(f, g, reduction="sum")  ->  float32 [] 10.335 10.335
    F.smooth_l1_loss(f, g, beta=0.3)  ->  float32 [] 0.71128 0.71128
    F.binary_cross_entropy(m.sigmoid(f), m.sigmoid(g), p)  ->  float32 [] 0.47872 0.47872
    F.binary_cross_entropy_with_logits(f, m.sigmoid(g), p, "sum", v * v)  ->  float32 [] 3.8347 3.8347
    F.kl_div(f, m.softmax(g, 1), "batchmean")  ->  float32 [] -1.1909 1.1909
    F.kl_div(f, g, log_target=True)  ->  float32 [] 0.55201 0.55201
    F.cosine_embedding_loss(f, g, i[:, 0].sign(), margin=0.2)  ->  float32 [] 0 0
    F.soft_margin_loss(f, m.sign(g))  ->  float32 [] 0.76129 0.76129
"""


def rows(table):
    return [tuple(map(str.strip, line.split("->"))) for line in table.strip().splitlines()]


def space():
    return {"m": m, "F": F, **{name: ms.Tensor(array) for name, array in ARRAYS.items()}}


def described(result):
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [part if isinstance(part, bool) else part.asnumpy() for part in parts]


@pytest.mark.parametrize(("call", "wanted"), rows(FUNCTIONS) + rows(NN_FUNCTIONS))
def test_function(call, wanted):
    found = described(eval(call, space()))
    wanted = wanted.split(" | ")
    assert len(found) == len(wanted)
    for array, text in zip(found, wanted):
        if isinstance(array, bool):
            assert str(array) == text
            continue
        dtype, shape, last, total = text.split()
        assert (str(array.dtype), str(list(array.shape)).replace(", ", ",")) == (dtype, shape)
        values = array.astype(np.float64)
        np.testing.assert_allclose(values.ravel()[-1], float(last), rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(np.abs(values).sum(), float(total), rtol=2e-4, atol=1e-4)


COMPILED = [
    "m.max(f, 1)", "m.std(f, 1)", "m.topk(f, 2)", "m.split(v, [1, 3])", "m.gather(f, 1, h)", "m.unique(i)",
    "m.where(b, f, 2.0)", "m.add(f, g, alpha=2)", "F.conv2d(x, k, padding='same')", "F.max_pool2d(x, 2)",
    "F.cross_entropy(f, l, label_smoothing=0.1)", "F.batch_norm(x, None, None, training=True)",
    "m.cummax(f, 1)", "m.arange(3) + h[0, 0]", "F.one_hot(c, 6)", "m.squeeze(m.unsqueeze(f, 0), (0, 1))",
]  # fmt: skip


@pytest.mark.parametrize("call", COMPILED)
def test_compiled_is_the_same(call):
    names = [name for name in ARRAYS if name in call.replace("F.", "").replace("m.", "")]
    tensors = [ms.Tensor(ARRAYS[name]) for name in names]
    program = ms.jit(lambda *values: eval(call, {"m": m, "F": F, **dict(zip(names, values))}))
    for eager, compiled in zip(described(eval(call, space())), described(program(*tensors))):
        assert eager.dtype == compiled.dtype
        np.testing.assert_allclose(eager, compiled, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda x: m.max(x, 1)[0].sum(), [[0, 0, 1, 0], [0, 1, 0, 0]]),
        (lambda x: m.std(x, correction=0) * 8, None),
        (lambda x: m.sort(x, dim=1)[0][:, 3].sum(), [[0, 0, 1, 0], [0, 1, 0, 0]]),
        (lambda x: m.select(x, 1, 2).sum() * 3, [[0, 0, 3, 0], [0, 0, 3, 0]]),
        (lambda x: m.sub(m.clone(x), x, alpha=3).sum(), [[-2] * 4] * 2),
        (lambda x: F.kl_div(x, x, "sum", log_target=True), [[0] * 4] * 2),
    ],
)
def test_gradients(function, slope):
    x = np.array([[0.5, -1.0, 2.0, 0.25], [1.5, 3.0, -0.5, 0.0]], np.float32)
    slope = (x - x.mean()) / x.std() if slope is None else slope
    np.testing.assert_allclose(ms.grad(function)(ms.Tensor(x)).asnumpy(), slope, rtol=1e-5, atol=1e-6)


def test_in_place_forms_change_their_input():
    x = ms.Tensor([-2.0, 0.5, 3.0])
    assert F.relu_(x) is x
    np.testing.assert_allclose(x.asnumpy(), [0, 0.5, 3])
    F.threshold_(x, 1.0, -1.0)
    F.hardtanh_(x, -0.5, 2.0)
    np.testing.assert_allclose(x.asnumpy(), [-0.5, -0.5, 2])
    F.elu(x, alpha=2.0, inplace=True)
    F.sigmoid_(x)
    np.testing.assert_allclose(
        x.asnumpy(), 1 / (1 + np.exp([2 - 2 * np.exp(-0.5), 2 - 2 * np.exp(-0.5), -2])), rtol=1e-5
    )
    a = ms.Tensor(np.ones((2, 3), np.float32))
    m.addr_(a, ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 0.0, -1.0]), beta=2, alpha=3)
    np.testing.assert_allclose(a.asnumpy(), [[5, 2, -1], [8, 2, -4]])


def test_random_numbers():
    ms.set_seed(4)
    first = [m.rand(2, 3), m.randn((2, 3)), m.randint(5, (4,)), m.randperm(6)]
    ms.set_seed(4)
    again = [m.rand(2, 3), m.randn((2, 3)), m.randint(0, 5, (4,)), m.randperm(6)]
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    assert [str(x.dtype) for x in first] == ["Float32", "Float32", "Int64", "Int64"]
    assert sorted(first[3].asnumpy()) == list(range(6))
    drawn = m.randint_like(m.zeros((50,)), 2, 4)
    assert str(drawn.dtype) == "Float32" and set(drawn.asnumpy()) == {2.0, 3.0}
    generator = ms.Generator().manual_seed(1)
    assert m.rand(3, generator=generator, dtype=ms.float16).dtype is ms.float16
    np.testing.assert_array_equal(m.bernoulli(ms.Tensor([0.0, 1.0])).asnumpy(), [0, 1])
    assert m.multinomial(ms.Tensor([0.0, 1.0, 1.0]), 2).asnumpy().tolist() in ([1, 2], [2, 1])
    assert m.normal(ms.Tensor([1.0, 50.0]), 1e-3).asnumpy().round().tolist() == [1, 50]
    assert m.normal(0.0, 1.0, (2, 2)).shape == (2, 2)


def test_union_of_batches_has_the_statistics_of_all():
    x = ms.Tensor(wave(6, 3, 4, step=0.7))
    parts = [m.batch_norm_stats(x[:2], 1e-5), m.batch_norm_stats(x[2:], 1e-5)]
    means, roots = (m.stack([part[n] for part in parts]) for n in (0, 1))
    moving = ms.Tensor(np.zeros(3, np.float32)), ms.Tensor(np.ones(3, np.float32))
    mean, root = m.batch_norm_gather_stats_with_counts(
        x, means, roots, *moving, 0.5, 1e-5, ms.Tensor([8.0, 16.0])
    )
    for found, wanted in zip((mean, root), m.batch_norm_stats(x, 1e-5)):
        np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(moving[0].asnumpy(), mean.asnumpy() / 2, rtol=1e-5)
    whole_batch = F.batch_norm(x, None, None, training=True)
    joined = m.batch_norm_elemt(x, None, None, mean, root)
    np.testing.assert_allclose(joined.asnumpy(), whole_batch.asnumpy(), rtol=1e-4, atol=1e-5)


def test_convolution_over_time():
    x, kernel = ms.Tensor(wave(5, 2, 3)), ms.Tensor(wave(3, 3, 4, step=0.5))
    found = m.conv_tbc(x, kernel, ms.Tensor(wave(4)), 1)
    wanted = F.conv1d(x.transpose(1, 2, 0), kernel.transpose(2, 1, 0), ms.Tensor(wave(4)), padding=1)
    np.testing.assert_allclose(found.asnumpy(), wanted.transpose(2, 0, 1).asnumpy(), rtol=1e-5)


BAD = [
    ("m.add(i, i, alpha=0.5)", TypeError), ("m.sub(f, f, alpha=True)", TypeError),
    ("m.add(i, i, alpha=True)", TypeError), ("m.equal(f, 1)", TypeError), ("m.clone(3)", TypeError),
    ("m.max(f, 1, True, 2)", TypeError), ("m.max(f, 5)", ValueError), ("m.select(f, 1, 9)", ValueError),
    ("m.select(f, 3, 0)", ValueError), ("m.squeeze(f, 4)", ValueError), ("m.diag(x)", ValueError),
    ("m.norm(f, 'abc')", ValueError), ("m.dot(f, f)", ValueError), ("m.where(b, f)", TypeError),
    ("m.cdist(f, g, compute_mode='fast')", ValueError), ("m.randint(5, 5, (2,))", ValueError),
    ("m.randint(0.5, 5, (2,))", TypeError), ("m.rand(2, device='Ascend')", RuntimeError),
    ("m.repeat_interleave(f, 2, 1, output_size=7)", ValueError), ("m.randperm(-1)", ValueError),
    ("m.bernoulli(i)", TypeError), ("m.normal(0.0, 1.0)", ValueError), ("F.one_hot(f)", TypeError),
    ("F.one_hot(c, -2)", ValueError), ("F.dropout(f, 1.5)", ValueError), ("F.softmax(f, True)", TypeError),
    ("F.conv2d(x, k, stride=2, padding='same')", ValueError), ("F.conv2d(x, k, padding='all')", ValueError),
    ("F.conv2d(f, k)", ValueError), ("F.avg_pool2d(x, 2, padding=2)", ValueError),
    ("F.avg_pool2d(x, 2, divisor_override=0)", ValueError), ("F.max_pool2d(x, 'a')", TypeError),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind"), BAD)
def test_bad_arguments(call, kind):
    with pytest.raises(kind):
        eval(call, space())


def test_faces_have_mints_signatures():
    import inspect

    shown = {
        name: str(inspect.signature(getattr(m, name))) for name in ("cat", "nan_to_num", "diff", "softmax")
    }
    assert shown == {
        "cat": "(tensors, dim=0)",
        "nan_to_num": "(input, nan=None, posinf=None, neginf=None)",
        "diff": "(input, n=1, dim=-1, prepend=None, append=None)",
        "softmax": "(input, dim, *, dtype=None)",
    }
    with pytest.raises(TypeError, match="axis"):
        m.cat([ms.Tensor([1.0])], axis=0)


def test_all_public_names_are_there():
    for module in (m, m.nn, m.nn.functional, m.linalg, m.special, m.optim, m.distributed):
        assert set(module.__all__) <= set(dir(module))
        for name in module.__all__:
            assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no_such_function"):
        getattr(m, "no_such_function")  # noqa: B009
