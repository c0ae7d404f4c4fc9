"""`mycelia launch --engine ray`: ranks on a real Ray cluster, of this machine."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.base import errors
from mycelia.parallel import launcher
from mycelia.parallel.launcher import Job

ray = pytest.importorskip("ray", reason="the extra [ray] brings it")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups and shells are POSIX")

from mycelia.parallel import ray_launcher  # noqa: E402

TRAINING = """
import os, signal, sys
import numpy as np
import mycelia as ms
from mycelia import nn
from mycelia.communication import get_rank, init
from mycelia.train import TrainFaultTolerance

init()
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
ms.set_seed(4)
net = nn.SequentialCell(nn.Dense(3, 5), nn.Dropout(p=0.2), nn.Dense(5, 1))
rows = np.random.default_rng(1).normal(size=(24, 3)).astype(np.float32)
data = ms.dataset.NumpySlicesDataset(
    (rows, rows.sum(1, keepdims=True)), shuffle=True, num_shards=2, shard_id=get_rank()
).batch(2)


class Killed(ms.train.Callback):
    def on_train_step_end(self, run_context):
        step = run_context.original_args().cur_step_num
        if sys.argv[2] == "killed" and os.environ["MYCELIA_RESTART"] == "0" and (step, get_rank()) == (9, 1):
            os.kill(os.getpid(), signal.SIGKILL)


keeps = TrainFaultTolerance(sys.argv[1] + "/states", save_checkpoint_steps=2)
model = ms.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.05))
model.train(3, data, callbacks=[keeps, Killed()])
ms.save_checkpoint(net, f"{sys.argv[1]}/end_{get_rank()}.ckpt")
"""


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One for all tests: each start takes seconds."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def run(monkeypatch):
    """`ray_launcher.run` on the cluster that is there already."""

    def run(job):
        job = replace(job, master_addr=ray.util.get_node_ip_address(), program="launch")
        return launcher.run(job, lambda *start: ray_launcher._run_once(ray, 0.5, *start))

    return run


def test_a_killed_rank_goes_on_from_its_last_state_to_the_same_weights(tmp_path, run, capfd):
    (tmp_path / "train.py").write_text(TRAINING)

    def job(folder, how, **options):
        (tmp_path / folder).mkdir()
        command = [sys.executable, str(tmp_path / "train.py"), str(tmp_path / folder), how]
        return Job(command, 2, log_dir=tmp_path / folder / "logs", **options)

    assert launcher.run(job("undisturbed", "whole")) == 0
    assert run(job("disturbed", "killed", restarts=1)) == 0
    told = capfd.readouterr().out
    assert "launch: rank 1 has failed with exit code 137; all others were ended; 2 processes are" in told
    for rank in range(2):
        expected, found = (
            ms.load_checkpoint(str(tmp_path / f / f"end_{rank}.ckpt")) for f in ("undisturbed", "disturbed")
        )
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name].asnumpy(), value.asnumpy(), name)
    assert (tmp_path / "disturbed" / "logs" / "worker_1.restart_1.log").exists()


def test_the_guilty_rank_is_blamed_and_nobody_is_left(tmp_path, run, capfd):
    script = f"""
    echo $$ > {tmp_path}/$RANK_ID.pid
    if [ $RANK_ID = 0 ]; then sleep 0.5; echo "rank 1 takes no part in it"; exit 3; fi
    echo "it is me"; exit 7"""
    assert run(Job(["sh", "-c", script], 2, log_dir=tmp_path)) == 7
    told = capfd.readouterr().out
    assert "launch: rank 1 has failed with exit code 7; all others were ended." in told
    assert told.rstrip().endswith("it is me")
    for rank in range(2):
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / f"{rank}.pid").read_text()), 0)


def is_alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_rank_whose_actor_is_killed_is_lost_with_it(tmp_path, run, capfd):
    # The actor has told the guard of its process by then.
    script = f"echo $$ > {tmp_path}/$RANK_ID.pid; sleep 2; [ $RANK_ID = 0 ] || kill -9 $PPID; sleep 100000"
    assert run(Job(["sh", "-c", script], 2, log_dir=tmp_path)) == 137
    assert "launch: rank 1 has failed with exit code 137" in capfd.readouterr().out
    until = time.monotonic() + 60.0
    for rank in range(2):
        while is_alive(int((tmp_path / f"{rank}.pid").read_text())):
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_cluster_without_room_is_an_error(tmp_path, run):
    with pytest.raises(errors.MyceliaRuntimeError, match="no room for 9 processes of 0.5 CPUs within 1 s"):
        run(Job(["true"], 9, log_dir=tmp_path, cluster_time_out=1))
