"""Branches on tensors: the compiled function gives what the plain function gives."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scalar_cases import assert_compiled_equals_eager, cases


def if_else(x):
    if x > 0:
        y = x * 2
    else:
        y = x - 1
    return y


def if_without_else(x):
    y = x
    if x > 1:
        y = y * y
    return y + 1


def elif_chain(x):
    if x < -1:
        r = x * 0 - 1
    elif x < 0:
        r = x
    elif x < 1:
        r = x * 10
    else:
        r = x + 100
    return r


def nested_if(x):
    y = x
    if x > 0:
        if x > 2:
            y = x * 3
        else:
            if x > 1:
                y = x * 5
        y = y + 1
    return y


def several_names(x):
    a, b = x, 1.0
    if x > 0:
        a, b = b, a
    else:
        b = 3
    return a - b * 2


def temporary_of_one_branch(x):
    if x > 0:
        t = x + 1
        y = t * t
    else:
        t = "not a tensor"
        y = x
    return y


def nested_structure(x):
    state = {"a": x, "b": [x, (1.0, x)]}
    if x > 0:
        state["a"] = x * 2
        state["b"][1] = (2.0, state["a"])
    return state["a"] + state["b"][0] + state["b"][1][0] + state["b"][1][1]


def boolean_operators(x):
    if (x > 0 and x < 3) or not x > -2:
        return x * 2
    return x


def chained_comparison(x):
    if 0 < x < 2:
        return x * 7
    return x


def conditional_expression(x):
    y = x * 2 if x > 1 else x - 1
    return (y if y > 0 else -y) + (1 if x > 0 else 2)


def membership(x):
    y = x.round()
    if y in (1, 2, 3):
        return y * 10
    return y


def walrus(x):
    if (y := x * 2) > 3:
        return y
    return y + 100


def early_return(x):
    if x > 5:
        return x
    x = x * 2
    if x > 5:
        return x * 10
    return x * 100


def early_return_deep(x):
    y = x + 1
    if x > 0:
        if x > 2:
            if x > 4:
                return y * 2
            y = y + 10
        y = y + 100
    return y


def return_in_else_only(x):
    y = x
    if x > 0:
        y = y + 1
    else:
        return x * 4
    return y * 3


CASES = cases(globals())


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_compiled_equals_eager(function):
    assert_compiled_equals_eager(function)
