"""Compiled functions called with other sizes: one more capture serves them all, with the right results."""

import copy
import gc
import math
import threading
import weakref

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops


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


# ---- set_inputs


class Line(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 2)

    def construct(self, x):
        return self.dense(x)


def test_declared_sizes_need_one_capture():
    net = Line()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    with ms.config.context(mode=ms.GRAPH_MODE):
        assert [net(rows(n)).shape for n in SIZES] == [(n, 2) for n in SIZES]
    assert net.get_inputs()[0].shape == (-1, 3)
    compiled = ms.jit(net)
    assert [compiled(rows(n)).shape for n in SIZES] == [(n, 2) for n in SIZES]
    assert compiled.cache_info().captures == 1


def test_arguments_unlike_the_declaration_are_refused():
    net = Line()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    with ms.config.context(mode=ms.GRAPH_MODE):
        with pytest.raises(ValueError, match="argument 1 must be"):
            net(rows(2, 4))
        with pytest.raises(ValueError, match="argument 1 must be"):
            net(rows(2).reshape(2, 3, 1))
        with pytest.raises(TypeError, match="Float32"):
            net(rows(2).astype(ms.float16))
    with pytest.raises(TypeError, match="takes 1"):
        net.set_inputs(rows(2), rows(2))
    with pytest.raises(ValueError, match="'z'"):
        net.set_inputs(z=rows(2))


# ---- mutable


def test_mutable_numbers_are_variables():
    compiled = ms.jit(lambda x, k, pair: x * k + pair[0] * pair[1]["c"])
    for k, a, c in ((3, 1.5, 2), (4, 2.5, 3), (5, -1.0, 0)):
        got = compiled(rows(2), ms.mutable(k), ms.mutable((a, {"c": c})))
        np.testing.assert_allclose(got.asnumpy(), rows(2).asnumpy() * k + a * c, rtol=1e-6)
    assert compiled.cache_info().captures == 1
    assert ms.mutable(3) + 1 == 4 and ms.mutable([1, 2.0]) == [1, 2.0]


def test_mutable_refuses_what_is_no_number():
    with pytest.raises(TypeError, match="but got str"):
        ms.mutable("a")
    with pytest.raises(TypeError, match="list or tuple"):
        ms.mutable(3, True)


# ---- what is kept


def test_kept_forms_are_bounded():
    from mycelia.engine.compile.cache import LIMIT

    compiled = ms.jit(lambda x, k: x * k)
    for k in range(LIMIT + 10):
        compiled(rows(2), k)
    assert compiled.cache_info().kept == LIMIT
    compiled(rows(2), LIMIT + 9)
    assert compiled.cache_info().captures == LIMIT + 10
    compiled(rows(2), 0)
    assert compiled.cache_info().captures == LIMIT + 11


def test_what_was_compiled_for_a_cell_goes_with_it():
    @ms.jit
    def run(net, x):
        return net(x)

    net = Line()
    run(net, rows(2))
    assert run.cache_info().kept == 1
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None
    assert run.cache_info().kept == 0


def test_a_copy_of_a_cell_is_compiled_for_itself():
    net = Line()
    compiled = ms.jit(Line)
    net = compiled()
    before = net(rows(2)).asnumpy()
    other = copy.deepcopy(net)
    other.dense.weight.set_data(other.dense.weight * 0)
    np.testing.assert_array_equal(
        other(rows(2)).asnumpy(), np.zeros((2, 2), np.float32) + other.dense.bias.asnumpy()
    )
    np.testing.assert_array_equal(net(rows(2)).asnumpy(), before)


def test_the_graph_can_be_read():
    compiled = ms.jit(lambda x: x + 1)
    assert compiled.graph() == ""
    compiled(rows(2))
    assert "add(" in compiled.graph()


def test_hooks_run_in_a_compiled_cell():
    net = Line()
    compiled = ms.jit(net)
    plain = compiled(rows(2)).asnumpy()
    handle = net.register_forward_hook(lambda cell, inputs, output: output * 2)
    np.testing.assert_allclose(compiled(rows(2)).asnumpy(), plain * 2, rtol=1e-6)
    inner = net.dense.register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 0,))
    bias = net.dense.bias.asnumpy()
    np.testing.assert_allclose(compiled(rows(2)).asnumpy(), np.stack([bias, bias]) * 2, rtol=1e-6)
    inner.remove()
    handle.remove()
    np.testing.assert_allclose(compiled(rows(2)).asnumpy(), plain, rtol=1e-6)


def test_training_flag_changes_the_program():
    net = nn.Dropout(p=0.5)
    compiled = ms.jit(net)
    x = Tensor(np.ones(1000, np.float32))
    for training in (True, False, True):
        net.set_train(training)
        assert bool((compiled(x).asnumpy() == 1).all()) is not training
    net.training = False
    assert bool((compiled(x).asnumpy() == 1).all())


def test_a_replaced_part_of_a_network_is_compiled():
    net = nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())
    outer = Line()
    outer.dense = net
    compiled = ms.jit(outer)
    compiled(rows(2))
    net.append(nn.Dense(2, 5))
    assert compiled(rows(2)).shape == (2, 5)
    outer.dense = nn.Dense(3, 7)
    assert compiled(rows(2)).shape == (2, 7)
    outer.dense.weight = Parameter(outer.dense.weight * 0)
    outer.dense.bias.set_data(outer.dense.bias * 0 + 1)
    assert (compiled(rows(2)).asnumpy() == 1).all()


def test_a_longer_list_of_layers_is_compiled():
    class Stack(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = nn.CellList([nn.ReLU()])

        def construct(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    net = Stack()
    compiled = ms.jit(net)
    assert compiled(rows(2)).shape == (2, 3)
    net.layers.append(nn.Dense(3, 4))
    assert compiled(rows(2)).shape == (2, 4)


def test_nested_and_bound_functions():
    @ms.jit
    def inner(x):
        return x * x.shape[0]

    class Thing:
        scale = 3.0

        @ms.jit
        def times(self, x):
            return inner(x) * self.scale

    thing = Thing()
    for n in SIZES:
        np.testing.assert_allclose(thing.times(rows(n)).asnumpy(), rows(n).asnumpy() * n * 3, rtol=1e-6)


# ---- threads


def test_threads_compile_and_run_the_same_network():
    net = Net()
    reference = {n: net(image(n)).asnumpy() for n in range(1, 9)}
    compiled = ms.jit(net)
    wrong = []

    def work(seed):
        for n in np.random.default_rng(seed).permutation(8) + 1:
            for run in (compiled, net):
                try:
                    np.testing.assert_allclose(run(image(n)).asnumpy(), reference[n], rtol=1e-4, atol=1e-5)
                except Exception as error:
                    wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def image(n):
    return Tensor(np.random.default_rng(int(n)).normal(size=(n, 2, 6, 6)).astype(np.float32))


def test_a_parameter_is_read_while_another_thread_captures():
    weight = Parameter(Tensor(np.full(3, 2.0, np.float32)), name="weight")
    inside, done = threading.Event(), threading.Event()
    seen = []

    @ms.jit
    def slow(x):
        y = x * weight
        inside.set()
        done.wait(0.2)
        return y

    def read():
        inside.wait()
        seen.append((weight + 1).asnumpy().tolist())
        seen.append(weight.asnumpy().tolist())
        done.set()

    reader = threading.Thread(target=read)
    reader.start()
    slow(rows(2))
    reader.join()
    assert seen == [[3.0] * 3, [2.0] * 3]


# ---- sizes inside of subscripts and attributes

TABLE = rows(128, 3)


def positions(x):
    return ops.arange(x.shape[0]).astype(ms.float32)[:, None]


def scores(x):
    at = ops.arange(len(x))
    return ops.where(at[:, None] >= at[None], x @ x.T, -1e9)


def written(x):
    y = ops.zeros((128, 3), ms.float32)
    y[: len(x)] = x
    y[2 * len(x) - 1] = x[0]
    return y


OPEN = {
    "slice of a table": lambda x: x + TABLE[: x.shape[0]],
    "slice of a table's end": lambda x: x + TABLE[128 - x.shape[0] :],
    "slice from the end": lambda x: x + TABLE[-x.shape[0] :],
    "slice with a step": lambda x: x[::3] * 2,
    "slice with a step of an open part": lambda x: TABLE[1 : x.shape[0] : 2],
    "slice backwards": lambda x: x[::-2] + x[x.shape[0] - 1],
    "slice with two axes": lambda x: x[x.shape[0] // 2 :, :2],
    "rounded slice": lambda x: TABLE[: (x.shape[0] + 7) // 8 * 8],
    "row of an open number": lambda x: TABLE[x.shape[0] - 1] + x[x.shape[0] // 2],
    "arange": lambda x: x + positions(x),
    "linspace": lambda x: x + ops.linspace(0.0, 1.0, x.shape[0])[:, None],
    "full": lambda x: x + ops.full((x.shape[0], 3), 2.0),
    "zeros": lambda x: x + ops.zeros((2, x.shape[0], 3), ms.float32),
    "tile": lambda x: ops.tile(TABLE[:1], (x.shape[0], 1)) + x,
    "broadcast_to": lambda x: ops.broadcast_to(TABLE[:1], (x.shape[0], 3)) + x,
    "reshape": lambda x: x.reshape(3, x.shape[0]).reshape(-1),
    "pad": lambda x: ops.pad(x, (0, 0, 1, 128 - x.shape[0])),
    "split": lambda x: ops.split(ops.concat([x, x * 2]), x.shape[0])[1],
    "split by parts": lambda x: ops.split(ops.concat([x, x * 2]), (x.shape[0], x.shape[0]))[1],
    "narrow": lambda x: ops.narrow(TABLE, 0, 0, x.shape[0]) + x,
    "strided_slice": lambda x: ops.strided_slice(x, (0, 0), (x.shape[0] - 1, 3), (1, 1)),
    "gather": lambda x: ops.gather(TABLE, ops.arange(x.shape[0]), 0) + x,
    "one_hot": lambda x: ops.one_hot(ops.arange(x.shape[0]), x.shape[0], Tensor(1.0), Tensor(0.0)),
    "tril": lambda x: ops.tril(ops.ones((x.shape[0], x.shape[0]), ms.float32)) @ x,
    "triu": lambda x: ops.triu(ops.ones((x.shape[0], x.shape[0]), ms.float32), 1) @ x,
    "causal mask": scores,
    "mask by position": lambda x: x.masked_fill(ops.arange(x.shape[0])[:, None] > 3, 0.0),
    "written slices": written,
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes_in_subscripts_and_attributes_are_formulas(name):
    compiled = ms.jit(OPEN[name])
    for n in (*range(4, 64, 3), 17, 60):
        np.testing.assert_allclose(
            compiled(rows(n)).asnumpy(), OPEN[name](rows(n)).asnumpy(), rtol=1e-5, atol=1e-6
        )
    assert compiled.cache_info().captures <= 2


@pytest.mark.parametrize("step", [1, 2, 5, -1, -2, -5])
def test_slices_with_open_limits_are_those_of_python(step):
    limits = (None, 0, 1, 3, -1, -3, 60, -60)

    def parts(x):
        n = x.shape[0]
        found = []
        for start in (*limits, n, n - 2, n + 1, -n, -n - 1):
            for stop in (None, 0, 2, -2, n, n // 2, -n, n + 3):
                found.append(TABLE[start:stop:step].sum() + x[start:stop:step].sum())
        return ops.stack(found)

    compiled = ms.jit(parts)
    for n in (20, 16, 17, 24):
        x = rows(n)
        np.testing.assert_allclose(compiled(x).asnumpy(), parts(x).asnumpy(), rtol=1e-4, atol=1e-4)
    assert compiled.cache_info().captures == 2
