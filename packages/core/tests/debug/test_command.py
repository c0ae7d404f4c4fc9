"""As a user: `MINDSPORE_DUMP_CONFIG=data_dump.json mycelia run script.py`, then `mycelia-debug DIR`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = """
import sys
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.{mode})
ms.set_seed(1)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, pad_mode="valid")
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(8, 3)

    def construct(self, x):
        y = self.flatten(self.relu(self.conv(x)))
        {line}
        return self.fc(y)

net = nn.WithLossCell(Net(), nn.MSELoss())
step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
step.set_train()
rng = np.random.default_rng(0)
for i in range(3):
    x = Tensor(rng.standard_normal((2, 1, 4, 4)).astype(np.float32))
    loss = step(x, Tensor(np.ones((2, 3), np.float32)))
    np.save(f"loss{{i}}.npy", loss.asnumpy())
np.save("weight.npy", net.trainable_params()[0].asnumpy())
"""

NAME = re.compile(
    r"^[A-Za-z0-9]+\.[^.]+\.\d+\.\d+\.\d{16}\.(input|output)\.\d+\.[A-Za-z0-9_]+\.[A-Za-z0-9]+\.npy$"
)


def run(folder: Path, line: str = "pass", mode: str = "GRAPH_MODE", **common) -> Path:
    """Trains the network under a dump into `folder`/dump."""
    config = {
        "common_dump_settings": {
            "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all",
            "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0, 1],
            "op_debug_mode": 0, **common,
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }  # fmt: skip
    (folder / "data_dump.json").write_text(json.dumps(config))
    script = folder / "train.py"
    script.write_text(SCRIPT.format(line=line, mode=mode))
    environment = {**os.environ, "MINDSPORE_DUMP_CONFIG": str(folder / "data_dump.json")}
    command = [sys.executable, "-m", "mycelia", "run", str(script)]
    subprocess.run(command, check=True, cwd=folder, env=environment, capture_output=True, text=True)
    return folder / "dump"


def report(folder: Path, *options: str) -> subprocess.CompletedProcess:
    code = "from mycelia.debug.cli import main; main()"
    command = [sys.executable, "-c", code, str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "400"})


def test_a_training_leaves_the_folders_and_names_of_mindspore(tmp_path):
    rank = run(tmp_path) / "rank_0"
    assert json.loads((rank / ".dump_metadata/config.json").read_text())["device_target"] == "CPU"
    assert (rank / ".dump_metadata/data_dump.json").read_text() == (tmp_path / "data_dump.json").read_text()
    assert sorted(p.name for p in (rank / "Net/0").iterdir() if p.name.isdigit()) == ["0", "1", "2"]
    names = [p.name for p in (rank / "Net/0/1").iterdir()]
    assert names and all(map(NAME.match, names))
    order = (rank / "execution_order/ms_execution_order_graph_0.csv").read_text().splitlines()
    assert order[:3] == [
        "NodeExecutionOrder-FullNameWithScope",
        "Default/network-WithLossCell/_backbone-Net/conv-Conv2d/Conv2D-op0",
        "Default/network-WithLossCell/_backbone-Net/relu-ReLU/ReLU-op0",
    ]
    assert any(
        n.startswith("Gradients/Default/network-WithLossCell/_backbone-Net/conv-Conv2d/Grad_Conv2D/")
        for n in order
    )
    runs = rank / "execution_order/ms_global_execution_order_graph_0.csv"
    assert runs.read_text() == "0\n1\n2\n"
    text = (rank / "graphs/ms_output_trace_code_graph_0.ir").read_text()
    assert (
        f"# In file {tmp_path}/train.py:19, 8~49/        y = self.flatten(self.relu(self.conv(x)))/" in text
    )
    assert not [p for p in rank.rglob("*") if p.name.endswith(".tmp")]


def test_dumped_tensors_are_those_of_the_run_bit_for_bit(tmp_path):
    step = run(tmp_path) / "rank_0/Net/0"
    losses = [np.load(next((step / str(i)).glob("SquaredError.*output.0.*"))) for i in range(3)]
    assert [loss.tobytes() for loss in losses] == [
        np.load(tmp_path / f"loss{i}.npy").tobytes() for i in range(3)
    ]
    weight = next((step / "2").glob("ApplyMomentum.*op0.*output.0.*"))
    assert np.load(weight).tobytes() == np.load(tmp_path / "weight.npy").tobytes()
    before = next((step / "2").glob("Parameter.conv_weight.*"))
    after = next((step / "1").glob("ApplyMomentum.*op0.*output.0.*"))
    assert np.load(before).tobytes() == np.load(after).tobytes()


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
def test_the_first_operator_that_made_a_nan_is_named_with_its_line(tmp_path, mode):
    found = report(run(tmp_path, "y = ops.log(y - 100.0) * 2", mode), "--json")
    first = json.loads(found.stdout)["first"]
    assert first["op_full_name"] == "Default/network-WithLossCell/_backbone-Net/Log-op0"
    assert (first["iteration"], first["slot"], first["kind"], first["born"]) == (0, 0, "nan", True)
    assert (first["count"], first["size"]) == (16, 16)
    assert first["source"][0] == f"{tmp_path / 'train.py'}:20 y = ops.log(y - 100.0) * 2"


def test_the_report_says_where_to_look_and_fails_if_asked(tmp_path):
    dump = run(tmp_path, "y = ops.log(y - 100.0) * 2")
    found = report(dump, "--fail")
    assert found.returncode == 3
    assert (
        "The first NaN: Default/network-WithLossCell/_backbone-Net/Log-op0, output 0, iteration 0"
        in found.stdout
    )
    assert f"at {tmp_path / 'train.py'}:20: y = ops.log(y - 100.0) * 2" in found.stdout


def test_a_healthy_run_has_nothing_to_tell(tmp_path):
    found = report(run(tmp_path, iteration="1"), "--fail")
    assert found.returncode == 0 and "All values are finite." in found.stdout
    assert "iterations 1" in found.stdout


def test_a_malformed_file_stops_the_first_compile_and_names_the_field(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as error:
        run(tmp_path, saved_data="all")
    assert (
        "the field 'saved_data' must be one of 'tensor', 'statistic', 'full', but got 'all'"
        in error.value.stderr
    )


def test_a_folder_without_a_dump_is_an_error(tmp_path):
    found = report(tmp_path)
    assert found.returncode == 1 and "holds no dump" in found.stderr


CHILDREN = """
import os, subprocess, sys
import numpy as np
import mycelia as ms
from mycelia import Tensor, ops

ms.set_context(mode=ms.GRAPH_MODE)
net = ms.jit(lambda x: ops.exp(x) * 2.0)
value = float(sys.argv[1])
net(Tensor(np.full(3, value, np.float32)))
if value == 1.0:
    subprocess.run([sys.executable, __file__, "2.0"], check=True)
    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            net(Tensor(np.full(3, 3.0, np.float32)))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    net(Tensor(np.full(3, 4.0, np.float32)))
"""


def test_processes_that_a_dumped_one_starts_have_folders_of_their_own(tmp_path):
    (tmp_path / "script.py").write_text(CHILDREN)
    config = {"common_dump_settings": {"path": str(tmp_path / "dump")}, "e2e_dump_settings": {"enable": True}}
    (tmp_path / "dump.json").write_text(json.dumps(config))
    environment = {**os.environ, "MYCELIA_DUMP_CONFIG": str(tmp_path / "dump.json")}
    environment.pop("MYCELIA_DUMP_OWNER", None)
    subprocess.run([sys.executable, tmp_path / "script.py", "1.0"], env=environment, check=True)
    found = {}
    for rank in sorted((tmp_path / "dump").rglob("rank_0")):
        inputs = [np.load(p)[0] for p in sorted(rank.rglob("Exp.*.input.0.*.npy"))]
        found[rank.parent.name.partition("_")[0]] = found.get(rank.parent.name.partition("_")[0], []) + inputs
    assert sorted(found["dump"]) == [1.0, 4.0]
    assert sorted(found["process"]) == ([2.0, 3.0] if hasattr(os, "fork") else [2.0])
    assert list((tmp_path / "dump" / "rank_0").rglob("*.tmp")) == []
