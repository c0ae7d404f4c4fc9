"""Code that graph mode cannot take: the message names the variable, the types and the lines."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor
from mycelia.errors import CaptureError


def line_of(function, text):
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def failure(function, shape=(2, 3)):
    with pytest.raises(CaptureError) as caught:
        ms.jit(function, fullgraph=True)(Tensor(np.ones(shape, np.float32)))
    return str(caught.value)


def test_branches_that_disagree_in_shape():
    def f(x):
        if x.sum() > 0:
            y = x[:1]
        else:
            y = x
        return y + 1

    text = failure(f)
    assert "'y'" in text
    assert f"Tensor[Float32](1, 3) (line {line_of(f, 'x[:1]')})" in text
    assert f"Tensor[Float32](2, 3) (line {line_of(f, 'else:') + 1})" in text
    assert f"test_errors.py:{line_of(f, 'return')}" in text


def test_disagreeing_variable_that_nobody_reads_is_fine():
    def f(x):
        if x.sum() > 0:
            t = x[:1]
            y = t.sum()
        else:
            t = "text"
            y = x.mean()
        return y

    assert float(ms.jit(f)(Tensor(np.ones((2, 3), np.float32)))) == 3.0


def test_returns_that_disagree():
    def f(x):
        if x.sum() > 0:
            return x.sum()
        return None

    text = failure(f)
    assert "the returned value" in text and "None" in text and f"line {line_of(f, 'return x')}" in text


def test_variable_of_one_branch():
    def f(x):
        if x.sum() > 0:
            z = x
        return z + 1

    text = failure(f)
    assert "'z'" in text and f"line {line_of(f, 'z = x')}" in text


def test_variable_of_a_loop_body():
    def f(x):
        while x.sum() < 10:
            w = x * 2
            x = x + 1
        return w

    assert "'w'" in failure(f)


def test_loop_variable_that_changes_its_dtype():
    def f(x):
        s = x
        while s.sum() < 10:
            s = s.astype(ms.float16)
        return s

    text = failure(f)
    assert "'s'" in text and "Float16" in text and "Float32" in text


def test_value_needed_while_capturing():
    def f(x):
        return x * x.asnumpy()

    text = failure(f)
    assert "known only when the graph runs" in text and f"test_errors.py:{line_of(f, 'asnumpy')}" in text


def test_code_that_needs_values_runs_as_python_unless_that_is_forbidden():
    @ms.jit
    def f(x):
        return x * float(x.asnumpy().max())

    assert f(Tensor([1.0, 3.0])).asnumpy().tolist() == [3.0, 9.0]
    with ms.config.context(jit_syntax_level=ms.STRICT), pytest.raises(CaptureError, match="known only"):
        f(Tensor([[1.0, 3.0]]))


def test_tensor_as_list_index():
    def f(x):
        return [1, 2, 3][x.sum().astype(ms.int64)]

    assert "known only when the graph runs" in failure(f)


def test_source_that_is_not_available():
    namespace = {}
    exec("def f(x):\n    if x.sum() > 0:\n        return x\n    return -x", namespace)
    assert "source of f is not available" in failure(namespace["f"])
    plain = {}
    exec("def f(x):\n    return x + 1", plain)
    assert ms.jit(plain["f"])(Tensor(1.0)).item() == 2.0


def test_condition_with_several_elements():
    def f(x):
        if x > 0:
            return x
        return -x

    with pytest.raises(ValueError, match="one element"):
        ms.jit(f)(Tensor(np.ones(3, np.float32)))


def test_unbound_local_stays_an_unbound_local():
    def f(x, flag):
        if flag:
            y = x
        return y

    with pytest.raises(UnboundLocalError, match="y"):
        ms.jit(f)(Tensor(1.0), False)


def test_tensor_that_outlives_its_capture():
    kept = []

    @ms.jit
    def f(x):
        kept.append(x + 1)
        return x

    f(Tensor(1.0))
    with pytest.raises(CaptureError, match="has ended"):
        kept[0].asnumpy()
    with pytest.raises((CaptureError, RuntimeError), match="capture"):
        kept[0] + 1


def test_assert_on_a_tensor_is_checked_when_the_graph_runs():
    @ms.jit
    def f(x):
        assert x > 0, "x must be positive"
        return x

    assert f(Tensor(1.0)).item() == 1.0
    with pytest.raises(AssertionError, match="x must be positive"):
        f(Tensor(-1.0))


def test_raise_under_a_tensor_condition():
    @ms.jit
    def f(x):
        if x < 0:
            raise ValueError("negative")
        y = x * 2
        return y

    assert f(Tensor(2.0)).item() == 4.0
    with pytest.raises(ValueError, match="negative"):
        f(Tensor(-1.0))


def test_error_of_an_op_names_the_users_line():
    def f(x):
        return ms.ops.matmul(x, x)

    with pytest.raises(ValueError) as caught:
        ms.jit(f)(Tensor(np.ones((2, 3), np.float32)))
    assert f"test_errors.py:{line_of(f, 'matmul')}" in str(caught.value)
