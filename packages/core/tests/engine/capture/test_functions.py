"""Calls, closures, classes and objects around control flow on tensors: as the plain function has it."""

import contextlib
import functools
import sys
from pathlib import Path

import pytest

import mycelia as ms
from mycelia import Tensor

sys.path.insert(0, str(Path(__file__).parent))

from scalar_cases import assert_compiled_equals_eager, cases, scalar


def helper(x):
    if x > 3:
        return x * 3
    return x


def calls_helper(x):
    return helper(x) + helper(x + 2)


def nested_function(x):
    scale = x + 1

    def inner(t):
        if t > 2:
            return t * scale
        return -t

    return inner(x) + inner(x + 1)


def lambda_function(x):
    pick = lambda t: t if t > 1 else t * 5
    return pick(x) + pick(x * 2)


def recursion_on_python_value(x, depth=3):
    if depth == 0:
        return x
    if x > 4:
        return recursion_on_python_value(x - 1, depth - 1)
    return recursion_on_python_value(x * 2, depth - 1)


def keyword_and_star(x):
    def g(a, *rest, b=2, **more):
        if a > 1:
            return a * b + sum(rest) + more["c"]
        return a - b

    return g(x, x, 1.0, c=x) + g(x, b=5, c=0)


def builtins_on_tensors(x):
    return max(x, 2.0) + min(x, 5.0) + abs(x) + float(x) + int(x)


def numbers(n):
    yield from range(n)


def nonlocal_in_a_nested_function(x):
    total = x

    def add(y, *, z=x):
        nonlocal total
        if y > 0:
            total = total + 100
        return y + z

    result = add(x) + add(-x, z=1)
    del add
    return total + result


def try_with_and_generators(x):
    out = x * 0
    with contextlib.suppress(ZeroDivisionError):
        try:
            for i in numbers(4):
                if i == 2:
                    continue
                if x > i:
                    out = out + i
                else:
                    out = out - 1
        finally:
            out = out + x
    return out


def unpacking_and_comprehensions(x):
    first, *rest = [x, x + 1, x + 2]
    table = {k: v for k, v in zip("ab", (x, -x))}
    table["a"] = table["a"] * 2 if x > 2 else table["b"]
    total = sum(t * (2 if t is first else 1) for t in rest)
    match len(rest):
        case 2:
            total = total + 1
        case _:
            total = total - 1
    total **= 2
    return total + table["a"]


class Memory:
    def __init__(self):
        self.count = Tensor(0.0)

    def __call__(self, x):
        if x > 0:
            self.count = self.count + 1
        return self.count * x


def attributes_of_objects(x):
    memory = Memory()
    return memory(x) + memory(x + 1) + memory(x - 3)


def twice_if_large(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        result = f(*args, **kwargs)
        if result > 3:
            return result * 2
        return result

    return wrapper


@twice_if_large
def decorated(x):
    for _ in range(2):
        if x > 1:
            x = x - 0.5
    return x


def list_elements(x):
    items = [0] * 3
    for j in range(3):
        items[j] = x + j
        if items[j] > 2:
            items[j] = items[j] * 0
    return items[0] + items[1] * 10 + items[2] * 100


def newton(x):
    x = x * x + 1
    y = x
    for _ in range(40):
        step = (y * y - x) / (2 * y)
        if abs(step) < 1e-6:
            break
        y = y - step
    return y


CASES = cases(globals(), helpers=("helper", "numbers", "Memory", "twice_if_large"))


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_compiled_equals_eager(function):
    assert_compiled_equals_eager(function)


def test_private_names_and_super_in_cells():
    class Base(ms.nn.Cell):
        def __init__(self, k):
            super().__init__()
            self.__k = k

        def construct(self, x):
            if x > 0:
                return x * self.__k
            return x - self.__k

    class Derived(Base):
        def construct(self, x):
            y = super().construct(x)
            if y > 5:
                y = super().construct(y)
            return y

    for value in (-1.0, 1.0, 9.0):
        assert ms.jit(Derived(3))(scalar(value)).item() == Derived(3)(scalar(value)).item()
