"""What compiled functions return of Python numbers: numbers, also those that only the graph knows."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, mutable

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))  # the sum is 15


@ms.jit
def counted(x):
    rounds, y = 0, x.sum()
    while y > 1:
        y, rounds = y / 2, rounds + 1
    return rounds


@ms.jit
def branched(x):
    if x.sum() > 3:
        return 1, 2.5, True, x
    return 2, 0.5, False, x


@ms.jit
def early(x):
    for i in range(5):
        if x.sum() > 20:
            return i
        x = x + 1
    return -1


@ms.jit
def ranged(n):
    total = 0
    for i in range(n):
        total = total + i
    return total


@ms.jit
def converted(x):
    return int(x.sum()) + 1, float(x.sum()), bool(x.sum()), x.sum().int()


@ms.jit
def operated(n):
    return n + 1, n / 2, n // 2, n % 2, -n, n > 1, not n, max(n, 5), [n], {"n": n}


@ms.jit
def grown(x):
    total = 0
    while total < 3:
        total = total + x.sum()
    return total


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        (counted, X, 4),
        (early, X, 1),
        (ranged, mutable(4), 6),
        (operated, mutable(3), (4, 1.5, 1, 1, -3, True, False, 5, [3], {"n": 3})),
        (operated, mutable(2.5), (3.5, 1.25, 1.0, 0.5, -2.5, True, False, 5.0, [2.5], {"n": 2.5})),
    ],
)
def test_numbers_stay_numbers(function, argument, expected):
    found = function(argument)
    assert found == expected and repr(found) == repr(expected)


def test_numbers_of_branches_and_conversions():
    *numbers, x = branched(X)
    assert repr(numbers) == "[1, 2.5, True]" and isinstance(x, Tensor)
    *numbers, total = converted(X)
    assert repr(numbers) == "[16, 15.0, True]" and isinstance(total, Tensor)


def test_a_number_that_met_a_tensor_is_a_tensor():
    assert isinstance(grown(X), Tensor) and float(grown(X)) == 15
    scaled = ms.jit(lambda n, x: (n * x, Tensor(n), isinstance(n, int), isinstance(n, Tensor)))
    product, tensor, is_int, is_tensor = scaled(mutable(2), X)
    assert isinstance(product, Tensor) and isinstance(tensor, Tensor)
    assert (is_int, is_tensor) == (True, False)


def test_other_values_of_a_mutable_number_are_not_compiled_anew():
    @ms.jit
    def double(n):
        return n * 2

    assert [double(mutable(n)) for n in (2, 3, 4)] == [4, 6, 8]
    assert double.cache_info().captures == 1
