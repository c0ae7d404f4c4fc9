"""Operators of dumps run again and leave as scripts, in graph and in eager mode."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, nn, ops
from mycelia.debug.dump.operator_files import read_operators
from mycelia.debug.operators import edited
from mycelia.engine import observing
from mycelia.testing.samples import all_samples

SCALE = ms.Tensor(np.float32(-1.0))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, pad_mode="same")
        self.fc = nn.Dense(2 * 16, 3)

    def construct(self, x, scale):
        x = ops.clamp(self.conv(x), float("-inf"), 1.5)
        x = ops.concat([x, x * 2.0, ops.cast(x, ms.bfloat16).astype(ms.float32)], 1)[:, :2]
        return ops.softmax(self.fc(ops.flatten(x)), -1) * ops.log(scale)


def dump_of(folder, mode, **config):
    ms.set_seed(1)
    net = Net()
    step = ms.jit(net) if mode == ms.GRAPH_MODE else net
    x = ms.Tensor(np.linspace(-2, 2, 32, dtype=np.float32).reshape(2, 1, 4, 4))
    with ms.config.context(mode=mode), debug.dump({"path": str(folder), **config}):
        observing.set_iteration(0)
        step(x, SCALE)
    return debug.DumpAnalyzer(folder)


@pytest.fixture(scope="module", params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"])
def dump(request, tmp_path_factory):
    return dump_of(tmp_path_factory.mktemp("dump"), request.param)


def node_of(dump, kind):
    return next(node for node in dump.nodes if node.kind == kind)


def test_each_operator_makes_again_what_was_dumped(dump):
    operators = [node for node in dump.nodes if node.kind != "Parameter"]
    assert {"Conv2D", "Concat", "Cast", "Softmax", "Log"} <= {node.kind for node in operators}
    for node in operators:
        outputs = dump.rerun_operator(node, 0)
        assert outputs
        for made, before in outputs:
            np.testing.assert_array_equal(made, before, strict=True)


def test_edits_change_what_comes_out(dump):
    log = node_of(dump, "Log")
    ((made, before),) = dump.rerun_operator(log, 0, [{"slot": 0, "value": 1.0}])
    assert made == 0 and np.isnan(before)
    for word, expected in (("Infinity", np.inf), (0, -np.inf)):
        assert dump.rerun_operator(log, 0, [{"slot": 0, "value": word}])[0][0] == expected
    softmax = node_of(dump, "Softmax")
    edit = {"slot": 0, "index": "[1, 0:2]", "value": [1e4, "-Infinity"]}
    ((made, before),) = dump.rerun_operator(softmax, 0, [edit])
    assert made[1].tolist() == [1, 0, 0] and (made[0] == before[0]).all()


@pytest.mark.parametrize(
    "edit, told",
    [
        ({"slot": 7, "value": 1}, "slot of an input"),
        ({"slot": "0", "value": 1}, "slot of an input"),
        ({"slot": 0}, "slot of an input"),
        ({"slot": 0, "value": "x"}, "does not fit"),
        ({"slot": 0, "value": [1, 2, 3, 4]}, "does not fit"),
        ({"slot": 0, "index": "[9]", "value": 1}, "outside"),
        ({"slot": 0, "index": "[0, 0, 0]", "value": 1}, "3 indices"),
    ],
)
def test_edits_that_do_not_fit_are_refused(dump, edit, told):
    with pytest.raises(ValueError, match=told):
        dump.rerun_operator(node_of(dump, "Softmax"), 0, [edit])


def test_a_script_runs_alone_and_makes_the_same(dump, tmp_path):
    for kind in ("Conv2D", "Cast", "Log"):
        node = node_of(dump, kind)
        text = dump.operator_script(node, 0)
        assert f"{node.stack[0].file}:{node.stack[0].line}" in text
        (tmp_path / "one.py").write_text(text)
        ran = subprocess.run([sys.executable, tmp_path / "one.py"], capture_output=True, text=True)
        assert ran.returncode == 0 and " as recorded" in ran.stdout, ran.stderr
        assert "not as recorded" not in ran.stdout


def test_what_a_dump_lacks_is_told(tmp_path):
    dump = dump_of(tmp_path, ms.GRAPH_MODE, input_output=2)
    softmax = node_of(dump, "Softmax")
    with pytest.raises(ValueError, match="input 0 of .* was not dumped in iteration 0"):
        dump.rerun_operator(softmax, 0)
    with pytest.raises(ValueError, match="does not say how"):
        dump.rerun_operator(node_of(dump, "Parameter"), 0)
    (file,) = tmp_path.rglob("mycelia_operators_graph_*.json")
    told = json.loads(file.read_text())
    told["operators"][softmax.name]["missing"] = ["body"]
    file.write_text(json.dumps(told))
    with pytest.raises(ValueError, match="no text for body"):
        dump.operator_script(softmax, 0)
    no_dtype = {"op": "log", "attrs": {"a": {"dtype": "os"}}, "missing": [], "numbers": {}, "inputs": []}
    for wrong in ([], {"version": 9}, {"version": 1, "operators": {"a": no_dtype}}, "[" * 100_000):
        file.write_text(wrong if isinstance(wrong, str) else json.dumps(wrong))
        with pytest.raises(ValueError, match="cannot be read"):
            dump.rerun_operator(softmax, 0)
    file.unlink()  # as in dumps of others
    with pytest.raises(ValueError, match="does not say how"):
        dump.rerun_operator(softmax, 0)


def test_attributes_of_all_kinds_come_back(dump):
    found = read_operators(dump.dump.ranks[0], node_of(dump, "Cast").graph)
    assert ms.bfloat16 in [v for one in found.values() for v in one.attrs.values()]
    clamped = [one for one in found.values() if -np.inf in [*one.attrs.values(), *one.numbers.values()]]
    assert clamped or any(one.op == "maximum" for one in found.values())


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"])
def test_what_has_no_axes_has_none_in_the_dump(tmp_path, mode):
    def function(x):
        return ops.exp(ops.sum(x))

    step, x = ms.jit(function) if mode == ms.GRAPH_MODE else function, ms.Tensor(np.zeros((2, 3), np.float32))
    with ms.config.context(mode=mode), debug.dump({"path": str(tmp_path), "eager": True}):
        observing.set_iteration(0)
        step(x)
    dump = debug.DumpAnalyzer(tmp_path)
    ((made, before),) = dump.rerun_operator(node_of(dump, "Exp"), 0)
    assert made.shape == before.shape == () and made == before == 1


@pytest.mark.parametrize(
    ("dtype", "value", "fits"),
    [
        (ms.int32, 1.7, False), (ms.int32, float("nan"), False), (ms.int8, 300, False), (ms.uint8, -1, False),
        (ms.bool_, 2, False), (ms.int32, 2.0, True), (ms.bool_, 1, True), (ms.float16, 1e6, True),
        (ms.bfloat16, "NaN", True),
    ],
)  # fmt: skip
def test_edits_are_not_rounded_to_integers(dtype, value, fits):
    tensor = ms.Tensor(np.zeros(2, np.float32)).astype(dtype)
    if not fits:
        with pytest.raises(ValueError, match="is none of its numbers"):
            edited(tensor, None, value)
        return
    with np.errstate(over="ignore"):
        wanted = np.full(2, value, np.float32).astype(np.float16 if dtype == ms.float16 else np.float32)
    np.testing.assert_array_equal(edited(tensor, None, value).astype(ms.float32).asnumpy(), wanted)


def drawn(count, seed):
    """Samples of the operators that there are, in all the dtypes that they have samples in."""
    found = list(all_samples())
    return [found[i] for i in np.random.default_rng(seed).choice(len(found), count, replace=False)]


def test_operators_of_all_kinds_run_again_and_leave_as_scripts_to_the_bit(tmp_path, capsys):
    """Views, booleans, int8, float16, bfloat16: whatever the draw has."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    tried = 0
    for number, sample in enumerate(drawn(40, 7)):
        with debug.dump({"path": str(tmp_path / str(number)), "eager": True}):
            observing.set_iteration(0)
            sample.call()
        if not list((tmp_path / str(number)).rglob("*.npy")):
            continue  # nothing has elements
        dump = debug.DumpAnalyzer(tmp_path / str(number))
        for node in (n for n in dump.nodes if n.kind != "Parameter"):
            for made, before in dump.rerun_operator(node, 0):
                assert made.dtype == before.dtype and made.shape == before.shape, sample.name
                assert made.tobytes() == before.tobytes(), sample.name
            exec(compile(dump.operator_script(node, 0), sample.name, "exec"), {"__name__": "__main__"})
            told = capsys.readouterr().out
            assert "as recorded" in told and "not as recorded" not in told, sample.name
            tried += 1
    assert tried >= 30


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"])
def test_inputs_and_outputs_without_elements_are_known(tmp_path, mode):
    """They have no files."""
    x, nothing = ms.Tensor(np.ones((2, 3), np.float16)), ms.Tensor(np.ones((2, 0), np.float16))

    def function(x, nothing):
        y = ops.concat([x, nothing], 1)
        return y.sum() + ops.exp(y[:, 3:]).sum()

    run = ms.jit(function) if mode == ms.GRAPH_MODE else function
    with ms.config.context(mode=mode), debug.dump({"path": str(tmp_path), "eager": True}):
        observing.set_iteration(0)
        run(x, nothing)
    dump = debug.DumpAnalyzer(tmp_path)
    exp = next(n for n in dump.nodes if n.kind == "Exp")
    for node in (n for n in dump.nodes if n.kind != "Parameter"):
        for made, before in dump.rerun_operator(node, 0):
            np.testing.assert_array_equal(made, before, strict=True)
        assert "debug.run_operator" in dump.operator_script(node, 0)
    assert [made.shape for made, _ in dump.rerun_operator(exp, 0)] == [(2, 0)]
