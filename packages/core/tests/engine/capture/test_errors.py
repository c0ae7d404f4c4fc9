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
    assert f"Tensor[Float32](1, 3) (line {line_of(f, 'x[:1]')} `y = x[:1]`)" in text
    assert f"Tensor[Float32](2, 3) (line {line_of(f, 'else:') + 1} `y = x`)" in text
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


# ---- values that no two ways agree about, inside other control flow ----------------------------------------


def inner_returns_differ(x):
    if x < 10:
        if x > 5:
            return "two"
        return 1
    return 2


def returns_in_a_loop_differ(x):
    while x < 10:
        x = x + 1
        if x > 5:
            if x > 7:
                return "two"
            return [x]
    return x


def returns_in_unrolled_rounds_differ(x):
    for i in range(3):
        if x + i > 5:
            if x > 7:
                return "two"
            return [x]
    return x


@pytest.mark.parametrize(
    "function", [inner_returns_differ, returns_in_a_loop_differ, returns_in_unrolled_rounds_differ]
)
def test_returns_that_disagree_inside_other_statements(function):
    with pytest.raises(TypeError, match="Cannot join the return values of different branches") as caught:
        ms.jit(function)(Tensor(1))
    assert '"two"' in str(caught.value) and "the returned value" in str(caught.value)


def test_variable_of_rounds_that_disagree():
    def f(x):
        while x < 10:
            x = x + 1
            if x > 7:
                y = (x, x)
            else:
                y = x
        return y

    with pytest.raises(TypeError, match="'y' is a tuple of 2"):
        ms.jit(f)(Tensor(1))


# ---- names without a value ---------------------------------------------------------------------------------


def of_the_true_branch(x):
    if x < 0:
        y = x * 2
    return y


def of_the_false_branch(x):
    if x < 0:
        x = x + 1
    else:
        y = x * 2
    return y


def of_a_while_loop(x):
    while x < 0:
        y = x * 2
        x = x + 1
    return y


def of_a_branch_in_a_for_loop(x):
    for _ in range(3):
        if x < 0:
            y = x * 2
    return y


def of_a_branch_read_in_the_loop(x):
    for _ in range(2):
        if x < 0:
            y = x * 2
        x = x + y
    return x


@pytest.mark.parametrize(
    "function, says",
    [
        (of_the_true_branch, "is not defined in false branch, but defined in true branch"),
        (of_the_false_branch, "is not defined in true branch, but defined in false branch"),
        (of_a_while_loop, "defined in the 'while' loop body cannot be used outside"),
        (of_a_branch_in_a_for_loop, "defined in the 'for' loop body cannot be used outside"),
        (of_a_branch_read_in_the_loop, "is not defined in false branch, but defined in true branch"),
    ],
)
def test_variable_that_only_one_way_sets(function, says):
    with pytest.raises(UnboundLocalError, match=f"The local variable 'y' {says}") as caught:
        ms.jit(function)(Tensor(1.0))
    assert f"line {line_of(function, 'y = x * 2')} `y = x * 2`" in str(caught.value)


@pytest.mark.parametrize("size", [1, 3])  # several elements: the name is what to repair first
@pytest.mark.parametrize("keyword", ["if", "while"])
def test_name_that_nothing_has(size, keyword):
    def under_if(x):
        if x > 0:
            x = x + nothing_has_this  # noqa: F821
        return x

    def under_while(x):
        while x > 0:
            if x > 1:
                nothing_has_this  # noqa: B018, F821
            x = x - 1
        return x

    function = under_if if keyword == "if" else under_while
    with pytest.raises(NameError, match="The name 'nothing_has_this' is not defined") as caught:
        ms.jit(function)(Tensor(np.ones(size, np.float32)))
    assert f"test_errors.py:{line_of(function, 'nothing_has_this')}" in str(caught.value)
    assert caught.value.name == "nothing_has_this"


# ---- values that do not fit --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 if x else 2,
        lambda x: not x,
        lambda x: x and 2,
        lambda x: bool(x),
    ],
)
def test_truth_of_several_elements(function):
    with pytest.raises(
        ValueError, match="more than one element is ambiguous.*but got tensor shape is \\(3,\\)"
    ):
        ms.jit(function)(Tensor([1, 2, 3]))


@pytest.mark.parametrize("limit", [Tensor(3.0), Tensor([1, 2])])
def test_range_of_a_tensor_that_is_no_integer(limit):
    def f(n):
        total = 0
        for i in range(1, n):
            total = total + i
        return total

    with pytest.raises(TypeError, match="range: the 1th input should be a int scalar"):
        ms.jit(f)(limit)


@pytest.mark.parametrize("value", [None, "text"])
def test_parameter_that_is_assigned_no_tensor(value):
    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = ms.Parameter(0.0, name="p")

        @ms.jit
        def construct(self, x):
            self.p = x
            return self.p

    net = Net()
    with pytest.raises(TypeError, match="the Parameter 'p' takes a Tensor or a number"):
        net(value)
    assert float(net(2.5)) == 2.5


def test_limit_of_a_slice_that_is_no_integer():
    with pytest.raises(TypeError, match="limits of a slice must be integers"):
        ms.jit(lambda x: x[1.5:])(Tensor([1, 2, 3]))
    with pytest.raises(RuntimeError, match="limits of a slice must be integers"):
        Tensor([1, 2, 3])[1.5:]
