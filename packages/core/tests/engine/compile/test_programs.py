"""What programs do besides computing: they are profiled and observed, tell their memory, and fall back."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine import _C
from mycelia.engine.compile.executable import built_listeners, live_programs

X = Tensor(np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32))


def new_programs(run, *args):
    """The programs that a call makes."""
    before = live_programs()  # held: no new one may get the address of one that is gone
    run(*args)
    return [p for p in live_programs() if not any(p is q for q in before)]


def test_timings_count_calls_of_each_instruction():
    run = ms.jit(lambda x: ops.softmax(ops.cumsum(x, 0) @ x.T, -1))
    (program,) = new_programs(run, X)
    assert program.timings() == []
    program.profile(True)
    for _ in range(3):
        run(X)
    timings = program.timings()
    assert len(timings) == program.instruction_count == len(program.nodes)
    assert all(calls == 3 and ns > 0 for calls, ns in timings)
    program.profile(False)
    run(X)
    assert program.timings() == timings
    assert "cumsum" in [node.op.name for node in program.nodes]
    assert all("test_programs.py" in str(node.location) for node in program.nodes if node.location)


def test_an_observer_sees_the_result_of_each_instruction():
    seen = []

    def watch(program):
        program.observe(lambda position, outputs: seen.append((program.nodes[position].op.name, outputs)))

    built_listeners.append(watch)
    try:
        run = ms.jit(lambda x: ops.cumsum(ops.cumsum(x, 0), 1))
        result = run(X)
    finally:
        built_listeners.remove(watch)
    assert [name for name, _ in seen] == ["cumsum", "cumsum"]
    run(X * 2)
    first = np.cumsum(X.asnumpy(), 0)
    np.testing.assert_allclose(seen[0][1][0].asnumpy(), first, rtol=1e-5)  # a copy: later runs leave it alone
    np.testing.assert_allclose(seen[1][1][0].asnumpy(), result.asnumpy(), rtol=1e-5)


def test_an_error_of_an_observer_reaches_the_caller():
    run = ms.jit(lambda x: ops.cumsum(x, 0))
    (program,) = new_programs(run, X)

    def fails(position, outputs):
        raise RuntimeError("no more")

    program.observe(fails)
    with pytest.raises(RuntimeError, match="no more"):
        run(X)
    program.observe(None)
    np.testing.assert_allclose(run(X).asnumpy(), np.cumsum(X.asnumpy(), 0), rtol=1e-5)


def test_plugins_attach_observers():
    code = """
        import numpy as np, mycelia as ms
        from mycelia import Tensor, ops, plugins
        from mycelia.hookspecs import hookimpl
        class Observer:
            def after(self, node, outputs):
                print(node.op.name, outputs[0].shape)
        class Plugin:
            @hookimpl
            def mycelia_observers(self, program):
                return [Observer()]
        plugins.manager().register(Plugin())
        ms.jit(lambda x: ops.cumsum(x, 0))(Tensor(np.ones((2, 3), np.float32)))
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert result.stdout == "cumsum (2, 3)\n", result.stderr


def test_memory_report_of_training():
    net = nn.SequentialCell(*(layer for _ in range(6) for layer in (nn.Dense(64, 64), nn.Sigmoid())))
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)

    @ms.jit
    def step(x):
        value, gradients = gradient(x)
        optimizer(gradients)
        return value

    step(Tensor(np.ones((32, 64), np.float32)))
    report = step.memory_report()
    rows = 32 * 64 * 4
    assert report.lower_bound <= report.peak <= 1.1 * report.lower_bound
    # The activations and two gradients; not all gradients of weights at once.
    assert report.peak < 6 * rows + 3 * 64 * 64 * 4 + 4 * rows
    for name, size, offset, first, last in report.values:
        assert 0 <= offset <= report.peak - size and first <= last, name
    assert str(report.peak // 1000) in str(report)


def test_blocks_that_live_together_do_not_overlap():
    net = nn.SequentialCell(*(layer for _ in range(5) for layer in (nn.Dense(16, 16), nn.Tanh())))
    run = ms.jit(ms.grad(lambda x: (net(x) ** 2).sum(), 0, net.trainable_params()))
    run(X)
    blocks = run.memory_report().values
    for i, (_, size, offset, first, last) in enumerate(blocks):
        for _, other_size, other, begin, end in blocks[i + 1 :]:
            assert last < begin or end < first or offset + size <= other or other + other_size <= offset


def test_results_in_place_leave_arguments_alone():
    run = ms.jit(lambda x: ops.sigmoid(ops.cumsum(ops.cumsum(x, 0), 1)))
    before = X.asnumpy().copy()
    first = run(X)
    kept = first.asnumpy().copy()
    run(X + 1)
    np.testing.assert_array_equal(X.asnumpy(), before)
    np.testing.assert_array_equal(first.asnumpy(), kept)


def test_the_same_argument_twice():
    run = ms.jit(lambda x, y: ops.cumsum(x, 0) - y)
    np.testing.assert_allclose(run(X, X).asnumpy(), np.cumsum(X.asnumpy(), 0) - X.asnumpy(), rtol=1e-5)


def test_compiled_functions_in_compiled_functions_and_recursion():
    inner = ms.jit(lambda x: ops.cumsum(x, 0))
    outer = ms.jit(lambda x: inner(x) + inner(x * 2))
    np.testing.assert_allclose(outer(X).asnumpy(), 3 * np.cumsum(X.asnumpy(), 0), rtol=1e-5)
    np.testing.assert_allclose(inner(X).asnumpy(), np.cumsum(X.asnumpy(), 0), rtol=1e-5)


@pytest.mark.parametrize("rounds", [0, 1, 3, 1500])
def test_gradient_of_a_loop_of_many_rounds(rounds):
    @ms.jit
    def f(x, n):
        i = Tensor(0)
        while i < n:
            x = ops.tanh(x)
            i = i + 1
        return x.sum()

    def expected(x, n):
        y, slope = x.asnumpy().astype(np.float64), 1.0
        for _ in range(n):
            y = np.tanh(y)
            slope = slope * (1 - y * y)
        return slope * np.ones_like(y)

    gradient = ms.jit(ms.grad(f))(X, Tensor(rounds))
    np.testing.assert_allclose(gradient.asnumpy(), expected(X, rounds), rtol=1e-3, atol=1e-7)


def test_loops_must_fit_together():
    program = _C.Program
    empty = program((), (), [], (), (), {}, 0, (), ())
    with pytest.raises(ValueError, match="do not fit together"):
        program((), (), [("while", empty, empty, 0, (), (), ())], (), (), {}, 0, (), ())


def test_a_program_says_what_it_was_given():
    run = ms.jit(lambda x: ops.cumsum(x, 0))
    (program,) = new_programs(run, X)
    with pytest.raises(TypeError, match="takes 1 inputs, but 2 were given"):
        program(X, X)
    with pytest.raises(TypeError, match="must be a Tensor, but got int"):
        program(1)
    with pytest.raises(TypeError, match="of shape \\(4, 16\\), but a Float32 of shape \\(16, 4\\) was given"):
        program(X.T)
