"""Lists, dicts and tuples that branches and rounds of loops change: values and gradients."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops


def rotated_in_nested_loops(x, n):
    a, b = x * 1.5, x - 1.0
    pair, table = [x * 2.0, x - 3.0], {"k": x * 0.1, "m": x + 1.1}
    i = n * 0
    while i < n:
        i = i + 1
        j = n * 0
        while j < 2:
            j = j + 1
            if table["m"] < a * b:
                pair = [pair[1], b * x]
            else:
                table = {"k": a * x, "m": table["k"]}
            a, b = b, a
    return a + 2 * b + 3 * table["k"] + 5 * table["m"] + 7 * pair[0] + 11 * pair[1]


def nested(x, n):
    rows = [[x, x * 3], {"z": (x, x * 2)}]
    for _ in range(n):
        if x > 0:
            rows[0][1] = rows[0][1] * x
        else:
            rows[1]["z"] = rows[1]["z"][::-1]
            rows[0].append(rows[0].pop(0) * 2)
    return rows[0][0] + 10 * rows[0][1] + 100 * rows[1]["z"][0]


def taken_out(x, n):
    items, table = [x, x * 3], {"a": x * n, "b": x * 5}
    if x > 0:
        last = items.pop() * table.pop("b")
        del table["a"]
    else:
        last = items.pop(0) + sum([table.pop(k) for k in ("a", "b")])
    return last + 10 * items[0] + len(items) + len(table)


def taken_out_in_an_expression(x, n):
    items, rows = [x, x * 3, x * 5], {"a": [x, x * 7]}
    value = items.pop() if x > 0 else items.pop(0) * rows["a"].pop() + len([rows["a"].append(x * 9)])
    return value + 10 * items[0] + 100 * items[1] + 1000 * rows["a"][1]


def changed_by_a_call(x, n):
    def scale(row, by):
        row[0] = row[0] * by

    rows = [[x, x * 3], [x * x]]
    i = n * 0
    while i < n:
        i = i + 1
        if x > 0:
            scale(rows[0], x)
        scale(row=rows[1], by=2)
    return rows[0][0] + 10 * rows[1][0]


def found_or_set(x, n):
    table = {"a": x * 2}
    if x > 0:
        value = table.setdefault("b", x * 3)
    else:
        value = table.setdefault("a", x) * n
        table["b"] = x * x
    return value + 10 * table["b"]


@pytest.mark.parametrize(
    "function",
    [
        rotated_in_nested_loops,
        nested,
        taken_out,
        taken_out_in_an_expression,
        changed_by_a_call,
        found_or_set,
    ],
)
def test_values_and_gradients(function):
    compiled = ms.jit(function, fullgraph=True)
    step = 1e-3
    for at in (-1.2, 0.7):
        for n in (1, 3):
            rounds = Tensor(n)

            def value(x, f=function, rounds=rounds):
                return float(f(Tensor(x, ms.float64), rounds))

            x = Tensor(at, ms.float64)
            slope = (value(at + step) - value(at - step)) / (2 * step)
            assert value(at, compiled) == pytest.approx(value(at), rel=1e-6)
            assert float(ms.grad(function)(x, rounds)) == pytest.approx(slope, rel=1e-4)
            assert float(ms.grad(compiled)(x, rounds)) == pytest.approx(slope, rel=1e-4)


def test_keys_in_another_order_are_told():
    @ms.jit(fullgraph=True)
    def f(x):
        table = {"k": x, "m": x}
        if x > 0:
            table = {"m": x, "k": x}
        return table["k"]

    with pytest.raises(TypeError, match="a dict of 'm', 'k' .* a dict of 'k', 'm'"):
        f(Tensor(1.0))


def test_expression_whose_parts_leave_lists_of_other_lengths():
    @ms.jit(fullgraph=True)
    def f(x):
        items = [x, x]
        value = items.pop() if x > 0 else x
        return value + items[0]

    with pytest.raises(TypeError, match="a list of 1 in the one and a list of 2 in the other"):
        f(Tensor(1.0))


class Counting(nn.Cell):
    """An attribute that is no Parameter, and one that is, under conditions in a loop."""

    def __init__(self):
        super().__init__()
        self.last = Tensor(0.5)
        self.weight = ms.Parameter(Tensor(1.0), name="weight")

    def note(self, x):
        return x

    def construct(self, x):
        i = x * 0
        while i < 3:
            i = i + 1
            if x > 0:
                self.last = self.last * 0.5 + x
                self.note(x)
            else:
                self.weight = self.weight + self.last
        return self.last + ops.square(x) * self.weight


def test_attributes_under_conditions_in_a_loop():
    plain, compiled = Counting(), Counting()
    call = ms.jit(compiled)
    for at in (1.0, -1.0, 3.0, -2.0):
        x = Tensor(at)
        np.testing.assert_allclose(float(call(x)), float(plain(x)), rtol=1e-6)
        np.testing.assert_allclose(float(ms.grad(call)(x)), float(ms.grad(plain)(x)), rtol=1e-6)
        assert float(compiled.last) == pytest.approx(float(plain.last))
        assert float(compiled.weight) == pytest.approx(float(plain.weight))


def test_parameter_given_to_another_parameters_attribute():
    """The attribute becomes the other one; in a graph, as in MindSpore's, the Parameter takes the value."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = ms.Parameter(Tensor(0.5), name="p")
            self.q = ms.Parameter(Tensor(-0.5), name="q")

        def construct(self, x):
            self.p = self.q if x < 0 else x * 2.0
            return self.p * x

    plain, compiled = Net(), Net()
    assert float(ms.jit(compiled)(Tensor(-1.0))) == float(plain(Tensor(-1.0))) == 0.5
    assert plain.p is plain.q
    assert compiled.p is not compiled.q and float(compiled.p) == -0.5
