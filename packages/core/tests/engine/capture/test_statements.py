"""Statements in compiled functions do what they do in Python, whether tensors or Python values decide."""

import contextlib
import sys
import types
from pathlib import Path

import pytest

import mycelia as ms
from mycelia import Tensor

sys.path.insert(0, str(Path(__file__).parent))

from statement_cases import Cases, outcomes

case = Cases()

total = 0
OUTSIDE = types.SimpleNamespace(n=0)


@case
def gen_expr(x):
    return sum(i * x for i in range(3))


@case
def gen_func(x):
    def g(n):
        for i in range(n):
            yield x + i

    return sum(g(3))


@case
def gen_send(x):
    def g():
        r = yield x
        yield r + x

    it = g()
    a = next(it)
    b = it.send(a * 2)
    return b


@case
def comp_walrus(x):
    l = [y := x + i for i in range(3)]
    return y + l[0]


@case
def comp_if(x):
    return sum([i * x for i in range(4) if i % 2])


@case
def comp_if_tensor(x):
    return x + len([i for i in range(4) if x > i])


@case
def comp_nested(x):
    return sum([x * i * j for i in range(3) for j in range(i)])


@case
def walrus_cond(x):
    if (y := x + 1) > 0:
        return y * 2
    return y


@case
def walrus_while(x):
    n = 0
    while (x := x - 1) > 0:
        n += 1
    return x + n


@case
def match_value(x):
    match x.ndim:
        case 0:
            return x + 1
        case 1:
            return x + 2
        case _:
            return x + 3


@case
def match_tensor(x):
    match x:
        case 3.0:
            return x + 1
        case _:
            return x - 1


@case
def match_guard(x):
    match 5:
        case n if x > 0:
            return x + n
        case _:
            return x - 1


@case
def match_seq(x):
    match [x, 1]:
        case [a, 1]:
            return a * 2
        case _:
            return x


@case
def match_dict(x):
    match {"a": x, "b": 2}:
        case {"a": v, **rest}:
            return v + rest["b"]
    return x


@case
def match_class(x):
    match x:
        case Tensor():
            return x + 5
        case _:
            return x


@case
def match_or(x):
    match int(x):
        case 3 | 4:
            return x + 5
        case -2:
            return x - 5
        case _:
            return x * 0


@case
def star_assign(x):
    a, *b = [x, x + 1, x + 2]
    return a + b[1]


@case
def swap_cond(x):
    a, b = x, x + 1
    if x > 0:
        a, b = b, a
    return a - b


@case
def chained_cmp(x):
    if -1 < x < 4:
        return x + 1
    return x


@case
def chained_assign(x):
    a = b = x
    a += 1
    return a * b


@case
def aug_list(x):
    l = [x]
    m = l
    m += [x + 1]
    return l[-1] + len(l)


@case
def while_else(x):
    while x > 0:
        x = x - 1
    else:
        x = x + 100
    return x


@case
def for_else(x):
    for i in range(3):
        if x > i + 1:
            break
    else:
        x = x + 100
    return x


@case
def kwargs_star(x):
    def f(*a, **k):
        return a[0] + k["b"]

    return f(*[x], **{"b": 2})


@case
def set_ops(x):
    s = {1, 2}
    s.add(3)
    return x + len(s)


@case
def isinstance_branch(x):
    if isinstance(x, Tensor) and x > 0:
        return x + 1
    return x


@case
def number_as_a_key(x):
    return x + {3: 1, -2: 2, 0: 3}[int(x)] + (int(x) in {3, 4}) + (int(x) in {-2: 1}) + (int(x) in range(1))


@case
def number_in_a_set(x):
    return x + len({3, int(x)})


@case
def walrus_in_while_with_jumps(x):
    n = 0
    while (x := x - 1) > -3:
        n += 1
        if n == 2:
            continue
        if x < -1:
            break
        n += 10
    else:
        n += 100
    return x + n


@pytest.mark.parametrize("function", case, ids=lambda f: f.__name__)
def test_compiled_statements_equal_eager(function):
    assert outcomes(ms.jit(function)) == outcomes(function)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("global", "the global variable 'total' gets another value in each run"),
        ("attribute", "the attribute 'n' of a SimpleNamespace gets another value in each run"),
        (
            "try",
            "a tensor decides whether the `raise` at .*test_statements.py:.* inside of the `try` statement",
        ),
        ("with", "inside of the `with` statement"),
        ("assert", "whether the `assert` at"),
    ],
)
def test_what_a_graph_cannot_do_is_refused_where_a_graph_is_required(kind, words):
    def f(x):
        global total
        if kind == "global":
            total += 1
        elif kind == "attribute":
            OUTSIDE.n += 1
        elif kind == "try":
            try:
                if x > 0:
                    raise ValueError
            except ValueError:
                pass
        elif kind == "with":
            with contextlib.suppress(ValueError):
                if x > 0:
                    raise ValueError
        else:
            try:
                assert x > 0
            finally:
                pass
        return x

    with pytest.raises(RuntimeError, match=words):
        ms.jit(f, fullgraph=True)(Tensor(1.0))
    assert ms.jit(f)(Tensor(1.0)).item() == 1.0


def test_a_generator_with_a_tensor_condition_is_refused():
    def f(x):
        def rows():
            yield 1
            if x > 0:
                yield 2

        return x + sum(rows())

    with pytest.raises(RuntimeError, match="rows is a generator or coroutine"):
        ms.jit(f)(Tensor(1.0))
