"""Statements in compiled functions do what they do in Python, whether tensors or Python values decide."""

import contextlib
import types

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops

# ruff: noqa: B007, B012, B023, E722, F841

CASES = []
VALUES = (3.0, -2.0, 0.0, 3.0, -2.0)
total = 0
OUTSIDE = types.SimpleNamespace(n=0)


def case(function):
    CASES.append(function)
    return function


@case
def try_item(x):
    try:
        v = float(x.asnumpy())
    except Exception:
        v = -1.0
    return x + v


@case
def try_bare(x):
    try:
        v = x.item()
    except:
        v = -1.0
    return x + v


@case
def try_raise_cond(x):
    y = x
    try:
        if x > 0:
            raise ValueError("a")
        y = y + 1
    except ValueError:
        y = y + 10
    return y


@case
def try_raise_else_finally(x):
    y = x
    try:
        if x > 0:
            raise ValueError("a")
    except ValueError:
        y = y + 10
    else:
        y = y + 20
    finally:
        y = y * 2
    return y


@case
def try_assert(x):
    try:
        assert x > 0
        return x + 1
    except AssertionError:
        return x - 1


@case
def try_python_raise(x):
    try:
        raise KeyError("k")
    except KeyError as e:
        return x + len(e.args)


@case
def try_python_cond(x):
    try:
        return x + [1, 2][5]
    except IndexError:
        return x + 7
    finally:
        pass


@case
def try_shape_error(x):
    try:
        return x + Tensor([1.0, 2.0]).reshape((3,))
    except Exception:
        return x + 70


@case
def try_finally_return(x):
    try:
        return x + 1
    finally:
        x = x + 5


@case
def try_return_finally_override(x):
    try:
        return x + 1
    finally:
        return x + 2


@case
def try_in_loop(x):
    n = x
    for i in range(3):
        try:
            if i == 1:
                raise ValueError
            n = n + 1
        except ValueError:
            continue
        finally:
            n = n + 10
    return n


@case
def try_break_in_loop(x):
    n = x
    for i in range(5):
        try:
            if i == 2:
                break
            n = n + 1
        finally:
            n = n + 10
    return n


@case
def try_tensor_break(x):
    n = x
    for i in range(5):
        try:
            if n > 4:
                break
            n = n + 1
        finally:
            n = n + 0.25
    return n


@case
def raise_caught_outside(x):
    def inner(v):
        if v > 0:
            raise ValueError("p")
        return v * 2

    try:
        return inner(x)
    except ValueError:
        return x * 0 - 5


@case
def nested_try(x):
    try:
        try:
            if x > 0:
                raise ValueError("a")
            return x
        except KeyError:
            return x + 100
    except ValueError:
        return x + 1000


@case
def reraise(x):
    if x > 0:
        try:
            raise ValueError("orig")
        except ValueError:
            raise
    return x


@case
def raise_from(x):
    if x > 0:
        raise TypeError("t") from ValueError("v")
    return x


@case
def try_list_index(x):
    try:
        return x + [10, 20, 30, 40][int(x)]
    except IndexError:
        return x - 7


@case
def try_dict_key(x):
    try:
        return x + {3: 1}[int(x)]
    except KeyError:
        return x - 7


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
    o = Manager()
    o.k = x
    del o.k
    return x + hasattr(o, "k")


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
    o = Manager()
    if x > 0:
        o.v = x
    else:
        o.v = -x
    return o.v


@case
def obj_method_mutate(x):
    o = Manager()
    o.t = x

    def bump(q):
        if q.t > 0:
            q.t = q.t + 1

    bump(o)
    bump(o)
    return o.t


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
def assert_msg(x):
    assert x > 0, "must be positive"
    return x


@case
def import_in(x):
    import math
    from math import pi as p

    return x + math.floor(p)


@case
def kwargs_star(x):
    def f(*a, **k):
        return a[0] + k["b"]

    return f(*[x], **{"b": 2})


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
def set_ops(x):
    s = {1, 2}
    s.add(3)
    return x + len(s)


@case
def print_try(x):
    try:
        y = x.nonexistent()
    except AttributeError:
        y = x + 3
    return y


@case
def isinstance_branch(x):
    if isinstance(x, Tensor) and x > 0:
        return x + 1
    return x


@case
def try_type_error(x):
    try:
        return x + "a"
    except TypeError:
        return x + 11


@case
def except_tuple(x):
    try:
        if x > 0:
            raise KeyError("q")
        raise IndexError("z")
    except (KeyError, IndexError) as e:
        y = x + (1 if isinstance(e, KeyError) else 2)
    return y


@case
def except_unbinds(x):
    e = x
    try:
        raise ValueError
    except ValueError as e:
        pass
    try:
        return e
    except NameError:
        return x + 1


@case
def finally_on_error(x):
    l = []
    try:
        try:
            if x > 0:
                raise ValueError
        finally:
            l.append(1)
    except ValueError:
        l.append(2)
    return x + len(l)


@case
def contextlib_cm(x):
    import contextlib

    @contextlib.contextmanager
    def cm(v):
        yield v + 1

    with cm(x) as y:
        return y * 2


@case
def suppress(x):
    import contextlib

    y = x
    with contextlib.suppress(ValueError):
        if x > 0:
            raise ValueError
        y = y + 1
    return y


@case
def while_try(x):
    n = 0
    while x > 0:
        try:
            x = x - 1
            if n > 1:
                raise ValueError
            n = n + 1
        except ValueError:
            n = n + 10
    return x + n


@case
def any_in_try_int(x):
    try:
        k = int(x)
    except TypeError:
        k = 100
    return x + k


@case
def if_in_try_ok(x):
    try:
        if x > 0:
            y = x + 1
        else:
            y = x - 1
    except Exception:
        y = x * 0
    return y


@case
def loop_in_try_ok(x):
    try:
        while x > 0:
            x = x - 1
    except Exception:
        x = x * 0 + 77
    return x


@case
def shape_branch_in_try(x):
    try:
        if x > 0:
            y = ops.ones((2,), ms.float32)
        else:
            y = ops.ones((3,), ms.float32)
    except Exception:
        y = ops.zeros((4,), ms.float32)
    return y


@case
def attribute_of_a_class_outside(x):
    Manager.runs = getattr(Manager, "runs", 0) + 1
    return x + Manager.runs


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


def outcomes(function):
    """What the calls of `function` give, one after another: numbers, or the builtin kind of error."""
    global total
    total, OUTSIDE.n = 0, 0
    vars(Manager).get("runs") and delattr(Manager, "runs")
    found = []
    for value in VALUES:
        try:
            made = function(Tensor(value, ms.float32))
            found.append(np.asarray(made, np.float64).tolist())
        except Exception as error:
            found.append(type(error).__name__)
    return found


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_compiled_statements_equal_eager(function):
    assert outcomes(ms.jit(function)) == outcomes(function)


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
