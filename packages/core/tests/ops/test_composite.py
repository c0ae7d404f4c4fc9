"""Gradients as objects, maps over nests, overloads by type, loops made of functions."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, ParameterTuple, Tensor, nn, ops
from mycelia.ops import functional as F

X, Y = Tensor([1.0, 2.0]), Tensor([3.0, 5.0])
SENS = Tensor([1.0, 10.0])


class Scaled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([2.0, 4.0]), name="w")
        self.b = Parameter(Tensor(1.0), name="b")

    def construct(self, x, y):
        return x * y * self.w + self.b


def values(found):
    """Nested tuples of Tensors as nested lists."""
    if isinstance(found, (tuple, list)):
        return [values(f) for f in found]
    return found.asnumpy().tolist() if isinstance(found, Tensor) else found


OF_X, OF_Y, OF_W = [6.0, 20.0], [2.0, 8.0], [3.0, 10.0]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, OF_X),
        ({"get_all": True}, [OF_X, OF_Y]),
        ({"get_by_list": True}, [OF_W, 2.0]),
        ({"get_all": True, "get_by_list": True}, [[OF_X, OF_Y], [OF_W, 2.0]]),
        ({"sens_param": True}, [6.0, 200.0]),
        ({"get_all": True, "sens_param": True}, [[6.0, 200.0], [2.0, 80.0]]),
    ],
)
def test_grad_operation(flags, expected, compiled):
    net = Scaled()
    weights = ParameterTuple(net.trainable_params())
    operation = ops.GradOperation(**flags)

    def gradient(*args):
        return operation(net, weights)(*args)

    run = ms.jit(gradient) if compiled else gradient
    assert values(run(X, Y, SENS) if flags.get("sens_param") else run(X, Y)) == expected


def test_grad_operation_without_weights_takes_the_trainable_ones():
    net = Scaled()
    net.b.requires_grad = False
    assert values(ops.GradOperation(get_by_list=True)(net)(X, Y)) == [OF_W]


def test_grad_operation_nests_and_takes_keywords():
    cube = lambda x, y: x * x * x * y
    once = ops.GradOperation()
    assert values(once(once(cube))(X, Y)) == [18.0, 60.0]
    assert values(ops.GradOperation(get_all=True)(cube)(X, y=Y)) == [[9.0, 60.0], [1.0, 8.0]]
    assert values(ops.GradOperation(sens_param=True)(cube)(X, Y, sens=SENS)) == [9.0, 600.0]
    assert values(ops.GradOperation(get_all=True)(lambda x, k: x * k)(X, 3)) == [[3.0, 3.0]]


def test_grad_operation_checks_its_flags():
    with pytest.raises(TypeError, match="'get_all' should be bool"):
        ops.GradOperation(get_all=1)


double = ops.MultitypeFuncGraph("double")


@double.register("Tensor")
def _(x):
    return x * 2


@double.register("Number")
def _(x):
    return x + 100


@double.register("Tuple")
def _(x):
    return len(x)


@double.register("None")
def _(x):
    return 7


@double.register("Number", "Tensor")
def _(k, x):
    if x.sum() > 5:
        return x * k
    return x


def test_the_body_is_chosen_by_type():
    assert values(double(X)) == [2.0, 4.0]
    assert [double(3), double(2.5), double((1, 2, 3)), double(None)] == [103, 102.5, 3, 7]
    with pytest.raises(ValueError, match="no body for"):
        double("text")
    with pytest.raises(TypeError, match="numpy"):
        double(np.ones(2))
    with pytest.raises(TypeError, match="by its name or dtype"):
        double.register(3)
    with pytest.raises(RuntimeError, match="no type named 'Foo'"):
        double.register("Foo")


@pytest.mark.parametrize("compiled", [False, True])
def test_maps_over_nests(compiled):
    run = ms.jit if compiled else lambda f: f
    assert values(run(lambda a, b: ops.HyperMap(double)((a, (b, [a]))))(X, Y)) == [
        [2.0, 4.0], [[6.0, 10.0], [[2.0, 4.0]]],
    ]  # fmt: skip
    assert values(run(lambda a, b: ops.HyperMap()(ops.partial(double, 3), (a, b)))(X, Y)) == [
        [1.0, 2.0], [9.0, 15.0],
    ]  # fmt: skip
    assert values(run(lambda a, b: ops.hyper_add((a, (b, 1)), (b, (a, 2))))(X, Y)) == [
        [4.0, 7.0], [[4.0, 7.0], 3],
    ]  # fmt: skip
    assert values(run(lambda a, b: ops.Map()(F.tensor_sub, [a, b], [b, a]))(X, Y)) == [
        [-2.0, -3.0], [2.0, 3.0],
    ]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
def test_loops_made_of_functions(compiled):
    def doubled_until(x, limit):
        return ops.WhileLoop()(lambda v: v.sum() < limit, lambda v: v * 2, x)

    def powers(x):
        return ops.ForiLoop()(0, 3, lambda i, v: v * x + i, x)

    def running(x):
        return ops.Scan()(lambda total, row: (total + row, total * 10), Tensor(0.0), [x[0], x[1]])

    run = ms.jit if compiled else lambda f: f
    assert values(run(doubled_until)(X, Tensor(20.0))) == [8.0, 16.0]
    assert values(run(powers)(X)) == [4.0, 20.0]
    total, rows = run(running)(Y)
    assert values(total) == 8.0 and values(rows) == [0.0, 30.0]
    with pytest.raises(TypeError, match="loop_func must be callable"):
        ops.WhileLoop()(len, 3, X)


def test_flags_and_partial():
    def f(x, y):
        return x - y

    assert ops.add_flags(f, a=1)._func_graph_flags == {"a": 1}
    assert values(ops.Partial()(f, X)(Y)) == [-2.0, -3.0]
    with pytest.raises(TypeError, match="must be callable"):
        ops.Partial()(3, X)


def test_functional_names():
    assert F.tuple_getitem((4, 5), 1) == 5 and F.tuple_setitem((4, 5), 1, 6) == (4, 6)
    assert values(F.depend(X, Y)) == [1.0, 2.0]
    assert F.broadcast_gradient_args((2, 3), (3,)) == ((), (0,))
    cast = F.mixed_precision_cast(ms.float16, (X, [Tensor([1])], 3))
    assert cast[0].dtype is ms.float16 and cast[1][0].dtype is ms.int64 and cast[2] == 3
    assert F.grad is ops.grad and F.tensor_add is ops.add
    with pytest.raises(AttributeError, match="no attribute 'nothing_like_it'"):
        F.nothing_like_it  # noqa: B018


def test_jet_and_derivative():
    cube = lambda x: x * x * x
    series = Tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    value, slopes = ops.jet(cube, X, series)
    assert values(value) == [1.0, 8.0] and values(slopes) == [[3.0, 12.0], [6.0, 12.0], [6.0, 6.0]]
    assert values(ops.derivative(cube, X, 2)) == [[1.0, 8.0], [6.0, 12.0]]
    assert values(ops.derivative(lambda x, y: x * y, (X, Y), 2)[1]) == [2.0, 2.0]
    with pytest.raises(ValueError, match="at least 1"):
        ops.derivative(cube, X, 0)


def test_linearize_and_jacobians_of_several_outputs():
    f = lambda x, y: (x * y, x + y)
    value, directional = ops.linearize(f, (X, Y))
    assert values(value) == [[3.0, 10.0], [4.0, 7.0]]
    assert values(directional((SENS, X))) == [[4.0, 54.0], [2.0, 12.0]]
    diagonal = lambda a, b: [[a, 0.0], [0.0, b]]
    of_both = [[diagonal(3.0, 5.0), diagonal(1.0, 2.0)], [diagonal(1.0, 1.0), diagonal(1.0, 1.0)]]
    assert values(ms.jacrev(f, (0, 1))(X, Y)) == of_both
    assert values(ms.jacfwd(f, (0, 1))(X, Y)) == of_both
