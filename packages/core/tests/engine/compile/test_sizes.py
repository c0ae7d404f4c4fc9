"""Compiled functions called with other sizes: one more capture serves them all, with the right results."""

import copy
import math

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops


def rows(n, width=3):
    return Tensor(np.random.default_rng(n).normal(size=(n, width)).astype(np.float32))


def assert_like_python(function, sizes, captures, make=rows):
    """`function` compiled equals itself at all sizes, with so many captures."""
    compiled = ms.jit(function)
    for n in sizes:
        x = make(n)
        np.testing.assert_allclose(
            compiled(x).asnumpy(), np.asarray(function(x).asnumpy()), rtol=1e-5, atol=1e-6
        )
    assert compiled.cache_info().captures == captures
    return compiled


SIZES = (8, 5, 12, 3, 8, 7)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.softmax(x * 2 + 1, -1),
        lambda x: x.sum() / x.shape[0],
        lambda x: x.mean(0) * (1.0 / len(x.shape) + x.shape[0]),
        lambda x: ops.zeros((x.shape[0], 2), ms.float32) + x[:, :2],
        lambda x: x[1:-1] - x[:-2],
        lambda x: x[: x.shape[0] // 2],
        lambda x: ops.concat([x, x * x.size]).reshape(-1, 2, 3).transpose(1, 0, 2),
        lambda x: ops.matmul(x, x.T) @ x,
        lambda x: x.reshape(x.shape[0] * x.shape[1]).cumsum(0),
        lambda x: x.std(0) + x.max(),
        lambda x: x.sum(0) / len(x),
        lambda x: x / int(x.shape[0]) + float(x.shape[0]),
        lambda x: x[: int(x.shape[0] * 0.6)] * round(len(x) * 0.4),
        lambda x: x[: math.ceil(x.shape[0] / 3)] * math.floor(len(x) * 0.3),
        lambda x: x / math.sqrt(len(x) - 1) + math.log(math.prod(x.shape)),
        lambda x: x * Tensor(x.shape[0]) + ms.tensor(len(x) / 2, ms.float32),
        lambda x: ops.matmul(ops.eye(len(x)), x),
        lambda x: ops.pad(x, (0, 0, 0, 12 - len(x))),
        lambda x: x * ops.arange(x.shape[0])[:, None] + ops.arange(2, x.shape[0] * 2 + 2, 2)[:, None],
        ms.grad(lambda x: (x.mean() * ops.sigmoid(x)).sum()),
        ms.grad(lambda x: ms.grad(lambda y: (y**3).mean())(x).sum()),
    ],
)
def test_one_more_capture_serves_all_sizes(function):
    assert_like_python(function, SIZES, 2)


def positive(*shape):
    return Tensor(np.random.default_rng(sum(shape)).uniform(0.1, 0.9, shape).astype(np.float32))


COMPOSED = {  # functions that are made of ops and compute numbers from sizes
    "fft": (ops.fft, lambda n: positive(n)),
    "ifft2": (ops.ifft2, lambda n: positive(n, 6)),
    "rfftn": (lambda x: ops.rfftn(x, norm="ortho"), lambda n: positive(3, n)),
    "irfft": (lambda x: ops.irfft(x, norm="forward"), lambda n: positive(2, n)),
    "hfft": (ops.hfft, lambda n: positive(n)),
    "ihfft2": (ops.ihfft2, lambda n: positive(n, 6)),
    "cov": (ops.cov, lambda n: positive(6, n)),
    "vander": (ops.vander, lambda n: positive(n)),
    "bucketize": (lambda x: ops.bucketize(x, [0.2, 0.5]), lambda n: positive(n, 2)),
    "pixel shuffle": (lambda x: ops.pixel_shuffle(x, 2), lambda n: positive(1, 8, n, 3)),
    "grid sample": (
        lambda x: ops.grid_sample(x, x[:, :2].transpose(0, 2, 3, 1)),
        lambda n: positive(1, 3, n, 5),
    ),
    "fold": (lambda x: ops.unfold(x, 3), lambda n: positive(1, 2, n, 6)),
    "affine grid": (lambda x: ops.affine_grid(x, (x.shape[0], 3, 5, 6)), lambda n: positive(n, 2, 3)),
    "crop and resize": (
        lambda x: ops.crop_and_resize(x, Tensor([[0.1, 0, 0.9, 1]]), Tensor([0], ms.int32), (3, 3)),
        lambda n: positive(1, n, 7, 2),
    ),
    **{
        mode: (lambda x, mode=mode: ops.pad(x, (3, 2), mode), lambda n: positive(1, 2, n))
        for mode in ("reflect", "replicate", "circular")
    },
    "strided convolution of one image": (
        lambda x: ops.conv2d(x, positive(3, 2, 3, 3), stride=2, pad_mode="same"),
        lambda n: positive(1, 2, n, 7),
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions_need_one_more_capture(name):
    """Or two, where other sizes go another way: windows that reach beyond the image, the larger side."""
    function, make = COMPOSED[name]
    compiled = ms.jit(function)
    for n in (7, 4, 12, 5, 10, 9):
        found, expected = compiled(make(n)).asnumpy(), function(make(n)).asnumpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert compiled.cache_info().captures <= 3


RESIZED = {
    f"{mode} {how} {align}": (mode, how, align)
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
    for how in ("size", "factor", "factors again")
    for align in ((None, True) if mode.startswith("bi") else (None,))
}


@pytest.mark.parametrize("axis", [0, 2, 3])
@pytest.mark.parametrize("name", RESIZED)
def test_resized_images_need_one_more_capture(name, axis):
    mode, how, align = RESIZED[name]
    to = {"size": {"size": (5, 9)}, "factor": {"scale_factor": 1.7}}.get(how)
    to = to or {"scale_factor": (0.7, 2.0), "recompute_scale_factor": True}
    function = ms.jit(lambda x: ops.interpolate(x, mode=mode, align_corners=align, **to))
    for n in (7, 4, 12, 5, 10, 31):
        shape = [2, 3, 6, 8]
        shape[axis] = n
        x = Tensor(np.random.default_rng(n).normal(size=shape).astype(np.float32))
        expected = ops.interpolate(x, mode=mode, align_corners=align, **to)
        np.testing.assert_allclose(function(x).asnumpy(), expected.asnumpy(), rtol=1e-6, atol=1e-6)
    # Programs for few images are another variant; a capture more where sizes happened to be equal.
    assert function.cache_info().captures <= 3


@pytest.mark.parametrize("kind", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("where", ["asymmetric", "align_corners", "half_pixel"])
def test_images_resized_as_by_operators_need_one_more_capture(kind, where):
    from mycelia.engine.ops.images.resize import resize

    def function(x):
        return resize("resize", x, (x.shape[2] * 2, 7), kind, where)

    compiled = ms.jit(function)
    for n in (7, 4, 12, 5, 10, 31):
        x = Tensor(np.random.default_rng(n).normal(size=(2, 3, n, 6)).astype(np.float32))
        np.testing.assert_allclose(compiled(x).asnumpy(), function(x).asnumpy(), rtol=1e-6, atol=1e-6)
    assert compiled.cache_info().captures == 2


def test_size_one_and_none_are_right():
    assert_like_python(lambda x: x * 2 + 1, (4, 1, 0, 6), 2)
    assert_like_python(lambda x: x + x.sum(0), (1, 4, 1, 5), 2)


def test_two_axes_change_independently():
    def make(n):
        return rows(n, 20 - n)

    assert_like_python(lambda x: ops.softmax(x @ ops.ones((x.shape[1], 4)), -1), SIZES, 2, make)


def test_an_axis_that_changes_later_is_one_more_capture():
    compiled = ms.jit(lambda x: x.mean() + x)
    for shape in ((4, 3), (5, 3), (6, 3), (6, 4), (7, 5), (8, 6)):
        compiled(Tensor(np.ones(shape, np.float32)))
    assert compiled.cache_info().captures == 3


def test_python_code_that_branches_on_a_size_stays_right():
    def by_size(x):
        if x.shape[0] > 6:
            return x * 2
        return x - 1

    assert_like_python(by_size, (8, 9, 10, 4, 5, 6, 12), 3)


def test_an_even_size_is_a_condition_too():
    assert_like_python(lambda x: x * (2 if x.shape[0] % 2 else 3), (4, 6, 8, 5, 7, 10), 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sum((x[i] for i in range(x.shape[0])), ops.zeros(3, ms.float32)),
        lambda x: x * {4: 1.0, 5: 2.0}.get(x.shape[0], 3.0),
        lambda x: x + Tensor(np.arange(x.shape[0], dtype=np.float32)[:, None]),
        lambda x: x * float(str(x.shape[0])),
        lambda x: x * len([1.0] * x.shape[0]) + len(x),
    ],
)
def test_a_size_used_as_a_python_number_is_fixed(function):
    assert_like_python(function, (4, 5, 6, 4, 7), 4)  # the second capture finds out: one for each size


def test_a_size_that_is_returned():
    compiled = ms.jit(lambda x: (x.sum(), x.shape[0], x.shape))
    for n in (4, 5, 6):
        _, size, shape = compiled(rows(n))
        assert (size, shape) == (n, (n, 3)) and type(size) is int


def test_loops_and_branches_of_the_graph():
    def collatz_like(x):
        y, k = x, Tensor(0)
        while y.sum() > x.shape[0]:
            y = y / 2 if k % 2 == 0 else y - 1
            k = k + 1
        return y

    assert_like_python(collatz_like, SIZES, 2, lambda n: rows(n) * 3 + 2)


def test_gradient_of_a_compiled_function():
    compiled = ms.jit(lambda x: (x * x).mean() * x.shape[0])
    for n in SIZES:
        x = rows(n)
        np.testing.assert_allclose(ms.grad(compiled)(x).asnumpy(), 2 * x.asnumpy() / 3, rtol=1e-5)
    assert compiled.cache_info().captures == 2


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)
        self.pool, self.dense = nn.MaxPool2d(2, 2), nn.Dense(36, 5)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        return self.dense(x.reshape(x.shape[0], -1))


def training(net):
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)

    def step(x, y):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    return step


def test_a_training_step_with_a_last_smaller_batch():
    net = Net().set_train()
    other = copy.deepcopy(net)
    step, expected = ms.jit(training(net)), training(other)
    random = np.random.default_rng(0)
    for n in (8, 8, 5, 3, 8, 6, 1):
        x = Tensor(random.normal(size=(n, 2, 6, 6)).astype(np.float32))
        y = Tensor(random.integers(0, 5, n).astype(np.int32))
        np.testing.assert_allclose(step(x, y).asnumpy(), expected(x, y).asnumpy(), rtol=1e-4)
    assert step.cache_info().captures == 2
    for a, b in zip(net.get_parameters(), other.get_parameters()):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-3, atol=1e-4)


def test_an_error_at_another_size_is_the_users_error():
    compiled = ms.jit(lambda x: x.reshape(-1, 2))
    compiled(rows(4)), compiled(rows(6))
    with pytest.raises(ValueError, match="reshape"):
        compiled(rows(5))
    assert compiled(rows(8)).shape == (12, 2)
