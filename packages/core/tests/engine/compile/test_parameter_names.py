"""Two Parameters of one name in a graph."""

import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn


def _named(name):
    return Parameter(Tensor([1.0, 2.0]), name=name)


class Scaled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.scale = _named("scale")

    @ms.jit
    def construct(self, x):
        return x * self.scale


first, second = _named("one"), _named("one")


@ms.jit
def from_outside():
    return first + second


@ms.jit
def pair(x, y):
    return x, y


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (from_outside, (), "one"),
        (pair, (first, second), "one"),
        (Scaled(), (_named("scale"),), "scale"),
    ],
)
def test_are_an_error(function, arguments, name):
    for kind in (ValueError, RuntimeError):
        with pytest.raises(kind, match=f"its name '{name}' already exists"):
            function(*arguments)


def test_without_names_or_as_one_they_are_none():
    x, y = Parameter(Tensor([1.0])), Parameter(Tensor([2.0]))
    assert [p.asnumpy().tolist() for p in pair(x, y)] == [[1.0], [2.0]]
    assert [p.asnumpy().tolist() for p in pair(first, first)] == [[1.0, 2.0]] * 2
    net = Scaled()
    assert net(net.scale).asnumpy().tolist() == [1.0, 4.0]
