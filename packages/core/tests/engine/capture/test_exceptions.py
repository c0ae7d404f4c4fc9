"""Exceptions in compiled functions do what they do in Python, whether tensors or Python values decide."""

import sys
from pathlib import Path

import pytest

import mycelia as ms
from mycelia import Tensor, ops

sys.path.insert(0, str(Path(__file__).parent))

from statement_cases import Cases, outcomes

# ruff: noqa: B007, B012, E722, F841

case = Cases()


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


@case
def assert_msg(x):
    assert x > 0, "must be positive"
    return x


@case
def print_try(x):
    try:
        y = x.nonexistent()
    except AttributeError:
        y = x + 3
    return y


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


@pytest.mark.parametrize("function", case, ids=lambda f: f.__name__)
def test_compiled_statements_equal_eager(function):
    assert outcomes(ms.jit(function)) == outcomes(function)
