"""Networks whose inputs have open sizes: a file computes from the sizes that come, and none is written as -1.

That MindSpore 2.10 loads these files with the same results was checked with MindSpore for every network here.
"""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.io import mindir

NETWORKS, REFUSED = [], []


def network(function):
    NETWORKS.append(pytest.param(function, id=function.__name__))
    return function


def refused(expression):
    def enter(function):
        REFUSED.append(pytest.param(function, expression, id=function.__name__))
        return function

    return enter


@network
def divided_by_a_size_(x):
    return x.sum(0) / x.shape[0]


@network
def full_(x):
    return ops.full((x.shape[0], 3), 2.0)


@network
def zeros_(x):
    return ops.zeros((x.shape[0], 3), ms.float32)


@network
def ones_(x):
    return ops.ones((x.shape[0],), ms.float32)


@network
def arange_(x):
    return ops.arange(x.shape[0])


@network
def eye_(x):
    return ops.eye(x.shape[0], x.shape[0], ms.float32)


@network
def tile_(x):
    return ops.tile(x, (x.shape[0], 1))


@network
def repeat_(x):
    return x.repeat(x.shape[0], 1)


@network
def one_hot_(x):
    return ops.one_hot(ops.arange(x.shape[0]), x.shape[0] + 1, 1.0, 0.0)


@network
def pad_(x):
    return ops.pad(x, (0, 0, 0, x.shape[0]))


@network
def slices_(x):
    return (x[1 : x.shape[0] - 1], x[: x.shape[0] // 2], x[:4], x[-2:], x[1:] - x[:-1])


@network
def rows_(x):
    return x[-1] + x[0]


@network
def reshape_(x):
    return (x.reshape(x.shape[0] * 2, 1), x.view(-1, x.shape[0]), x.flatten())


@network
def broadcast_to_(x):
    return ops.broadcast_to(x.sum(0), (x.shape[0], 2))


@network
def expanded_(x):
    return x.expand_dims(0).broadcast_to((x.shape[0], -1, 2))


@network
def shape_as_tensor_(x):
    return (ops.dyn_shape(x) * 2, ops.TensorShape()(x) + 1)


@network
def ops_shape_(x):
    return x.reshape(ops.shape(x)[0] * 2, -1)


@network
def len_(x):
    return x * len(x.shape) + len(x)


@network
def arithmetic_(x):
    return x * (x.shape[0] + x.shape[1] * 3 - 1) + x.shape[0] // 2 - x.shape[0] % 3


@network
def fractions_(x):
    return x * (x.shape[0] / 4) + x.size**0.5 / float(x.shape[0])


@network
def min_and_max_(x):
    return x * min(x.shape[0], 4) + max(x.shape[0], 3)


@network
def a_size_as_result_(x):
    return (x, x.shape[0], x.shape[0] * 2 + 1)


@network
def a_size_as_tensor_(x):
    return x + Tensor(x.shape[0], ms.float32)


@network
def a_condition_(x):
    return x * 2 if x.shape[0] > 3 else x - 1


@network
def sizes_in_branches_(x):
    return x[:2] if x.shape[0] > 3 and x.shape[1] == 2 else x[: x.shape[0] - 1]


@network
def sizes_of_other_shapes_(x):
    return ops.zeros_like(x[1:]) + ops.ones(x[1:].shape, ms.float32)


@network
def size_of_the_data_(x):
    return ops.nonzero(x).shape[0] * x


@network
def attention_(x):
    return ops.softmax(ops.matmul(x, x.T) / x.shape[0] ** 0.5, -1) @ x


@network
def mask_(x):
    return ops.tril(ops.ones((x.shape[0], x.shape[0])))


@network
def running_mean_(x):
    return x.cumsum(0) / ops.arange(1, x.shape[0] + 1).reshape(x.shape[0], 1)


@refused("x.shape[0]")
def a_list_of_tensors(x):
    return ops.split(x, 1)[0]


@refused("x.shape[0] % 2")
def an_index_of_a_list(x):
    return [x, x * 2][x.shape[0] % 2]


@refused("x.shape[0]")
def rows_one_by_one(x):
    return sum([row for row in x])


@refused("x.shape[0]")
def a_key(x):
    return {1: x, 2: x * 2}[x.shape[0]]


@refused("x.shape[0] == 3")
def a_shape_compared_as_a_tuple(x):
    return x if x.shape == (3, 2) else x + 1


class Net(nn.Cell):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def construct(self, x):
        return self.body(x)


class Rounds(nn.Cell):
    """A loop over rows, and a Parameter that takes what follows from a size."""

    def __init__(self):
        super().__init__()
        self.rows = Parameter(Tensor(0, ms.int64), name="rows")

    def construct(self, x):
        total = ops.zeros((2,), ms.float32)
        for i in range(x.shape[0]):
            total = total + x[0] * i
        ops.assign_add(self.rows, Tensor(x.shape[0], ms.int64))
        return total, self.rows + 0


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [np.asarray(value)]


def rows(count):
    return Tensor(np.random.default_rng(count).normal(size=(count, 2)).astype(np.float32))


def exported(tmp_path, net):
    path = str(tmp_path / "net.mindir")
    ms.export(net, Tensor(shape=[None, 2], dtype=ms.float32), file_name=path, file_format="MINDIR")
    return path


@pytest.mark.parametrize("body", NETWORKS)
def test_a_file_computes_from_the_sizes_that_come(tmp_path, body):
    net = Net(body)
    graph = nn.GraphCell(ms.load(exported(tmp_path, net)))
    for count in (1, 2, 4, 5, 9):
        for got, want in zip(flat(graph(rows(count))), flat(net(rows(count))), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_loops_over_an_open_size_and_updates_with_it(tmp_path):
    net = Rounds()
    graph = nn.GraphCell(ms.load(exported(tmp_path, Rounds())))
    for count in (1, 3, 6):
        for got, want in zip(flat(graph(rows(count))), flat(net(rows(count))), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_sizes_are_read_by_the_operators_that_mindspore_writes(tmp_path):
    model = mindir.load_mindir(exported(tmp_path, Net(lambda x: x.reshape(x.shape[0] * 2, 1))))
    kinds = {p.op_type for p in model.primitives}
    assert kinds == {"Shape", "TupleGetItem", "ScalarMul", "MakeTuple", "Reshape"}


@pytest.mark.parametrize("body, expression", REFUSED)
def test_what_needs_a_number_is_refused_with_the_expression_and_the_line(tmp_path, body, expression):
    with pytest.raises((RuntimeError, ValueError)) as error:
        exported(tmp_path, Net(body))
    assert expression in str(error.value)
    assert "test_mindir_open_sizes.py" in str(error.value)
    assert not list(tmp_path.iterdir())
