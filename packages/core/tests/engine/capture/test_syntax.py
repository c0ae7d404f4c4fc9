"""Python constructs inside compiled functions, with the results that MindSpore gives."""

# ruff: noqa: UP031, UP032  (all ways to format a text are tried)

import functools

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops


def sequences(x):
    pairs = zip((1, 2), (3, 4))
    return pairs, enumerate("ab"), map(lambda a: a + 1, (1, 2)), filter(None, (0, 5)), range(2), len(pairs)


def views(x):
    d = {"a": 1, "b": 2}
    keys = d.keys()
    return keys, d.values(), d.items(), keys[1], d.has_key("a")


def generator(x):
    found = (i * i for i in range(4) if i % 2)
    return found, len(found), next(i for i in (7, 8))


def formatted(x):
    return f"{x.ndim}-{3:03d}", "%s|%d" % ("a", 2), "{} {k}".format(1, k="z"), str((1, 2))


def loops_with_else(x):
    n = 0
    for i in range(3):
        n += i
    else:
        n += 10
    while n < 15:
        n += 1
    else:
        n += 100
    return n


def loop_else_after_break(x):
    n = 0
    for i in range(3):
        n += i
        if i == 1:
            break
    else:
        n += 10
    return n


@pytest.mark.parametrize(
    "function, expected",
    [
        (sequences, (((1, 3), (2, 4)), ((0, "a"), (1, "b")), (2, 3), [5], (0, 1), 2)),
        (views, (("a", "b"), (1, 2), [("a", 1), ("b", 2)], "b", True)),
        (generator, ([1, 9], 2, 7)),
        (formatted, ("1-003", "a|2", "1 z", "(1, 2)")),
        (loops_with_else, 115),
        (loop_else_after_break, 1),
    ],
)
def test_values_of_constants(function, expected):
    assert ms.jit(function)(Tensor([1.0, 2.0])) == expected


def other_shape(x):
    if x.sum() > 0:
        y = x[:1]
    else:
        y = x
    return y * 2


def nothing_or_tensor(x):
    if x.sum() > 0:
        return x[:1] * 2
    return None


def one_of_two_functions(x):
    if x.sum() > 0:
        f = ops.relu
    else:
        f = functools.partial(ops.mul, x)
    return f(x)[:1] * 2


def recursive(x):
    def halve(v):
        if v.sum() < 2:
            return v
        return halve(v / 2)

    return halve(x)[:1] * 16 / 3


@pytest.mark.parametrize("function", [other_shape, nothing_or_tensor, one_of_two_functions, recursive])
def test_what_only_python_can_do_runs_as_python(function):
    result = ms.jit(function)(Tensor([3.0, 5.0]))
    assert result.asnumpy().tolist() == [6.0 if function is not recursive else 2.0]
    with pytest.raises(ms.errors.CaptureError):
        ms.jit(function, fullgraph=True)(Tensor([3.0, 5.0]))


def test_branches_of_other_types_and_missing_values_have_the_usual_error_types():
    def other_dtype(x):
        if x > 0:
            y = x
        else:
            y = x.astype(ms.int32)
        return y + 1

    def one_side(x):
        if x > 0:
            y = x
        return y

    with pytest.raises(TypeError, match="'y'"):
        ms.jit(other_dtype)(Tensor(1.0))
    with pytest.raises(UnboundLocalError, match="'y'"):
        ms.jit(one_side)(Tensor(1.0))


def test_and_or_give_one_of_their_operands():
    @ms.jit
    def f(a, b):
        return a and b, b or a

    assert [v.item() for v in f(Tensor(0.0), Tensor(3.0))] == [0.0, 3.0]
    assert [v.item() for v in f(Tensor(2.0), Tensor(3.0))] == [3.0, 3.0]


def test_print_writes_as_graphs_do(capsys):
    @ms.jit(fullgraph=True)
    def f(x, s):
        print("x", x, (1, [2]))
        print(f"sum {x.sum()}", "%s!" % s, "{:.1f}".format(3))
        print({"k": s})

    f(Tensor([1.0, 2.0]), Tensor(5))
    assert capsys.readouterr().out.splitlines() == [
        "x",
        "Tensor(shape=[2], dtype=Float32, value=[ 1.00000000e+00  2.00000000e+00])",
        "(1, (2))",
        "sum 3.0",
        "5!",
        "3.0",
        "5",
    ]


def test_tensor_kept_in_an_attribute_is_that_of_each_run():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.last = 0
            self.weight = ms.Parameter(Tensor(3.0), name="w")

        @ms.jit
        def construct(self, x):
            self.last = x + 1
            return x

        @ms.jit
        def number(self):
            self.weight = 7
            return self.weight * 2

    net = Net()
    for value in (1.0, 4.0):
        net(Tensor(value))
        assert net.last.item() == value + 1
    assert net.number().item() == 14.0 and net.weight.asnumpy() == np.float32(7)


def test_generator_functions_are_refused_with_advice():
    @ms.jit
    def f(x):
        yield x

    with pytest.raises(RuntimeError, match="return a list"):
        f(Tensor(1.0))


def test_map_of_lists_is_a_list():
    @ms.jit
    def f():
        return map(lambda a, b: a + b, [1, 2], [3, 4]), map(lambda a: a * 2, (1, 2))

    assert f() == ([4, 6], (2, 4))


def test_numpy_arrays_of_one_element_are_numbers():
    @ms.jit
    def f(x):
        return x * int(np.array([3])) + float(np.array([[0.5]]))

    assert f(Tensor([2.0])).asnumpy().tolist() == [6.5]


OFFSET = 10


def test_a_variable_is_the_module_s_until_the_function_sets_it():
    @ms.jit
    def f(x):
        for i in (1, 2):
            OFFSET += i  # noqa: F823
        return x + OFFSET

    assert f(Tensor(1)) == 14 and OFFSET == 10
