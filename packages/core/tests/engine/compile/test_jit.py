"""`jit` and graph mode: signatures, structures, Cells, settings."""

import collections
import gc
import weakref

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def traced_times(function):
    """`function` with a counter of how often it was captured."""

    captures = []

    def counting(*args, **kwargs):
        captures.append(1)
        return function(*args, **kwargs)

    counting.captures = captures
    return counting


# ---- signatures


def test_compiled_once_per_signature():
    f = traced_times(lambda x, k=1: x * k)
    compiled = ms.jit(f)
    compiled(Tensor(X)), compiled(Tensor(X + 1))
    assert len(f.captures) == 1
    compiled(Tensor(X[:1]))
    assert len(f.captures) == 2
    compiled(Tensor(X.astype(np.float64)))
    assert len(f.captures) == 3
    assert compiled(Tensor(X), 3).asnumpy().tolist() == (X * 3).tolist()
    assert compiled(Tensor(X), k=3).asnumpy().tolist() == (X * 3).tolist()
    assert len(f.captures) == 5
    compiled(Tensor(X), 3)
    assert len(f.captures) == 5


def test_numbers_that_compare_equal_are_different_constants():
    compiled = ms.jit(lambda x, k: x * k)
    kinds = [compiled(Tensor(np.array([3], np.int32)), k).dtype for k in (1, 1.0, True)]
    assert kinds == [ms.int32, ms.float32, ms.int32]
    signs = [ms.jit(lambda k: Tensor(np.zeros(1, np.float32)) + k) for _ in range(1)][0]
    assert str(signs(0.0)) == str(signs(0.0))


def test_structures_go_in_and_out():
    Pair = collections.namedtuple("Pair", "a b")

    @ms.jit
    def f(batch, scale, *rest, mode="plain"):
        a, (b, c) = batch["a"], batch["more"]
        return {"sum": a + b * scale, "pair": Pair(c, [rest[0], mode, None, 7])}, rest

    batch = {"a": Tensor(X), "more": (Tensor(X * 2), Tensor(1.0))}
    out, rest = f(batch, 2, Tensor(5.0), mode="other")
    np.testing.assert_array_equal(out["sum"].asnumpy(), X * 5)
    assert isinstance(out["pair"], Pair) and out["pair"].b[1:] == ["other", None, 7]
    assert out["pair"].b[0].item() == rest[0].item() == 5.0


def test_functions_without_tensors_and_without_results():
    assert ms.jit(lambda: 5)() == 5
    assert ms.jit(lambda x: None)(Tensor(X)) is None
    np.testing.assert_array_equal(ms.jit(lambda: ops.ones((2, 3)))().asnumpy(), np.ones((2, 3)))


def test_closure_and_global_tensors_are_constants_and_parameters_inputs():
    offset = Tensor(X)
    weight = Parameter(X * 2, name="w")
    compiled = ms.jit(lambda x: x + offset + weight)
    np.testing.assert_array_equal(compiled(Tensor(X)).asnumpy(), X * 4)
    weight.set_data(Tensor(X * 3))
    np.testing.assert_array_equal(compiled(Tensor(X)).asnumpy(), X * 5)


def test_parameter_as_argument():
    weight = Parameter(X, name="w")
    compiled = ms.jit(lambda p, x: p * x)
    np.testing.assert_array_equal(compiled(weight, Tensor(X)).asnumpy(), X * X)
    assert weight.traced is None


def test_jit_inside_jit_is_one_graph():
    inner = ms.jit(lambda x: x * 2 if x.sum() > 0 else x)
    outer = ms.jit(lambda x: inner(x) + inner(-x))
    np.testing.assert_array_equal(outer(Tensor(X)).asnumpy(), X)


def test_results_do_not_share_memory_that_the_next_run_overwrites():
    compiled = ms.jit(lambda x: ((x + 1) * 2, (x + 1).reshape((3, 2))))
    first = compiled(Tensor(X))
    compiled(Tensor(X * 100))
    np.testing.assert_array_equal(first[0].asnumpy(), (X + 1) * 2)
    np.testing.assert_array_equal(first[1].asnumpy(), (X + 1).reshape(3, 2))


def test_wraps_name_and_signature():
    @ms.jit
    def documented(x, y=2):
        """Doc."""
        return x

    import inspect

    assert documented.__name__ == "documented" and documented.__doc__ == "Doc."
    assert list(inspect.signature(documented).parameters) == ["x", "y"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"capture_mode": "asts"}, ValueError),
        ({"jit_level": "O7"}, ValueError),
        ({"dynamic": 2}, ValueError),
        ({"fullgraph": 1}, TypeError),
    ],
)
def test_wrong_options(options, error):
    with pytest.raises(error, match=next(iter(options))):
        ms.jit(lambda x: x, **options)


def test_options_of_mindspore_are_taken():
    for options in (
        {"capture_mode": "trace"},
        {"jit_level": "O1", "fullgraph": True},
        {"backend": "ms_backend"},
    ):
        f = ms.jit(lambda x: x + 1, **options)
        assert f(Tensor(1.0)).item() == 2.0
    with pytest.raises(TypeError):
        ms.jit(5)


def test_disable_jit_runs_python():
    f = traced_times(lambda x: x + 1)
    compiled = ms.jit(f)
    with ms.config.context(disable_jit=True):
        compiled(Tensor(1.0)), compiled(Tensor(1.0))
    assert len(f.captures) == 2


# ---- Cells


class Scale(nn.Cell):
    def __init__(self, factor):
        super().__init__()
        self.factor = Parameter(Tensor(float(factor)), name="factor")

    def construct(self, x):
        if self.training:
            return x * self.factor * 10
        if x.sum() > 100:
            return x
        return x * self.factor


class Outer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = Scale(2)
        self.layers = nn.SequentialCell(Scale(3), Scale(4))

    def construct(self, x):
        return self.layers(self.inner(x))


@pytest.fixture
def graph_mode():
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_graph_mode_compiles_cells(graph_mode):
    np.testing.assert_array_equal(Outer()(Tensor(X)).asnumpy(), X * 24)


def test_training_flag_is_part_of_the_signature(graph_mode):
    net = Outer()
    np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), X * 24)
    net.inner.set_train()
    np.testing.assert_array_equal(net(Tensor(X * 0.1)).asnumpy(), np.float32(0.1) * X * 2 * 10 * 12)
    net.set_train(False)
    np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), X * 24)


def test_jit_on_methods_cells_and_classes():
    class Net(nn.Cell):
        def __init__(self, k):
            super().__init__()
            self.k = k

        @ms.jit
        def construct(self, x):
            return x * self.k

        @ms.jit
        def other(self, x):
            return x + self.k

    one, two = Net(1), Net(2)
    assert [n(Tensor(3.0)).item() for n in (one, two)] == [3.0, 6.0]
    assert [n.other(Tensor(3.0)).item() for n in (one, two)] == [4.0, 5.0]

    class Plain(nn.Cell):
        def construct(self, x):
            return -x if x > 0 else x

    assert ms.jit(Plain())(Tensor(3.0)).item() == -3.0
    assert ms.jit(Plain)()(Tensor(3.0)).item() == -3.0
    assert ms.jit(Plain().construct)(Tensor(3.0)).item() == -3.0


def test_compiled_methods_do_not_keep_their_cell_alive():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(2.0), name="w")

        @ms.jit
        def construct(self, x):
            return x * self.w

    net = Net()
    net(Tensor(1.0))
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


def test_hooks_run_in_graph_mode(graph_mode):
    net = Scale(2)
    net.register_forward_pre_hook(lambda cell, args: (args[0] + 1,))
    assert net(Tensor(3.0)).item() == 8.0


def test_gradient_of_a_cell_in_graph_mode(graph_mode):
    net = Scale(2)
    value, (dx, dw) = ms.value_and_grad(net, 0, net.trainable_params())(Tensor(X))
    np.testing.assert_array_equal(value.asnumpy(), X * 2)
    np.testing.assert_array_equal(dx.asnumpy(), np.full((2, 3), 2.0))
    assert dw[0].item() == X.sum()


def test_compile_ahead(graph_mode):
    net = Scale(2)
    net.compile(Tensor(X))
    np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), X * 2)


# ---- sizes that depend on data


def positive_sum(x):
    y = x[x > 2]
    return (y * y).sum() + y.shape[0]


def test_function_with_sizes_that_depend_on_data_runs_as_python():
    compiled = ms.jit(positive_sum)
    for data in (X, X * 2):
        assert compiled(Tensor(data)).item() == positive_sum(Tensor(data)).item()
    gradient = ms.jit(ms.grad(positive_sum))(Tensor(X))
    np.testing.assert_array_equal(gradient.asnumpy(), np.where(X > 2, 2 * X, 0))


def test_fullgraph_forbids_running_as_python():
    with pytest.raises(ms.errors.CaptureError, match="depends on the data"):
        ms.jit(positive_sum, fullgraph=True)(Tensor(X))


def test_loop_that_grows_a_tensor_runs_as_python():
    def f(x):
        while x.sum() < 100:
            x = ops.concat((x, x + 1))
        return x

    np.testing.assert_array_equal(ms.jit(f)(Tensor(X)).asnumpy(), f(Tensor(X)).asnumpy())


def test_sparse_tensors_made_inside_are_returned():
    where, shape = Tensor([[0, 1], [1, 2]], ms.int32), (2, 3)

    @ms.jit
    def scaled(values):
        return ms.COOTensor(where, values * 2, shape), values

    coo, _ = scaled(Tensor([1.0, 2.0]))
    assert isinstance(coo, ms.COOTensor) and coo.shape == shape
    assert coo.to_dense().asnumpy().tolist() == [[0, 2, 0], [0, 0, 4]]


def test_strict_syntax_is_about_the_users_code():
    ones = ms.jit(lambda size: ops.ones(size, ms.float32))
    with ms.config.context(jit_syntax_level=ms.STRICT):
        assert ones(Tensor([2, 3])).shape == (2, 3)  # a size that depends on data: runs as Python
        with pytest.raises(RuntimeError, match="asnumpy"):
            ms.jit(lambda x: x.asnumpy())(Tensor([2, 3]))


@pytest.mark.parametrize("container", [[1, 2], {"a": 1}])
def test_container_that_holds_itself_is_refused(container):
    if isinstance(container, list):
        container.append([container])
    else:
        container["b"] = container
    with pytest.raises(RuntimeError, match="holds itself"):
        ms.jit(lambda value: value)(container)
