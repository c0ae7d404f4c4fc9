"""What settings do when they are set, beyond being kept."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, config, log, nn, ops
from mycelia.engine.base import ignored
from mycelia.engine.compile import executable
from mycelia.ir import text as ir_text
from mycelia.ops.define import find


@pytest.fixture
def told():
    """What is logged during the test."""
    texts: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())
    logger = log.logger()
    logger.addHandler(handler)
    yield texts
    logger.removeHandler(handler)


def _programs(run) -> list:
    """The programs that `run()` builds."""
    built: list = []
    executable.built_listeners.append(built.append)
    try:
        run()
    finally:
        executable.built_listeners.remove(built.append)
    return built


def _ops(programs) -> list[str]:
    return [node.op.name for program in programs for node in program.nodes]


@pytest.fixture
def chain():
    x = Tensor(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8))

    def function(x):
        return ops.tanh(x * 2 + 1) * x

    return function, x


# ---- how functions are compiled ----------------------------------------------------------------------------


def test_level_o0_runs_the_ops_of_the_code(chain):
    function, x = chain
    plain = ["mul", "add", "tanh", "mul"]
    expected = function(x).asnumpy()
    for asked, in_context, ops_run in [
        ({"jit_level": "O0"}, {}, plain),
        ({}, {"jit_level": "O0"}, plain),
        ({"jit_config": ms.JitConfig(jit_level="O0")}, {}, plain),
        ({"jit_level": "O1"}, {"jit_level": "O0"}, None),
        ({}, {"jit_level": "O2"}, None),
        ({}, {}, None),
    ]:
        with config.context(jit_config=in_context):
            compiled = ms.jit(function, **asked)
            made = _ops(_programs(lambda compiled=compiled: compiled(x)))
            np.testing.assert_allclose(compiled(x).asnumpy(), expected, rtol=1e-6)
        assert (made == plain) == (ops_run == plain), (asked, in_context, made)


def test_level_of_a_cell_holds_for_its_gradient(chain):
    function, x = chain

    class Net(nn.Cell):
        def construct(self, x):
            return function(x)

    def names(level):
        net = Net()
        net.set_jit_config(ms.JitConfig(jit_level=level))
        with config.context(mode=ms.GRAPH_MODE):
            return _ops(_programs(lambda: ms.grad(net)(x)))

    assert "fused_map" not in names("O0")
    assert names("O0") != names("O1") or "fused_map" in names("O1") or len(names("O1")) == len(names("O0"))


def test_a_level_given_later_is_followed(chain):
    function, x = chain

    class Net(nn.Cell):
        def construct(self, x):
            return function(x)

    net = Net()
    with config.context(mode=ms.GRAPH_MODE):
        net(x)
        net.set_jit_config({"jit_level": "O0"})
        assert _ops(_programs(lambda: net(x))) == ["mul", "add", "tanh", "mul"]


@pytest.mark.parametrize("name", ["nothing", "cpu", "ge"])
def test_an_unknown_backend_of_jit_is_refused(name):
    with pytest.raises(RuntimeError, match=f"there is no backend '{name}'"):
        ms.jit(lambda x: x, backend=name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"foo": 1}, "jit has no such option"), ({"exec_order": "dfs"}, "least memory"),
        ({"backend": "GE"}, "GE takes no part"), ({"auto_offload": "weight"}, "no tensor is moved"),
    ],
)  # fmt: skip
def test_an_option_of_jit_without_effect_warns(options, words, told, monkeypatch):
    monkeypatch.setattr(ignored, "_told", set())
    ms.jit(lambda x: x, **options)
    ms.jit(lambda x: x, **options)
    (text,) = told
    assert words in text and next(iter(options)) in text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"backend": 3}, TypeError), ({"exec_order": "zzz"}, ValueError), ({"exec_order": 1}, TypeError),
        ({"disable_format_transform": 1}, TypeError), ({"ge_options": {"a": {}}}, ValueError),
        ({"infer_boost": "what"}, ValueError), ({"auto_offload": "all of it"}, ValueError),
    ],
)  # fmt: skip
def test_bad_options_of_jit_are_refused(options, error):
    with pytest.raises(error):
        ms.jit(lambda x: x, **options)


def test_jit_config_warns_of_what_nothing_follows(told, monkeypatch):
    monkeypatch.setattr(ignored, "_told", set())
    ms.JitConfig(exc_mode="no_sink", infer_boost="on", fancy="yes")
    assert len(told) == 3 and all("has no effect" in text for text in told)


def test_syntax_level_of_jit_config_is_followed():
    class Net(nn.Cell):
        def construct(self, x):
            return x + float(x.asnumpy().sum())

    net, x = Net(), Tensor([1.0, 2.0])
    with config.context(mode=ms.GRAPH_MODE):
        assert net(x).asnumpy().tolist() == [4.0, 5.0]
        net.set_jit_config(ms.JitConfig(jit_syntax_level="STRICT"))
        with pytest.raises(ms.errors.CaptureError, match="known only"):
            net(x)


def test_calls_deeper_than_allowed_are_refused():
    def down(n, x):
        if n == 0:
            return x
        return down(n - 1, x) + 1

    def deep(n):
        def function(x):
            return down(n, x)

        return ms.jit(function)

    with config.context(max_call_depth=20):
        assert deep(5)(Tensor([1.0])).asnumpy().tolist() == [6.0]
        with pytest.raises(RuntimeError, match="Exceed function call depth limit 20"):
            deep(20)(Tensor([1.0]))
    assert deep(20)(Tensor([1.0])).asnumpy().tolist() == [21.0]


def test_only_compiling_runs_nothing():
    counter = ms.Parameter(Tensor([0.0]), name="counter")

    @ms.jit
    def count(x):
        counter.set_data(counter + x)
        return counter + 0

    with config.context(precompile_only=True):
        assert count(Tensor([1.0])) is None
        assert count(Tensor([1.0])) is None
    assert counter.asnumpy().tolist() == [0.0]
    assert count.cache_info().captures == 1
    assert count(Tensor([1.0])).asnumpy().tolist() == [1.0]
    assert count.cache_info().captures == 1


def test_training_only_compiles_if_asked_to():
    net = nn.Dense(2, 1)
    before = net.weight.asnumpy().copy()
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    rows = [([1.0, 2.0], [3.0])] * 4
    data = ms.dataset.GeneratorDataset(
        [tuple(np.float32(v) for v in row) for row in rows], ["x", "y"], shuffle=False
    ).batch(2)
    with config.context(mode=ms.GRAPH_MODE, precompile_only=True):
        model.train(2, data, callbacks=[ms.LossMonitor()])
    np.testing.assert_array_equal(net.weight.asnumpy(), before)


# ---- checks, threads, memory -------------------------------------------------------------------------------


class _OddGradients(nn.Cell):
    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return x.sum(), dout * x


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_gradients_of_a_cell_are_checked(mode):
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    with config.context(mode=mode, check_bprop=True):
        with pytest.raises(ValueError, match="result 0 must have the shape of argument 0"):
            ms.grad(_OddGradients(), (0, 1))(x, y)
        correct = _OddGradients()
        correct.bprop = lambda x, y, out, dout: (dout * y, dout * x)
        assert ms.grad(correct)(x, y).asnumpy().tolist() == [3.0, 4.0]


def test_debug_level_verifies_graphs(monkeypatch, chain):
    from mycelia.engine.compile.passes import pass_manager

    seen = []
    monkeypatch.setattr(pass_manager, "verify", seen.append)
    function, x = chain
    ms.jit(function)(x)
    assert not seen
    with config.context(debug_level=config.DEBUG):
        ms.jit(lambda x: function(x) + 1)(x)
    assert seen


def test_scopes_may_leave_out_class_names():
    net = nn.SequentialCell(nn.Dense(2, 2))
    with config.context(reserve_class_name_in_scope=False):
        net.generate_scope()
    assert net[0].get_scope() == "Default/0"
    other = nn.SequentialCell(nn.Dense(2, 2))
    other.generate_scope()
    assert other[0].get_scope() == "Default/0-Dense"


def test_memory_is_limited():
    with config.context(max_device_memory="0.05GB"):
        small = ops.zeros((1 << 20,), ms.float32) + 1
        with pytest.raises(MemoryError, match="max_device_memory allows 53687091 bytes"):
            ops.zeros((1 << 25,), ms.float32) + 1
        assert small.sum() == 1 << 20
    assert (ops.zeros((1 << 24,), ms.float32) + 1).sum() == 1 << 24


def test_ops_of_a_program_run_one_by_one_if_asked_to():
    x = Tensor(np.ones((64, 64), np.float32))

    def wide(x):
        return sum((ops.matmul(ops.tanh(x * i), x) for i in range(1, 7)), x)

    def windows(**settings):
        with config.context(**settings):
            return [p.task_groups for p in _programs(lambda: ms.jit(lambda x: wide(x))(x))]

    assert windows(pynative_synchronize=True) == [()]
    assert windows(inter_op_parallel_num=1) == [()]


# ---- what can be seen --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "endings"), [(1, {".ir"}), (2, {".ir"}), (3, {".ir", ".dot"})])
def test_graphs_are_saved_by_level(level, endings, tmp_path, chain):
    function, x = chain
    with config.context(save_graphs=level, save_graphs_path=str(tmp_path)):
        ms.jit(lambda x: function(x) + 0)(x)
    found = [path for path in tmp_path.rglob("*") if path.suffix in (".ir", ".dot")]
    assert {path.suffix for path in found} == endings
    names = " ".join(path.stem for path in found)
    for part in ("01_type_inference_", "21_validate_", "before_lower_graph_", "after_lower_graph_"):
        assert part in names
    assert (tmp_path / "verbose_ir_files").exists() is (level > 1)


def test_a_graph_is_drawn_with_its_edges(chain):
    function, x = chain
    compiled = ms.jit(function)
    compiled(x)
    graph = ir_text.parse(compiled.graph(), find)
    drawn = ir_text.to_dot(graph)
    assert drawn.count("shape=box") == len(graph.nodes)
    edges = sum(not v.is_constant for node in graph.nodes for v in node.inputs) + len(graph.outputs)
    assert drawn.count(" -> ") == edges


def test_debug_tells_more_with_each_level(told):
    x = Tensor(np.ones((4, 4), np.float32))

    def texts(level):
        told.clear()

        def function(x):
            return ops.relu(x) * 2 + level

        with config.context(debug=level):
            ops.tanh(x)
            ms.jit(function)(x)
        return "\n".join(told)

    assert texts(0) == ""
    compiled, timed, passed, generated = (texts(level) for level in (1, 2, 3, 4))
    assert "function is compiled" in compiled.replace("test_", "") and " us" not in compiled
    assert "tanh(float32[4, 4]): " in timed and " us" in timed and "pass simplify" not in timed
    assert "pass simplify" in passed and "def function" not in passed
    assert "def function" in generated and "its program:" in generated
    told.clear()
    ops.tanh(x)
    assert not told


def test_prints_go_to_a_file_that_is_read_back(tmp_path):
    path = str(tmp_path / "printed")
    values = ["text", Tensor([1.5, 2.0], ms.bfloat16), Tensor(True), Tensor(np.zeros((0, 3), np.int8))]

    @ms.jit
    def function(x):
        ops.Print()("inside", x, x.sum())
        return x

    with config.context(print_file_path=path):
        ops.Print()(*values)
        function(Tensor([1, 2]))
    found = ms.parse_print(path)
    assert found[0] == "text" and found[4] == "inside"
    for one, other in zip(found[1:4] + found[5:], [*values[1:], Tensor([1, 2]), Tensor(3)]):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert np.array_equal(one.float().asnumpy(), other.float().asnumpy())


@pytest.mark.parametrize("damage", [lambda d: b"", lambda d: d[:-1], lambda d: b"\xff" * 8])
def test_a_damaged_print_file_is_refused(damage, tmp_path):
    path = tmp_path / "printed"
    with config.context(print_file_path=str(path)):
        ops.Print()(Tensor([1.0, 2.0]))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="the print file .* is (empty|damaged)"):
        ms.parse_print(str(path))
    with pytest.raises(ValueError, match="cannot be read"):
        ms.parse_print(str(tmp_path / "none"))


def test_the_run_recorder_writes_at_the_first_error(tmp_path):
    file, folder = tmp_path / "config.json", tmp_path / "records"
    file.write_text(json.dumps({"rdr": {"enable": True, "mode": 1, "path": str(folder)}}))

    @ms.jit
    def pick_rows(x, i):
        return ops.gather(x, i, 0)

    with config.context(env_config_path=str(file)):
        pick_rows(Tensor([1.0, 2.0]), Tensor([0]))
        written = folder / "rank_0" / "rdr"
        assert not list(written.iterdir())
        with pytest.raises(IndexError):
            pick_rows(Tensor([1.0, 2.0]), Tensor([5]))
    names = sorted(path.name.split(".")[0] for path in written.iterdir())
    assert {"PIPELINE", "README", "RUNTIME_FRAMEWORK", "SESSION", "DEBUG", "first_bad"} == set(names)
    assert "IndexError" in (written / "README.txt").read_text()
    graph = next(p for p in written.iterdir() if p.suffix == ".ir" and "pick_rows" in p.name)
    assert "gather" in ir_text.to_text(ir_text.parse(graph.read_text(), find))


@pytest.mark.parametrize(
    "content", ["nonsense", "[1]", '{"rdr": {"mode": 3, "enable": true}}', '{"rdr": {"enable": 1}}']
)
def test_a_bad_file_of_the_run_recorder_is_refused(content, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(content)
    before = config.get("env_config_path")
    with pytest.raises((ValueError, TypeError)):
        config.set_context(env_config_path=str(file))
    assert config.get("env_config_path") == before
