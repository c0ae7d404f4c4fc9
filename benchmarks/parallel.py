"""Collectives and steps of data-parallel training between processes of one machine, beside torch with gloo
and mpi4py, how long a training needs to go on after a rank was killed, and what a divided optimizer takes.

Sides take turns, each as a job of its own with one thread a process. Times are of all ranks together: CPU
seconds are summed, wall time is the median on rank 0. Behind `rank SIDE CASE` this script is one process of a
job, and prints both; behind `recovering` one of a job that loses a rank. The python of MYCELIA_BENCH_TORCH
has torch and NumPy, mpi4py and mpiexec belong to this one; a peer that is not there is left out.
"""

import importlib.util
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import peers

SIZES = {"4 KB": 1 << 10, "64 KB": 1 << 14, "25 MB": 25 << 18}  # elements of float32
STEPS = {"LeNet b32": 400, "BERT-mini b8 t128": 8, "ResNet-18 224 b4": 6}
RANKS = (2, 4)
SIDES = ("mycelia", "sockets", "mpi", "mpi4py", "gloo")  # mpi: the engine; mpi4py: without Mycelia
RATIOS = (("mycelia", "gloo"), ("mycelia", "mpi4py"), ("mpi", "gloo"), ("mpi", "mpi4py"))
NOTE = (
    "One thread a process, {} cores. Wall time of an all_reduce or a step on rank 0 (median), and CPU time "
    "of all ranks together; medians of {} rounds by turns. sockets: Mycelia without shared memory; gloo: of "
    "torch, steps by DistributedDataParallel; mpi: Mycelia's engine of this name, mpi4py: its Allreduce. "
    "Ratios round by round; bars: wall time of all_reduce <= 1.0 to gloo and <= 1.1 to mpi4py, "
    "CPU time of steps <= 0.7; to as many processes that train alone, each on as large a batch, <= 1.10. "
    "Load before: {:.1f}."
)


def all_reduce_of(side: str, count: int):
    """What reduces `count` numbers."""
    import numpy as np

    values = np.random.default_rng(0).standard_normal(count, np.float32)
    if side == "gloo":
        import torch
        from torch import distributed

        given = torch.from_numpy(values)
        return lambda: distributed.all_reduce(given)
    if side == "mpi4py":
        from mpi4py import MPI

        total = np.empty_like(values)
        return lambda: MPI.COMM_WORLD.Allreduce(values, total)
    from mycelia.engine.communication import world

    communicator = world.group("bench", world.WORLDS[0])
    return lambda: communicator.all_reduce(values)


def step_of(side: str, case: str):
    """What trains a network one step on a batch as large as that of one process."""
    from models_data import training_batch

    if side == "gloo":
        from models_torch import training_step
    else:
        from models import training_step
    return training_step(case, *training_batch(case), parallel=True)


def rank(side: str, case: str) -> None:
    """One process of a job."""
    number = int(os.environ.get("RANK", "0"))
    if side == "gloo":
        import torch

        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo")
    elif side == "mpi4py":
        from mpi4py import MPI

        number = MPI.COMM_WORLD.Get_rank()
    else:
        import mycelia as ms

        ms.communication.init()
        number = ms.communication.get_rank()
    size = SIZES.get(case)
    call = step_of(side, case) if size is None else all_reduce_of(side, size)
    count = STEPS[case] if size is None else 40 if size > 1 << 20 else 400
    for _ in range(max(3, count // 10)):
        call()
    walls, cpu = [], time.process_time()
    for _ in range(count):
        start = time.perf_counter()
        call()
        walls.append(time.perf_counter() - start)
    cpu = time.process_time() - cpu
    if side == "gloo":  # its threads end badly where another process has gone
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    told = {"rank": number, "wall": statistics.median(walls), "cpu": cpu / count}
    print("measured", json.dumps(told), flush=True)


def job(side: str, case: str, ranks: int) -> dict[str, float]:
    """Wall time on rank 0 and CPU time of all, in seconds."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    python = os.environ["MYCELIA_BENCH_TORCH"] if side == "gloo" else sys.executable
    environment = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks),
        "MYCELIA_THREADS": "1", "OMP_NUM_THREADS": "1", "MYCELIA_JOB_TOKEN": str(port),
        "MYCELIA_SHARED_MEMORY": str(int(side != "sockets")),
    }  # fmt: skip
    if side.startswith("mpi"):
        for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"):
            del environment[name]
        environment["MYCELIA_COMMUNICATOR"] = "mpi"
        return _of_mpiexec([python, __file__, "rank", side, case], environment, ranks)
    processes = [
        subprocess.Popen(
            [python, __file__, "rank", side, case], env={**environment, "RANK": str(i), "LOCAL_RANK": str(i)},
            stdout=subprocess.PIPE, text=True,
        )
        for i in range(ranks)
    ]  # fmt: skip
    told = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit(f"{side}, {case}: a rank has failed")
    return _together([json.loads(text.rpartition("measured ")[2].splitlines()[0]) for text in told])


def _of_mpiexec(command: list[str], environment: dict[str, str], ranks: int) -> dict[str, float]:
    told = subprocess.run(
        ["mpiexec", "-n", str(ranks), *command], env=environment, stdout=subprocess.PIPE, text=True
    )
    if told.returncode:
        sys.exit(f"{' '.join(command[2:])}: a rank has failed")
    return _together([json.loads(text) for text in re.findall(r"\{.*?\}", told.stdout)])


def _together(found: list[dict[str, float]]) -> dict[str, float]:
    return {"wall": min(found, key=lambda one: one["rank"])["wall"], "cpu": sum(one["cpu"] for one in found)}


def recovering(folder: str, how: str) -> None:
    """One process of a training that loses rank 1 once; prints when steps end."""
    import signal

    import numpy as np
    from models import LeNet

    import mycelia as ms
    from mycelia import nn, train

    ms.communication.init()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(0)

    class Lose(train.Callback):
        def on_train_step_end(self, run_context):
            print("measured", json.dumps({"time": time.time()}), flush=True)
            is_due = run_context.original_args().cur_step_num == 50 and os.environ["RANK_ID"] == "1"
            if is_due and os.environ["MYCELIA_RESTART"] == "0":
                os.kill(os.getpid(), signal.Signals[how])

    rows = np.random.default_rng(0).standard_normal((1024, 1, 28, 28), np.float32)
    data = ms.dataset.NumpySlicesDataset((rows, np.arange(1024, dtype=np.int32) % 10)).batch(32)
    net = LeNet()
    model = train.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params()))
    keeps = train.TrainFaultTolerance(folder, save_checkpoint_steps=20)
    model.train(2, data, callbacks=[Lose(), keeps])


def recovery(how: str) -> float:
    """Seconds from the last step before rank 1 was lost to the next one."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "mycelia", "msrun", "--worker_num", "2", "--restarts", "1",
            "--log_dir", f"{folder}/logs", sys.executable, __file__, "recovering", f"{folder}/states", how,
        ]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{done.stdout}\nrecovery: a rank has failed")
        before, after = (
            [json.loads(line[9:])["time"] for line in open(f"{folder}/logs/worker_1{end}.log")
             if line.startswith("measured")]
            for end in ("", ".restart_1")
        )  # fmt: skip
    return after[0] - before[-1]


def recoveries(rounds: int) -> None:
    rows = []
    for how in ("SIGKILL", "SIGSTOP"):
        found = [recovery(how) for _ in range(rounds)]
        rows.append([f"LeNet, {how}", f"{statistics.median(found):.2f} s", f"{max(found):.2f} s"])
    note = (
        f"2 ranks; from the last step before rank 1 was lost to its next step, in {rounds} rounds. "
        "Bar: 10 s. A rank that stands still is waited for 3 s."
    )
    peers.report("Going on after a lost rank", rows, note, ["case", "median", "longest"], writes())


def holding(divided: str) -> None:
    """One process of a training with Adam; prints the bytes a weight that it holds between steps."""
    import numpy as np

    import mycelia as ms
    from mycelia import nn

    ms.communication.init()
    ms.set_auto_parallel_context(
        parallel_mode="data_parallel", gradients_mean=True, enable_parallel_optimizer=divided == "True"
    )
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(0)
    net = nn.SequentialCell(*[nn.Dense(2048, 2048) for _ in range(10)])
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params()))
    x = ms.Tensor(np.ones((4, 2048), np.float32))
    for _ in range(2):
        step(x, x).asnumpy()
    count = sum(p.size for p in net.trainable_params())
    most = ms.runtime.max_memory_allocated()
    told = {"held": ms.runtime.memory_allocated() / count, "most": most / count}
    print("measured", json.dumps(told), flush=True)


def memory() -> None:
    rows = []
    for divided in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            command = [
                sys.executable, "-m", "mycelia", "msrun", "--worker_num", "4", "--log_dir", folder,
                sys.executable, __file__, "holding", str(divided),
            ]  # fmt: skip
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            text = open(f"{folder}/worker_3.log").read()
        told = json.loads(text.rpartition("measured ")[2].splitlines()[0])
        formula = 4 + 8 / (4 if divided else 1)
        rows.append(
            ["enable_parallel_optimizer" if divided else "data parallel", f"{told['held']:.3f}",
             f"{formula:g}", f"{told['held'] / formula:.3f}", f"{told['most']:.2f}"]
        )  # fmt: skip
    note = (
        "Bytes for each of 42 million float32 weights on one of 4 ranks: what weights and both moments of "
        "Adam take between steps, by the formula of ZeRO (bar: within 5 %), and the most that a step takes, "
        "with gradients (4 bytes) and what else is there for a moment."
    )
    head = ["optimizer", "held", "formula", "to it", "most"]
    peers.report("Memory of optimizers divided among ranks", rows, note, head, writes())


def writes() -> bool:
    return "--no-write" not in sys.argv and not peers.option("--case")


def main() -> None:
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    rounds = int(peers.option("--rounds", "3"))
    missing = set() if "MYCELIA_BENCH_TORCH" in os.environ else {"gloo"}
    if not (shutil.which("mpiexec") and importlib.util.find_spec("mpi4py")):
        missing |= {"mpi", "mpi4py"}
    every = [side for side in SIDES if side not in missing]
    rows = []
    for case in (*SIZES, *STEPS):
        if peers.option("--case") not in case:
            continue
        for ranks in RANKS[: 1 if case in STEPS else None]:
            sides = [side for side in every if case in SIZES or side != "mpi4py"]
            found = []
            for _ in range(rounds):
                found.append({side: job(side, case, ranks) for side in sides})
                if case in STEPS:
                    found[-1]["alone"] = job("mycelia", case, 1)
            for what in ("wall", "cpu"):
                cells = []
                for side in every:
                    times = [one[side][what] for one in found if side in one]
                    cells.append(f"{statistics.median(times) * 1e3:.4g} ms" if times else "-")
                for side, peer in RATIOS:
                    ratios = [
                        one[side][what] / one[peer][what] for one in found if {side, peer} <= one.keys()
                    ]
                    cells.append(f"{statistics.median(ratios):.3f}" if ratios else "-")
                extra = "-"
                if what == "cpu" and case in STEPS:
                    times = [one["mycelia"]["cpu"] / (ranks * one["alone"]["cpu"]) for one in found]
                    extra = f"{statistics.median(times):.3f}"
                rows.append([case, str(ranks), what, *cells, extra])
    names = ["Mycelia" if side == "mycelia" else side for side in every]
    to = [f"to {peer}" if side == "mycelia" else f"{side} to {peer}" for side, peer in RATIOS]
    head = ["case", "ranks", "time", *names, *to, "to as many alone"]
    if rows:
        peers.report("Processes of one machine", rows, NOTE.format(cores, rounds, load), head, writes())
    if peers.option("--case") in "recovery":
        recoveries(rounds)
    if peers.option("--case") in "memory":
        memory()


if __name__ == "__main__":
    roles = {"rank": rank, "recovering": recovering, "holding": holding}
    if sys.argv[1:2] and sys.argv[1] in roles:
        roles[sys.argv[1]](*sys.argv[2:])
    else:
        main()
