"""Control flow on tensors: the compiled function gives what the plain function gives."""

import contextlib
import functools

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor


def scalar(value, dtype=np.float32):
    return Tensor(np.asarray(value, dtype))


def number(value):
    return np.asarray(value.asnumpy() if isinstance(value, Tensor) else value, np.float64)


# ---- branches


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


# ---- loops


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


# ---- functions


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


_HELPERS = ("scalar", "number", "helper", "numbers", "Memory", "twice_if_large")
CASES = [
    value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", None) == __name__ and name not in _HELPERS
]
VALUES = (-3.0, -1.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 12.0)


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_compiled_equals_eager(function):
    compiled = ms.jit(function)
    for value in VALUES:
        expected = number(function(scalar(value)))
        np.testing.assert_allclose(
            number(compiled(scalar(value))), expected, rtol=1e-6, err_msg=f"x = {value}"
        )


# ---- gradients


def cubic_branches(x):
    if x > 0:
        y = x * x * x
    else:
        y = -x * x
    return y * x


def power_loop(x):
    i = 0
    while i < 4:
        x = x * x * 0.3 + x
        i += 1
    return x


def branch_in_loop(x):
    i, s = 0, x
    while i < 4 and s < 50:
        if s > 2:
            s = s * x
        else:
            s = s * s + x
        i += 1
    return s


def loops_with_break(x):
    s, y = x * 0, x
    while s < 20:
        k = 0
        while k < 3:
            y = y * 1.1 + x * k
            k += 1
            if y > 30:
                break
        s = s + y * y * 0.5 + 1
    return s * x


def return_inside_loop(x):
    y = x
    while y < 40:
        if y > 20:
            return y * x * x
        y = y * (x + 1) + 1.5
    return y * x


def captured_by_loop(x):
    w = x * x
    s, i = x * 0, 0
    while i < 3:
        s = s * w + ms.ops.sin(w * s + x)
        i += 1
    return s


GRADIENT_CASES = [
    cubic_branches,
    power_loop,
    branch_in_loop,
    loops_with_break,
    return_inside_loop,
    captured_by_loop,
]
POINTS = (0.55, 1.2, 1.7, 2.5)


def finite_difference(function, value, step=1e-5):
    return (function(value + step) - function(value - step)) / (2 * step)


@pytest.mark.parametrize("function", GRADIENT_CASES, ids=lambda f: f.__name__)
def test_gradients_to_third_order_inside_and_around_jit(function):
    eager, inside, around = function, function, ms.jit(function)
    for order in (1, 2, 3):
        lower = eager
        eager, inside, around = ms.grad(eager), ms.grad(inside), ms.grad(around)
        compiled = ms.jit(inside)
        for value in POINTS:
            expected = number(eager(scalar(value, np.float64)))
            for other in (compiled, around):
                got = number(other(scalar(value, np.float64)))
                np.testing.assert_allclose(got, expected, rtol=1e-9, err_msg=f"order {order} at {value}")
            slope = finite_difference(lambda v, f=lower: number(f(scalar(v, np.float64))), value)
            np.testing.assert_allclose(
                expected, slope, rtol=1e-4, atol=1e-6, err_msg=f"order {order} at {value}"
            )


def test_gradient_of_a_loop_that_runs_zero_times():
    def f(x, w):
        while x > 10:
            x = x * w
        return x * w

    gradients = ms.jit(ms.grad(f, (0, 1)))(scalar(2.0), scalar(3.0))
    assert [float(g) for g in gradients] == [3.0, 2.0]


def test_gradient_flows_to_tensors_and_parameters_that_a_region_captures():
    w = ms.Parameter(np.array([1.0, -2.0, 3.0], np.float32), name="w")

    def f(x):
        y = x * w
        if y.sum() > 0:
            z = (y * y * w).sum()
        else:
            z = y.sum()
        return z

    step = ms.value_and_grad(f, 0, [w])
    x = Tensor(np.array([2.0, 1.0, 1.0], np.float32))
    for sign in (1, -1):
        value, (dx, (dw,)) = step(x * sign)
        compiled_value, (cx, (cw,)) = ms.jit(step)(x * sign)
        np.testing.assert_allclose(compiled_value.asnumpy(), value.asnumpy(), rtol=1e-6)
        np.testing.assert_allclose(cx.asnumpy(), dx.asnumpy(), rtol=1e-6)
        np.testing.assert_allclose(cw.asnumpy(), dw.asnumpy(), rtol=1e-6)


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
