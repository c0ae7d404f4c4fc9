"""Variables outside, closures, attributes and classes in compiled functions do what they do in Python."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn

sys.path.insert(0, str(Path(__file__).parent))

from statement_cases import Cases, outcomes

# ruff: noqa: B023

case = Cases()

total = 0
OUTSIDE = types.SimpleNamespace(n=0)


class Kept:
    """Has the attributes that cases give it or its objects."""


@pytest.fixture(autouse=True)
def nothing_is_kept():
    start_anew()


def start_anew():
    global total
    total, OUTSIDE.n = 0, 0
    if hasattr(Kept, "runs"):
        del Kept.runs


@case
def global_write(x):
    global total
    total += 1
    return x + total


@case
def global_write_cond(x):
    global total
    if x > 0:
        total = total + 1
    return x + total


@case
def obj_attr(x):
    OUTSIDE.n += 1
    return x + OUTSIDE.n


@case
def nonlocal_inner(x):
    n = 0

    def add(v):
        nonlocal n
        n = n + v

    add(x)
    add(1)
    return n


@case
def nonlocal_inner_cond(x):
    n = x

    def add(v):
        nonlocal n
        if v > 0:
            n = n + v

    add(x)
    add(x)
    return n


@case
def del_name(x):
    y = x + 1
    z = y
    del y
    return z


@case
def del_used(x):
    y = x + 1
    del y
    try:
        return y
    except NameError:
        return x


@case
def del_item(x):
    l = [x, x + 1, x + 2]
    del l[1]
    return l[1]


@case
def del_attr(x):
    o = Kept()
    o.k = x
    del o.k
    return x + hasattr(o, "k")


@case
def lambda_closure(x):
    k = 1
    f = lambda v: v + k
    k = 10
    return f(x)


@case
def lambda_list(x):
    fs = [lambda v: v + i for i in range(3)]
    return fs[0](x)


@case
def lambda_default(x):
    fs = [lambda v, i=i: v + i for i in range(3)]
    return fs[0](x)


@case
def lambda_cond(x):
    if x > 0:
        f = lambda v: v + 1
    else:
        f = lambda v: v - 1
    return f(x)


@case
def closure_cond(x):
    k = 1

    def f(v):
        return v + k

    if x > 0:
        k = 10
    return f(x)


@case
def class_def(x):
    class A:
        n = 4

        def m(self, v):
            if v > 0:
                return v + self.n
            return v - self.n

    return A().m(x)


@case
def class_attr_write(x):
    class A:
        n = 0

    a = A()
    a.n = x
    a.n += 1
    if x > 0:
        a.n = a.n * 2
    return a.n


@case
def attr_cond_create(x):
    o = Kept()
    if x > 0:
        o.v = x
    else:
        o.v = -x
    return o.v


@case
def obj_method_mutate(x):
    o = Kept()
    o.t = x

    def bump(q):
        if q.t > 0:
            q.t = q.t + 1

    bump(o)
    bump(o)
    return o.t


@case
def import_in(x):
    import math
    from math import pi as p

    return x + math.floor(p)


@case
def recursion_static(x):
    def f(v, n):
        return v if n == 0 else f(v + 1, n - 1)

    return f(x, 3)


@case
def recursion_tensor(x):
    def f(v):
        if v > 0:
            return f(v - 1)
        return v

    return f(x)


@case
def attribute_of_a_class_outside(x):
    Kept.runs = getattr(Kept, "runs", 0) + 1
    return x + Kept.runs


@case
def global_that_keeps_a_tensor(x):
    global total
    total = x + total
    return total


@case
def error_before_a_value_is_needed(x):
    OUTSIDE.n += 1  # once a call, although the capture comes so far, too
    return x + float(x.asnumpy()) + OUTSIDE.n


@case
def attribute_of_an_object_made_inside(x):
    made = types.SimpleNamespace(n=0)
    made.n += 1
    return x + made.n


@pytest.mark.parametrize("function", case, ids=lambda f: f.__name__)
def test_compiled_statements_equal_eager(function):
    found = outcomes(ms.jit(function))
    start_anew()
    assert found == outcomes(function)


@pytest.mark.parametrize("guarded", [False, True])
def test_nonlocal_variables_outside_count_each_call(guarded):
    def counter():
        count = 0

        def count_calls(x):
            nonlocal count
            if not guarded or x > 0:
                count += 1
            return x + count

        return count_calls

    assert outcomes(ms.jit(counter())) == outcomes(counter())


def test_an_attribute_that_only_the_first_call_sets_is_compiled_afterwards():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = None

        @ms.jit
        def construct(self, x):
            if self.scale is None:
                self.scale = len(x) * 2.0
            return x * self.scale

    net = Net()
    for _ in range(3):
        np.testing.assert_array_equal(net(Tensor([1.0, 2.0])).asnumpy(), [4.0, 8.0])
    assert "mul" in type(net).construct.graph()


def test_an_attribute_counts_calls_in_graph_mode():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.last = Tensor(0.0)

        def construct(self, x):
            self.calls += 1
            self.last = x * 2
            return x + self.calls

    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net = Net()
        assert [net(Tensor(v)).item() for v in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
        assert net.calls == 3 and net.last.item() == 6.0
    finally:
        ms.set_context(mode=before)


def test_a_variable_that_a_tensor_condition_deletes_is_refused():
    def f(x):
        y = x + 1
        if x > 0:
            del y
        try:
            return y
        except NameError:
            return x

    with pytest.raises(UnboundLocalError, match="'y'"):
        ms.jit(f)(Tensor(1.0))
