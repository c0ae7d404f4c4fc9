"""`mycelia msrun --restarts`: ranks that are killed, frozen or fail, and what is told of them."""

from __future__ import annotations

import os
import re
import signal

import pytest

from mycelia.parallel import launcher
from mycelia.parallel.launcher import Job

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups and shells are POSIX")
noticed = pytest.mark.skipif(not hasattr(os, "waitid"), reason="macOS has waitid from Python 3.13 on")


def job(tmp_path, script, ranks=2, **options):
    return Job(["sh", "-c", script], ranks, log_dir=tmp_path / "logs", **options)


def test_all_start_anew_after_one_was_killed(tmp_path, capfd):
    script = """
    echo "start $MYCELIA_RESTART of $RANK_ID"
    [ $MYCELIA_RESTART = 2 ] || [ $RANK_ID = 0 ] || kill -9 $$"""
    assert launcher.run(job(tmp_path, script, restarts=2)) == 0
    logs = tmp_path / "logs"
    names = [f"worker_{r}{end}.log" for r in (0, 1) for end in ("", ".restart_1", ".restart_2")]
    assert sorted(p.name for p in logs.iterdir()) == sorted(names)
    assert (logs / "worker_1.restart_2.log").read_text() == "start 2 of 1\n"
    told = re.findall("msrun: (.*)", capfd.readouterr().out)
    how = "rank 1 has failed with exit code 137; all others were ended; 2 processes are started anew"
    assert told == [f"{how} ({i} of 2)" for i in (1, 2)]


@noticed
def test_a_frozen_rank_is_noticed(tmp_path, capfd, monkeypatch):
    """Its process lives, so that nobody misses a connection."""
    monkeypatch.setattr(launcher, "FROZEN_S", 0.0)
    script = "[ $MYCELIA_RESTART = 1 ] && exit 0; if [ $RANK_ID = 0 ]; then kill -STOP $$; fi; sleep 100000"
    assert launcher.run(job(tmp_path, script, restarts=1)) == 0
    assert "rank 0 was frozen by a signal; all others were ended; 2 proc" in capfd.readouterr().out


@noticed
def test_a_frozen_rank_may_be_the_last_failure(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(launcher, "FROZEN_S", 0.0)
    script = "if [ $MYCELIA_RESTART = $RANK_ID ]; then echo here; kill -STOP $$; fi; sleep 100000"
    assert launcher.run(job(tmp_path, script, restarts=1)) == 128 + signal.SIGSTOP
    told = capfd.readouterr().out.split("\nmsrun: ")[-1]
    assert told.startswith("rank 0 was frozen by a signal; all others were ended. ")
    assert told.endswith("worker_0.log ends:\nhere\n")  # the first one: the last has ended as it


class Stopped(launcher.Worker):
    """A worker that stands still."""

    def __init__(self):
        self.status, self.stopped_at = None, -1e9  # long ago


def test_ranks_that_all_stand_still_are_suspended_and_not_frozen():
    """Who stops a whole job lets it go on later, one rank after the other."""
    ranks = [Stopped(), Stopped()]
    waited = []

    class Changes:
        def get(self, timeout):
            waited.append(timeout)
            worker = ranks[len(waited) - 1]
            worker.status, worker.stopped_at = 0, None
            return worker

    assert launcher._supervise(ranks, Changes(), ends_frozen=True, are_all=True) == (0, None)
    assert waited == [None, None]  # for as long as it takes: of those that run none stands still alone


def test_ranks_of_this_machine_that_all_stand_still_may_be_frozen():
    """Those of others run: the job is not suspended."""
    ranks = [Stopped(), Stopped()]
    code, guilty = launcher._supervise(ranks, None, ends_frozen=True, are_all=False)
    assert code == 128 + signal.SIGSTOP and guilty in ranks


def test_a_job_that_always_fails_ends_with_the_first_traceback(tmp_path, capfd):
    script = """
    echo "Traceback (most recent call last):"
    [ $MYCELIA_RESTART = 0 ] && echo "ValueError: the first" || echo "ValueError: address in use"
    exit 4"""
    assert launcher.run(job(tmp_path, script, 1, restarts=3)) == 4
    first, last = capfd.readouterr().out.split(" ends:\n")[1:]
    assert first.splitlines()[:2] == ["Traceback (most recent call last):", "ValueError: the first"]
    assert last.splitlines() == ["Traceback (most recent call last):", "ValueError: address in use"]


def test_each_time_with_one_rank_fewer(tmp_path):
    script = 'echo "$RANK_SIZE $LOCAL_WORLD_SIZE"; exit $((RANK_SIZE > 2))'
    assert launcher.run(job(tmp_path, script, 4, restarts=5, min_worker_num=2)) == 0
    logs = tmp_path / "logs"
    assert (logs / "worker_1.restart_2.log").read_text() == "2 2\n"
    assert not list(logs.glob("*restart_3*")) and not (logs / "worker_2.restart_2.log").exists()
    assert launcher.run(job(tmp_path, "exit 1", 2, restarts=3, min_worker_num=1)) == 1
    assert (logs / "worker_0.restart_3.log").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restarts": -1}, "--restarts must be at least 0, but got -1"),
        ({"min_worker_num": 3}, r"--min_worker_num must be in \[1, 2\], but got 3"),
        ({"min_worker_num": 0}, r"--min_worker_num must be in \[1, 2\], but got 0"),
        ({"local_worker_num": 1, "node_rank": 0, "min_worker_num": 1}, "needs all processes on this machine"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Job(["x.py"], 2, **options)


TRAIN = """
import os, signal, sys
import numpy as np
import mindspore as ms
from mindspore import communication, nn, train
import mindspore.dataset as ds

communication.init()
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
ms.set_seed(3)
rank, size = communication.get_rank(), communication.get_group_size()
x = np.random.RandomState(0).randn(24, 3).astype(np.float32)


class Fate(train.Callback):
    def on_train_step_end(self, run_context):
        step = run_context.original_args().cur_step_num
        print("step", step)
        for restart, at, victim, number in ((0, 5, 1, signal.SIGKILL), (1, 8, 0, signal.SIGSTOP)):
            if (restart, at, victim) == (int(os.environ["MYCELIA_RESTART"]), step, rank):
                os.kill(os.getpid(), number)


def trained(*callbacks):
    ms.set_seed(3)
    net = nn.SequentialCell(nn.Dense(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(p=0.2), nn.Dense(4, 1))
    model = train.Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.05))
    data = ds.NumpySlicesDataset((x, x.sum(1, keepdims=True)), shuffle=True, num_shards=size, shard_id=rank)
    model.train(4, data.batch(4), callbacks=list(callbacks))
    return [p.asnumpy() for p in model.train_network.get_parameters()]


disturbed = trained(Fate(), train.TrainFaultTolerance(sys.argv[1], save_checkpoint_steps=2))
whole = trained()
print("equal", all(np.array_equal(one, other) for one, other in zip(disturbed, whole)))
"""


@noticed
def test_a_training_goes_on_to_the_same_bits_after_ranks_were_killed_and_frozen(tmp_path, monkeypatch):
    """Real processes, for no others can be killed; two of them start three times, which takes its seconds."""
    monkeypatch.setattr(launcher, "FROZEN_S", 0.0)
    script, logs = tmp_path / "train.py", tmp_path / "logs"
    script.write_text(TRAIN)
    assert launcher.run(Job([str(script), str(tmp_path / "states")], 2, log_dir=logs, restarts=2)) == 0
    for rank in (0, 1):
        said = (logs / f"worker_{rank}.restart_2.log").read_text()
        assert "equal True\n" in said and "step 12\n" in said
    for restart, firsts in ((1, (3, 5)), (2, (5, 7))):  # the file of the later one may not have been whole
        said = (logs / f"worker_0.restart_{restart}.log").read_text()
        assert int(re.search(r"^step (\d+)$", said, re.MULTILINE)[1]) in firsts
