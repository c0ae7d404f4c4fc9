"""One operator by itself: run again, written as a script; breakpoints on a condition."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, nn, ops
from mycelia.debug.operators import rerun, script_of
from mycelia.engine import observing


class Kept(observing.Observer):
    def __init__(self):
        self.calls = []

    def seen(self, run, operator, inputs, outputs):
        self.calls.append((operator, list(inputs), list(outputs)))


def calls_of(function):
    kept = Kept()
    with observing.watch_calls(kept):
        function()
    return kept.calls


X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5.5


@pytest.mark.parametrize(
    "function",
    [
        lambda: ops.concat([ms.Tensor(X), ms.Tensor(X), ms.Tensor(X)], 1),
        lambda: ms.Tensor(X) * 2.5,
        lambda: ops.cast(ms.Tensor(X), ms.bfloat16),
        lambda: ops.clamp(ms.Tensor(X), float("-inf"), 1.0),
        lambda: ops.softmax(ms.Tensor(X), 0),
        lambda: nn.Conv2d(1, 2, 3)(ms.Tensor(X.reshape(1, 1, 3, 4))),
        lambda: ms.Tensor(np.array([True, False])).sum(),
        lambda: ops.relu(ms.Tensor(np.zeros((0, 3), np.float32))),
    ],
)
def test_an_operator_runs_again_and_its_script_runs_alone(function, tmp_path):
    for operator, inputs, outputs in calls_of(function):
        for made, before in zip(rerun(operator, inputs), outputs, strict=True):
            np.testing.assert_array_equal(made.float().asnumpy(), before.float().asnumpy())
    (tmp_path / "one.py").write_text(script_of(operator, inputs, outputs, 'What "it" did \\ here'))
    ran = subprocess.run([sys.executable, tmp_path / "one.py"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count(" as recorded") == len(outputs) and "not as recorded" not in ran.stdout


def test_a_script_tells_what_differs(tmp_path):
    operator, inputs, outputs = calls_of(lambda: ops.exp(ms.Tensor(X)))[0]
    wrong = [ms.Tensor(outputs[0].asnumpy() + 1)]
    (tmp_path / "one.py").write_text(script_of(operator, inputs, wrong, "Exp"))
    ran = subprocess.run([sys.executable, tmp_path / "one.py"], capture_output=True, text=True)
    assert "not as recorded" in ran.stdout, ran.stderr


def test_inputs_that_an_operator_updates_stay():
    parameter = ms.Parameter(ms.Tensor(X), name="w")
    operator, inputs, outputs = calls_of(lambda: ops.assign_add(parameter, ms.Tensor(X)))[0]
    (again,) = rerun(operator, inputs)
    np.testing.assert_array_equal(again.asnumpy(), outputs[0].asnumpy())
    np.testing.assert_array_equal(parameter.asnumpy(), 2 * X)
    np.testing.assert_array_equal(inputs[0].asnumpy(), X)


def test_what_is_no_operator_is_told():
    with pytest.raises(ValueError, match="did you mean 'log'"):
        debug.run_operator("loog", [ms.Tensor(X)], {})
    with pytest.raises(ValueError, match="attributes axis are missing"):
        debug.run_operator("concat", [ms.Tensor(X)], {})


def test_too_much_for_a_script_is_refused():
    operator, inputs, outputs = calls_of(lambda: ops.zeros_like(ms.Tensor(X)))[0]
    large = ms.Tensor(np.zeros(17 << 20, np.float32))
    with pytest.raises(ValueError, match="67108864 bytes"):
        script_of(operator, [large], outputs, "")


@pytest.fixture
def stops(monkeypatch):
    found = []
    monkeypatch.setenv("PYTHONBREAKPOINT", "some.debugger")
    monkeypatch.setattr(sys, "breakpointhook", lambda: found.append(1))
    return found


@pytest.mark.parametrize(
    "condition, stops_here",
    [
        ("tensor_overflow", False),
        ("tensor_all_zero", False),
        (debug.TensorTooLargeCondition(max_gt=5.0), True),
        (debug.TensorTooLargeCondition(max_gt=5.5), False),
        (lambda x: x.min() < -5, True),
        (lambda x: x.min() < -6, False),
    ],
)
def test_code_stops_where_a_condition_is_met(stops, condition, stops_here):
    assert debug.break_if(ms.Tensor(X), condition) is stops_here
    assert len(stops) == stops_here


def test_python_debugger_opens_at_the_line_of_the_call(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import mycelia as ms\nfrom mycelia import debug, ops\nx = ms.Tensor([0.0])\n"
        "y = ops.log(x - 1)\ndebug.break_if(y, 'tensor_overflow')\nprint('went on', x)\n"
    )
    ran = subprocess.run(
        [sys.executable, script], input="p float(y) != float(y)\nc\n", capture_output=True, text=True
    )
    assert "train.py(6)" in ran.stdout or "train.py(5)" in ran.stdout
    assert "True" in ran.stdout and "went on" in ran.stdout


def test_what_is_no_condition_is_told():
    with pytest.raises(TypeError, match="tensor must be a Tensor"):
        debug.break_if(X, "tensor_overflow")
    with pytest.raises(TypeError, match="is no condition"):
        debug.break_if(ms.Tensor(X), 3)
    with pytest.raises(ValueError, match="the step before"):
        debug.break_if(ms.Tensor(X), debug.TensorUnchangedCondition())
    with pytest.raises(ValueError, match="condition must be"):
        debug.break_if(ms.Tensor(X), "nothing")


def test_a_compiled_function_has_no_values_to_stop_at():
    def function(x):
        debug.break_if(x, "tensor_overflow")
        return x + 1

    with pytest.raises(NotImplementedError, match="PyNative"):
        ms.jit(function)(ms.Tensor(X))
