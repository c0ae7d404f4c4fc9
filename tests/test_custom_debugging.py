"""What MindSpore 1.1's page on custom debugging information shows runs here as it stands there.

`custom_debugging` has its scripts, configurations and printed output, unmodified but for the path of a
dump, which the page leaves to the reader. A fragment is run within what the page presupposes: imports, a
network, data.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mycelia.io import async_dump
from mycelia.train import Callback

PAGE = Path(__file__).parent / "custom_debugging"

GIVEN = """\
import time
import numpy as np
from mindspore import Model, Tensor, context, dataset as ds, nn, set_seed
from mindspore.nn import Accuracy
from mindspore.train.callback import Callback, LossMonitor, ModelCheckpoint, SummaryCollector
from mindspore.train.serialization import load_checkpoint, save_checkpoint

def data(count):
    x = np.random.RandomState(0).uniform(-1, 1, (count, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int32)
    return ds.NumpySlicesDataset((x, y), shuffle=False).batch(16)

set_seed(1)
epoch, dataset, ds_eval = 2, data(64), data(32)
net = nn.Dense(4, 2)
net_loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
net_opt = nn.Momentum(net.trainable_params(), 0.5, 0.9)
model = Model(net, net_loss, net_opt, metrics={"accuracy"})
"""


def text(name: str) -> str:
    return (PAGE / f"{name}.txt").read_text(encoding="utf-8")


@pytest.fixture
def run(tmp_path):
    """``run(source, **variables)``: what `mycelia run` makes of a script in a folder of its own."""

    def call(source: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess:
        (tmp_path / "script.py").write_text(source, encoding="utf-8")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("MYCELIA_", "GLOG", "MS_"))}
        command = [sys.executable, "-m", "mycelia", "run", "script.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env={**clean, **variables}, capture_output=True, text=True
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return call


# ---- callbacks and metrics ---------------------------------------------------------------------------------


def test_checkpoints_losses_and_summaries_come_from_three_callbacks(run, tmp_path):
    done = run(GIVEN + text("train"))
    losses = re.findall(r"^epoch: (\d) step: (\d), loss is \d", done.stdout, re.M)
    assert losses == [
        ("1", "1"),
        ("1", "2"),
        ("1", "3"),
        ("1", "4"),
        ("2", "1"),
        ("2", "2"),
        ("2", "3"),
        ("2", "4"),
    ]
    assert list(tmp_path.glob("CKP-*.ckpt")) and list((tmp_path / "summary_dir").glob("*.summary.*"))


def test_the_base_class_has_these_methods():
    given: dict = {}
    exec(text("callback"), given)
    told = {name: f for name, f in vars(given["Callback"]).items() if inspect.isfunction(f)}
    assert set(told) == {"begin", "epoch_begin", "epoch_end", "step_begin", "step_end", "end"}
    for name, function in told.items():
        taken = [list(inspect.signature(f).parameters) for f in (getattr(Callback, name), function)]
        assert taken[0] == taken[1], name


def test_training_stops_at_its_time(run):
    # A time of -1 minutes is over at the first step, whatever a clock says.
    done = run(GIVEN + text("stop_at_time") + "model.train(epoch, dataset, callbacks=[StopAtTime(-1)])\n")
    assert re.fullmatch(r"epoch:  1  step:  1  loss:  \d\.\d+\n", done.stdout), done.stdout


def test_the_best_checkpoint_is_kept(run, tmp_path):
    after = """
model.train(epoch, dataset, callbacks=[SaveCallback(model, ds_eval)])
print(sorted(load_checkpoint(str(model.eval(ds_eval)["accuracy"]) + ".ckpt"))[:2])
"""
    done = run(GIVEN + text("save_callback") + after)
    *saved, names = done.stdout.splitlines()
    found = [
        float(re.fullmatch(r"Save the maximum accuracy checkpoint,the accuracy is (.*)", s)[1]) for s in saved
    ]
    assert found == sorted(set(found)) and found[-1] > 0.8
    assert sorted(p.name for p in tmp_path.glob("*.ckpt")) == sorted(f"{v}.ckpt" for v in found)
    assert names == "['bias', 'global_step']"


def test_metrics_of_an_evaluation(run):
    after = """
model.train(3, dataset)
result = model.eval(ds_eval)
truth = np.concatenate([y.asnumpy() for _, y in ds_eval.create_tuple_iterator()])
given = np.concatenate([net(x).asnumpy().argmax(1) for x, _ in ds_eval.create_tuple_iterator()])
hits = [int(((given == c) & (truth == c)).sum()) for c in (0, 1)]
precision = [h / int((given == c).sum()) for c, h in enumerate(hits)]
recall = [h / int((truth == c).sum()) for c, h in enumerate(hits)]
assert list(result) == ["accuracy", "loss", "precision", "recall", "f1_score"]
np.testing.assert_allclose(result["accuracy"], (given == truth).mean())
np.testing.assert_allclose(result["precision"], precision)
np.testing.assert_allclose(result["recall"], recall)
np.testing.assert_allclose(result["f1_score"], [2 * p * r / (p + r) for p, r in zip(precision, recall)])
print("as defined")
"""
    assert run(GIVEN + text("metrics") + after).stdout == "as defined\n"


def test_accuracy_is_what_is_printed_there(run):
    name, value = run(GIVEN + text("accuracy")).stdout.rsplit(maxsplit=1)
    assert (name, round(float(value), 4)) == ("Accuracy is", 0.6667)  # the page has four digits


# ---- Print -------------------------------------------------------------------------------------------------


def test_print_prints_what_is_printed_there(run):
    assert run(text("print_demo")).stdout == text("print_demo.output")


# ---- dumps -------------------------------------------------------------------------------------------------

SIMPLE = """\
import numpy as np
from mindspore import Tensor, context, nn, ops
context.set_context(mode=context.GRAPH_MODE, device_target="TARGET", reserve_class_name_in_scope=False)

class Net(nn.Cell):
    def construct(self, x, y):
        return ops.add(ops.add(x, x), y)

x = np.arange(36).reshape(1, 3, 3, 4).astype(np.float32)
Net()(Tensor(x), Tensor(-x))
"""
X = np.arange(36, dtype=np.float32).reshape(1, 3, 3, 4)


def configuration(name: str, folder: Path, **more) -> str:
    """The page's configuration with a path, written where its variable says; the variable's value."""
    content = json.loads((PAGE / f"{name}.json").read_text())
    content["common_dump_settings"].update(path=str(folder / "absolute_path"), **more)
    path = folder / "data_dump.json"
    path.write_text(json.dumps(content))
    return str(path)


def test_the_synchronous_dump_names_its_files_as_there(run, tmp_path):
    where = configuration("data_dump", tmp_path, layout="bin")
    run(SIMPLE.replace("TARGET", "CPU"), MINDSPORE_DUMP_CONFIG=where)
    folder = tmp_path / "absolute_path" / "ResNet50" / "device_0" / "iteration_0"
    for name, expected in (("input_0", 2 * X), ("input_1", -X), ("output_0", X)):
        path = folder / f"Default--Add-op1_{name}_shape_1_3_3_4_Float32_DefaultFormat.bin"
        np.testing.assert_array_equal(np.fromfile(path, np.float32), expected.ravel())


def test_the_synchronous_dump_has_the_newer_names_where_no_layout_is_said(run, tmp_path):
    where = configuration("data_dump", tmp_path)
    run(SIMPLE.replace("TARGET", "CPU"), MINDSPORE_DUMP_CONFIG=where)
    folder = tmp_path / "absolute_path" / "rank_0" / "ResNet50" / "0" / "0"
    (made,) = folder.glob("Add.Default_Add-op1.*.output.0.DefaultFormat.Float32.npy")
    np.testing.assert_array_equal(np.load(made), X)


def test_the_asynchronous_dump_is_converted_as_there(run, tmp_path):
    where = configuration("async_dump", tmp_path)
    run(SIMPLE.replace("TARGET", "Ascend"), MINDSPORE_DUMP_CONFIG=where)
    folder = tmp_path / "absolute_path" / "rank_0" / "ResNet50" / "0" / "0"
    files = {p.name.rpartition("-")[2].partition(".")[0]: p for p in folder.iterdir()}
    assert re.fullmatch(r"Add\.Default_Add-op1\.\d+\.\d+\.\d+", files["op1"].name), files
    np.testing.assert_array_equal(async_dump.read(files["op1"]).outputs[0].plain(), X)
    command = [
        sys.executable,
        "-m",
        "mycelia.debug.precision",
        "convert",
        "-d",
        folder,
        "-out",
        tmp_path / "npy",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = (tmp_path / "npy").glob("Add.Default_Add-op1.*.output.0.1_3_3_4.float32.npy")
    np.testing.assert_array_equal(np.load(made), X)


# ---- the run recorder and logs -----------------------------------------------------------------------------

FAILS = """\
import numpy as np
from mindspore import Tensor, context, nn, ops

class Net(nn.Cell):
    def construct(self, x):
        ops.Assert()(x.sum() > 5, [x])
        return ops.exp(x)

context.set_context(mode=context.GRAPH_MODE)
FROM_THE_PAGE
Net()(Tensor(np.ones(3, np.float32)))
"""


def test_the_recorder_leaves_graphs_orders_and_memory_of_a_run_that_failed(run, tmp_path):
    content = (
        (PAGE / "mindspore_config.json").read_text().replace("/home/mindspore/rdr", str(tmp_path / "rdr"))
    )
    (tmp_path / "mindspore_config.json").write_text(content)
    done = run(FAILS.replace("FROM_THE_PAGE", text("rdr")), code=1)
    assert "Traceback" in done.stderr
    names = {p.name.partition(".2")[0] for p in (tmp_path / "rdr" / "rank_0" / "rdr").iterdir()}
    for kind in (
        "SESSION.graph_build.0",
        "SESSION.graph_exec_order.0",
        "RUNTIME_FRAMEWORK.mem_address_list.0",
    ):
        assert kind in names, names
    assert any(name.startswith("PIPELINE.") for name in names)


def test_levels_of_modules_stand_over_the_general_one(run):
    def parts(levels: str) -> set[tuple[str, str]]:
        lines = run(SIMPLE.replace("TARGET", "CPU"), GLOG_v="1", MS_SUBMODULE_LOG_v=levels).stderr
        return set(re.findall(r"^\[(\w+)\] (\w+)\(", lines, re.M))

    assert parts("{PARSER:2,ANALYZER:2}") == {("INFO", "SESSION")}  # as the page has it; no warning
    assert parts("{PARSER:2,SESSION:2}") == set()


def test_logs_go_to_files_where_the_variables_say_so(run, tmp_path):
    run(
        SIMPLE.replace("TARGET", "CPU"), GLOG_v="1", GLOG_logtostderr="0", GLOG_log_dir=str(tmp_path / "logs")
    )
    names = [p.name for p in (tmp_path / "logs").rglob("*") if p.is_file()]
    assert any(re.match(r".+\..+\..+\.log\.INFO\.\d", name) for name in names), names
    assert any(re.match(r"mycelia\.log\.\d", name) for name in names), names
