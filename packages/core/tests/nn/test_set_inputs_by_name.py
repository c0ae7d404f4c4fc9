"""`set_inputs` with names declares some arguments and leaves the others as they come."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops


class Net(nn.Cell):
    def construct(self, x, y, z):
        return ops.mul(x, 2) + ops.add(y, z)


@pytest.fixture(autouse=True)
def graph_mode():
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_arguments_that_are_not_named_keep_their_shapes():
    any_matrix = Tensor(shape=[None, None], dtype=ms.float32)
    net = Net()
    for names in ({"y": any_matrix}, {"x": any_matrix, "y": any_matrix}, {"z": any_matrix}):
        net.set_inputs(**names)
        for size in ((2, 3), (4, 1)):
            x = Tensor(np.ones(size, np.float32))
            assert net(x, x, x).asnumpy().tolist() == np.full(size, 4.0).tolist()


def test_arguments_declared_by_position_are_all_expected():
    net = Net()
    net.set_inputs(Tensor(shape=[None], dtype=ms.float32))
    with pytest.raises(ValueError, match="1 arguments were declared, but 3 came"):
        net(*[Tensor([1.0])] * 3)
