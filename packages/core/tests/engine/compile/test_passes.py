"""Passes, the memory plan and programs."""

import errno
import os

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor
from mycelia.backends import Backend, Pass, registry
from mycelia.engine.base import files
from mycelia.engine.capture import control
from mycelia.engine.capture.trace import Trace, type_of
from mycelia.engine.compile.executable import program
from mycelia.engine.compile.memory import ALIGNMENT, Interval, plan_offsets
from mycelia.engine.compile.passes import cse, dce, fold, inline, optimize, pipeline, simplify
from mycelia.ir import evaluate, verify
from mycelia.ir.walk import all_graphs, all_nodes, clone
from mycelia.testing.comparison import on_backend


def capture(function, *tensors):
    """The graph of `function` as captured, before any pass."""
    trace = Trace("main")
    with trace:
        result = control.callee(function)(*(trace.parameter(type_of(t)) for t in tensors))
        results = result if isinstance(result, tuple) else (result,)
        trace.graph.outputs = [trace.value_of(r) for r in results]
    trace.close()
    verify(trace.graph)
    return trace.graph


def ops_of(graph):
    return [node.op.name for _, node in all_nodes(graph)]


def assert_same(before, after, *tensors):
    verify(after)
    for a, b in zip(evaluate(before, tensors), evaluate(after, tensors), strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def run_pass(run, graph):
    return sum(run(part) for part in list(all_graphs(graph)))


X = Tensor(np.array([1.0, -2.0, 3.0], np.float32))


def test_fold_computes_constant_nodes():
    graph = capture(lambda x: x * (x * 0 + 1), X)
    zero = graph.nodes[0]
    before = clone(graph)
    zero.inputs[0] = zero.inputs[1]
    assert run_pass(fold.run, graph) == 2
    assert ops_of(graph) == ["mul"]
    assert ops_of(before) == ["mul", "add", "mul"]


def test_cse_merges_equal_nodes():
    graph = capture(lambda x: (x * 2 + x * 2, (x * 2).sum(), x * 2.5), X)
    before = clone(graph)
    assert run_pass(cse.run, graph) == 2
    assert ops_of(graph).count("mul") == 2
    assert_same(before, graph, X)


def test_cse_keeps_signed_zeros_apart():
    graph = capture(lambda x: (x * 0.0, x * -0.0), X)
    assert run_pass(cse.run, graph) == 0


def test_dce_drops_unused_nodes_and_gradients():
    def f(x, w):
        _, (dx, _) = ms.value_and_grad(lambda a, b: (a * a * b).sum(), (0, 1))(x, w)
        return dx

    graph = capture(f, X, X)
    before = clone(graph)
    count = len(graph.nodes)
    assert run_pass(dce.run, graph) > 0
    assert len(graph.nodes) < count
    assert_same(before, graph, X, X)


def test_dce_keeps_effects():
    def f(x):
        assert x.sum() > -100
        return x

    graph = capture(f, X)
    run_pass(dce.run, graph)
    assert "require" in ops_of(graph)


def test_dce_prunes_results_and_inputs_of_control_flow():
    def f(x, y):
        a, b, i = x, y, 0
        while a.sum() < 50:
            if a.sum() > 0:
                a, c = a * 2, b + 1
            else:
                c = b
            b = c
            i += 1
        return a

    graph = capture(f, X, X)
    before = clone(graph)
    run_pass(dce.run, graph)
    loop = next(n for n in graph.nodes if n.op.name == "while_loop")
    assert loop.attrs["carried"] == 1 and len(loop.inputs) == 1
    assert graph.parameters[1] not in loop.inputs
    assert_same(before, graph, X, X)


@pytest.mark.parametrize("position", (0, 1))
def test_dce_prunes_gradients_of_loops(position):
    def f(x, w):
        i = 0
        while i < 3:
            x = x * w
            i += 1
        return x.sum()

    graph = capture(ms.grad(f, position), X, X)
    before = clone(graph)
    run_pass(dce.run, graph)
    assert_same(before, graph, X, X)


def test_constant_condition_is_inlined():
    def f(x, y):
        return x * 2 if y.sum() > 0 else x

    graph = capture(f, X, X)
    cond = next(n for n in graph.nodes if n.op.name == "cond")
    before = clone(graph)
    from mycelia.ir.graph import Value
    from mycelia.ir.types import TensorType

    cond.inputs[-1] = Value(TensorType(ms.bool_, ()), constant=Tensor(True))
    assert run_pass(inline.run, graph) == 1
    assert "cond" not in ops_of(graph)
    assert_same(before, graph, X, X)


def test_simplify_removes_what_changes_nothing():
    graph = capture(lambda x: -(-(x * 1)).reshape((3, 1)).reshape((3,)).astype(ms.float32) / 1, X)
    before = clone(graph)
    run_pass(simplify.run, graph)
    run_pass(dce.run, graph)
    assert ops_of(graph) == [] or set(ops_of(graph)) == {"neg"}
    assert_same(before, graph, X)


def test_simplify_keeps_promotions():
    i = Tensor(np.array([1, 2], np.int32))
    graph = capture(lambda x: x * 1.0, i)
    run_pass(simplify.run, graph)
    assert graph.outputs[0].type.dtype is ms.float32


def test_stages_are_saved_and_read_back(tmp_path):
    from mycelia.ir.text import parse
    from mycelia.ops.define import find

    with ms.config.context(save_graphs=2, save_graphs_path=str(tmp_path), check=True):
        ms.jit(lambda x: x * 2 + x * 2 if x.sum() > 0 else x)(X)
    files = [*tmp_path.glob("*.ir"), *tmp_path.glob("verbose_ir_files/*.ir")]
    files.sort(key=serial)
    assert files[0].name.startswith("01_type_inference_") and any("cse" in f.name for f in files)
    assert any(f.name.startswith("21_validate_") for f in files)
    for file in files:
        parse(file.read_text(), find)


def serial(path):
    """The number of a saved graph, of four digits or, late in a process, more."""
    return int(path.stem.rpartition("_")[2])


def saved_texts(tmp_path, **settings):
    """The graphs that a compilation saves: stage -> text."""
    folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
    with ms.config.context(save_graphs=2, save_graphs_path=str(folder), **settings):
        ms.jit(lambda x: x * 2 + x * 2 if x.sum() > 0 else x)(X)
    return {f.stem.rpartition("_")[0]: f.read_text() for f in sorted(folder.glob("*.ir"), key=serial)}


def test_graphs_of_chosen_passes_and_every_third_graph_are_saved_texts(tmp_path):
    every = list(saved_texts(tmp_path))
    assert list(saved_texts(tmp_path, save_graphs_passes="cse, valid")) == ["opt_pass_3_cse", "21_validate"]
    folder = tmp_path / "third"
    counts = []
    for interval in (1, 3):
        with ms.config.context(
            save_graphs=2, save_graphs_path=str(folder / str(interval)), save_graphs_interval=interval
        ):
            for _ in range(3):
                ms.jit(lambda x: x * 2 + x * 2 if x.sum() > 0 else x)(X)
        numbered = [f for f in (folder / str(interval)).rglob("*.ir") if f.parent.name != "actor_set"]
        counts.append(len(numbered))
    assert abs(counts[0] - 3 * counts[1]) <= 3 and counts[0] >= 3 * len(every)


def test_saved_graphs_tell_as_much_as_is_asked_for(tmp_path):
    texts = [saved_texts(tmp_path, save_graphs_format=detail)["01_type_inference"] for detail in range(3)]
    body = [[line.strip() for line in text.splitlines()[1:]] for text in texts]
    assert all(" = multiply(%" in text or " = mul(%" in text for text in texts)
    assert "Tensor[" not in "".join(line.partition("const")[0] for line in body[0] if "graph " not in line)
    assert "@ " not in texts[1] and "dim=none" in texts[1] and "dim=none" not in texts[0]
    assert f'@ "{__file__}"' in texts[2] and [len(b) for b in body] == [len(body[0])] * 3


def test_environment_that_is_set_later_saves_graphs_too(tmp_path, monkeypatch):
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS", "1")
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS_PATH", str(tmp_path / "graphs"))
    try:
        ms.jit(lambda x: x + 1)(X)
    finally:
        monkeypatch.undo()
        ms.config.read_again("save_graphs", "save_graphs_path")
    assert list((tmp_path / "graphs").glob("21_validate_*.ir"))


# ---- memory plan


@pytest.mark.parametrize("seed", range(20))
def test_values_alive_together_never_overlap(seed):
    rng = np.random.default_rng(seed)
    intervals = []
    for _ in range(60):
        first = int(rng.integers(0, 40))
        intervals.append(Interval(int(rng.integers(1, 5000)), first, first + int(rng.integers(0, 12))))
    offsets, total = plan_offsets(intervals)
    for i, a in enumerate(intervals):
        assert offsets[i] % ALIGNMENT == 0 and offsets[i] + a.size <= total
        for j, b in enumerate(intervals[:i]):
            if a.first <= b.last and b.first <= a.last:
                assert offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]


def test_a_chain_needs_two_places():
    intervals = [Interval(1024, i, i + 1) for i in range(50)]
    assert plan_offsets(intervals)[1] == 2048


# ---- programs


def test_program_equals_interpreter_on_views_and_shared_values():
    def f(x):
        a = x * 2
        b = a.reshape((2, 3))
        c = b + 1
        d = b.reshape((6,)) * a
        e = (c * c).reshape((6,))
        return a, d + e, b, e.reshape((3, 2))

    x = Tensor(np.arange(6, dtype=np.float32))
    graph = capture(f, x)
    expected = [t.asnumpy() for t in evaluate(graph, [x])]
    optimize(graph)
    run = program(graph)
    first = run(x)
    run(x * 50)
    for got, want in zip(first, expected):
        np.testing.assert_array_equal(got.asnumpy(), want)


def test_recursive_use_of_one_program_takes_its_own_arena():
    inner = ms.jit(lambda x: (x + 1) * 2)
    np.testing.assert_array_equal(inner(inner(X)).asnumpy(), ((X.asnumpy() + 1) * 2 + 1) * 2)


# ---- stages and settings


def saved(tmp_path, function, *tensors, **settings):
    """Names of the stages that are written while `function` is compiled."""
    with ms.config.context(save_graphs=2, save_graphs_path=str(tmp_path), **settings):
        function(*tensors)
    return [file.stem for file in tmp_path.rglob("*.ir")]


def test_passes_are_switched_off_by_name(tmp_path):
    function = ms.jit(lambda x: (x * 1.0 + x * 2) / 1.0)
    expected = function(X)
    assert any(
        "simplify" in stage for stage in saved(tmp_path / "all", lambda x: function(x + 0), X, passes="-cse")
    )
    stages = saved(tmp_path / "some", function, X, passes="-simplify,-cse, -lower")
    assert not any("simplify" in s or "cse" in s or "lower" in s for s in stages)
    np.testing.assert_array_equal(function(X).asnumpy(), expected.asnumpy())


@pytest.mark.parametrize("settings", [
    dict(passes="-fuse"), dict(enable_graph_kernel=False), dict(graph_kernel_flags="--opt_level=0"),
])  # fmt: skip
def test_fusion_is_switched_off_as_in_mindspore(tmp_path, settings):
    function = ms.jit(lambda x: ms.ops.tanh(x * 2 + 1) * 3)
    stages = saved(tmp_path / "without", function, X, **settings)
    assert not any("fuse" in stage for stage in stages)


def test_unknown_passes_are_refused():
    function = ms.jit(lambda x: x * 2)
    with ms.config.context(passes="-fuze"), pytest.raises(ValueError, match=r"pass.*'fuse'.*got 'fuze'"):
        function(X)
    with pytest.raises(ValueError, match="'-' in front"):
        ms.set_context(passes="fuse")
    np.testing.assert_array_equal(function(X).asnumpy(), X.asnumpy() * 2)


def test_plugins_add_passes_to_all_stages(monkeypatch):
    from mycelia import plugins
    from mycelia.engine.compile.passes import Pass
    from mycelia.hookspecs import hookimpl

    seen = []

    class Plugin:
        @hookimpl
        def mycelia_passes(self, pipeline, stage, backend):
            pipeline.append(
                Pass(f"look_{stage}", lambda graph: seen.append((stage, backend.backend.name)) or 0)
            )

    plugins.manager().register(plugin := Plugin(), "test-passes")
    try:
        ms.jit(lambda x: x * 3)(X)
        assert [stage for stage, _ in seen] == ["optimize", "lower", "order"]
        with ms.config.context(passes="-look_lower,-order"):
            ms.jit(lambda x: x * 5)(X)
        assert [stage for stage, _ in seen] == ["optimize", "lower", "order", "optimize"]
    finally:
        plugins.manager().unregister(plugin)


class WithPasses(Backend):
    """A backend that brings passes which only write down that they ran."""

    name = "with-passes"

    def __init__(self, *steps):
        self.seen, self.steps = [], steps

    def passes(self, frozen):
        return [
            Pass(name, lambda graph, name=name: self.seen.append((name, tuple(frozen))) or 0, before, after)
            for name, before, after in self.steps
        ]


def test_a_backend_brings_passes_for_graphs_of_its_own():
    steps = (
        ("first", "simplify", ""),
        ("last_simplify", "", "simplify"),
        ("end", "", ""),
        ("inner", "", "first"),
    )
    backend = WithPasses(*steps)
    names = [step.name for step in pipeline("lower", registry.LoadedBackend(backend), (1,))]
    at = names.index
    assert at("first") == at("inner") - 1 == at("simplify") - 2
    assert [n for n in names if n in ("simplify", "last_simplify")][-1] == "last_simplify"
    assert names[-2:] == ["end", "claim"]
    weight = ms.Parameter(X * 2, name="weight")
    registry.available()["with-passes"] = backend
    try:
        with on_backend("with-passes"), ms.config.context(passes="-end", fallback="silent"):
            ms.jit(lambda x: x * weight)(X)
        assert backend.seen == [("first", (1,)), ("inner", (1,)), ("last_simplify", (1,))]
        ms.jit(lambda x: x * 7)(X)
        assert len(backend.seen) == 3  # compiled for another backend
    finally:
        del registry.available()["with-passes"]
        registry.load.cache_clear()


def test_a_pass_of_a_backend_beside_one_that_does_not_exist_is_refused():
    backend = registry.LoadedBackend(WithPasses(("mine", "", "simplifi")))
    with pytest.raises(ValueError, match=r"pass mine of backend with-passes.*'simplify'.*got 'simplifi'"):
        pipeline("lower", backend)


def test_a_full_disk_leaves_no_half_graph(tmp_path, monkeypatch):
    """The text of the first graph fits, its picture does not."""

    def write_all(file, part):
        os.write(file, part[:3])
        if part.startswith(b"digraph"):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_all", write_all)
    with ms.config.context(save_graphs=3, save_graphs_path=str(tmp_path)):
        with pytest.raises(OSError, match="No space left"):
            ms.jit(lambda x: x + 1)(Tensor([1.0]))
    assert [file.suffix for file in tmp_path.glob("01_*")] == [".ir"]
