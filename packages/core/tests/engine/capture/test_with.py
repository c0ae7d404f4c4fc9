"""The `with` statement in compiled functions does what it does in Python."""

import contextlib
import sys
from pathlib import Path

import pytest

import mycelia as ms

sys.path.insert(0, str(Path(__file__).parent))

from statement_cases import Cases, outcomes

case = Cases()


class Manager:
    def __init__(self, swallow=False):
        self.swallow = swallow
        self.log = []

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, *a):
        self.log.append("out")
        return self.swallow


@case
def with_plain(x):
    with Manager() as c:
        y = x + 1
    return y + len(c.log)


@case
def with_swallow(x):
    y = x
    with Manager(True):
        if x > 0:
            raise ValueError("w")
        y = y + 1
    return y


@case
def with_return(x):
    with Manager():
        if x > 0:
            return x + 1
        return x - 1


@case
def with_two(x):
    with Manager() as a, Manager() as b:
        y = x + len(a.log) + len(b.log)
    return y


@case
def contextlib_cm(x):

    @contextlib.contextmanager
    def cm(v):
        yield v + 1

    with cm(x) as y:
        return y * 2


@case
def suppress(x):

    y = x
    with contextlib.suppress(ValueError):
        if x > 0:
            raise ValueError
        y = y + 1
    return y


@pytest.mark.parametrize("function", case, ids=lambda f: f.__name__)
def test_compiled_statements_equal_eager(function):
    assert outcomes(ms.jit(function)) == outcomes(function)
