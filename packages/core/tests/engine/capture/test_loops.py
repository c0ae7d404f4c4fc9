"""Loops on tensors: the compiled function gives what the plain function gives."""

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor

sys.path.insert(0, str(Path(__file__).parent))

from scalar_cases import assert_compiled_equals_eager, cases


def while_counter(x):
    i = 0
    while i < 5:
        x = x + i
        i += 1
    return x


def while_tensor_condition(x):
    n = 0
    while x < 100:
        x = x * x + 2
        n += 1
    return x + n


def while_number_becomes_float(x):
    s, i = 0, 0
    while i < x:
        s = s + x * i
        i += 1
    return s


def while_break_continue(x):
    i, s = 0, x * 0
    while i < x:
        i += 1
        if i == 3:
            continue
        if i > 6:
            break
        s = s + i
    return s * 10 + i


def while_true_break(x):
    n = 0
    while True:
        x = x * 2 + 1
        n = n + 1
        if x > 50:
            break
        if n > 8:
            break
    return x + n


def while_else(x):
    i, r = 0, x
    while i < 4:
        if x + i > 6:
            r = x * 0 + 1
            break
        i += 1
    else:
        r = x * 0 + 2
    return r + i


def return_from_while(x):
    x = x * x
    while x < 50:
        if x > 20:
            if x > 30:
                return x * 1000
            x = x + 13
        x = x * 2 + 1
    return x


def nested_while(x):
    total, i = x * 0, 0
    while i < 4:
        j = 0
        while j < i:
            if j * i > x:
                break
            total = total + x * j
            j += 1
        i += 1
    return total


def for_range_unrolled(x):
    for i in range(4):
        if x > 10:
            continue
        x = x + i
        if x > 5:
            break
    return x


def return_from_for(x):
    for i in range(5):
        if x > 10:
            return x
        x = x * 2 + i
    return -x


def for_over_rows(x):
    rows = x * ms.ops.arange(6).reshape((3, 2))
    best = rows[0].sum()
    for row in rows:
        if row.sum() > best:
            best = row.sum()
    return best


def for_tensor_range(x):
    s = 0.0
    for i in range(x.astype(ms.int64)):
        if i == 2:
            continue
        if i > 5:
            break
        s += i * 1.5
    return s


def for_tensor_range_with_start(x):
    s = x * 0
    for i in range(2, x.astype(ms.int64) + 3, 2):
        s = s * 2 + i
    return s


def for_else(x):
    for i in range(3):
        if x * i > 4:
            break
    else:
        return x - 1000
    return x + 1000


def while_in_if(x):
    if x > 2:
        while x > 1:
            x = x / 2
    else:
        x = x + 10
    return x


def list_in_loop(x):
    seen = []
    for i in range(3):
        if i % 2 == 0:
            seen.append(x + i)
    total = x * 0
    for s in seen:
        total = total + s
    return total


CASES = cases(globals())


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_compiled_equals_eager(function):
    assert_compiled_equals_eager(function)


def test_vector_valued_loop_with_batches():
    def f(x, w):
        h = ms.ops.zeros((2, 3))
        for t in range(4):
            h = ms.ops.tanh(ms.ops.matmul(h, w) + x[t])
            if h.sum() > 2:
                h = h * 0.5
        return (h * h).sum()

    rng = np.random.default_rng(0)
    x = Tensor(rng.normal(size=(4, 2, 3)).astype(np.float32))
    w = Tensor(rng.normal(size=(3, 3)).astype(np.float32))
    expected, got = ms.grad(f, (0, 1))(x, w), ms.jit(ms.grad(f, (0, 1)))(x, w)
    for a, b in zip(expected, got):
        np.testing.assert_allclose(b.asnumpy(), a.asnumpy(), rtol=1e-5, atol=1e-6)


def test_integers_loop_exactly():
    def collatz(n):
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    assert int(ms.jit(collatz)(Tensor(27))) == 111


# ---- containers that rounds of a loop change in place


def set_item(x):
    items, count = [x, x * 2], x * 0
    while count < 3:
        count = count + 1
        items[1] = items[1] + count
    return items


def set_key_in_inner_loop(x):
    found, count = {"a": x, "b": (x, x)}, x * 0
    while count < 3:
        count = count + 1
        inner = x * 0
        while inner < 2:
            inner = inner + 1
            found["a"] = found["a"] + inner
            found["b"] = (found["b"][1], count)
    return found["a"], found["b"]


def set_number(x):
    items, count = [x, 2], x * 0
    while count < 3:
        count = count + 1
        if x > 5:
            items[1] = x
        else:
            items[0] = count
    return items


@pytest.mark.parametrize("function", [set_item, set_key_in_inner_loop, set_number])
@pytest.mark.parametrize("value", [1, 7])
def test_containers_change_in_rounds(function, value):
    def plain(found):
        return [plain(v) for v in found] if isinstance(found, (tuple, list)) else int(found)

    assert plain(ms.jit(function)(Tensor(value))) == plain(function(Tensor(value)))


def test_container_that_grows_in_rounds_of_unknown_number():
    def f(x):
        items = [x]
        while x < 5:
            x = x + 1
            items.append(x)
        return items

    with pytest.raises(TypeError, match="'items' changes its type in the loop"):
        ms.jit(f)(Tensor(1))
