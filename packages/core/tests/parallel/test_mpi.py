"""The engine `mpi`: two real processes of mpiexec, with mpi4py and an MPI library from wheels."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py", reason="mpi4py talks to MPI")
MPIEXEC = shutil.which("mpiexec")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="mpiexec starts the processes")

SCRIPT = """
import numpy as np
import mycelia as ms
from mycelia.communication import comm_func, get_local_rank, get_rank, init

init()
rank = get_rank()
assert ms.parallel.comm.world.current().communicator.engine == "mpi" and get_local_rank() == rank
large = comm_func.all_reduce(ms.Tensor(np.full(100_000, rank + 1.0, np.float32)))[0]
half = comm_func.all_reduce(ms.Tensor(np.full(50_000, rank + 1.0), ms.bfloat16))[0]
assert half.dtype is ms.bfloat16 and half[-1].item() == 3
sent = comm_func.recv(ms.Tensor([0.0]), 0) if rank else comm_func.send(ms.Tensor([7.0]), 1)
try:
    comm_func.all_reduce(ms.Tensor([1.0])) if rank else comm_func.barrier()
except RuntimeError as error:
    agreed = "rank 0 calls barrier()" in str(error) and "rank 1 calls all_reduce" in str(error)
print(rank, large.asnumpy().max(), sent, agreed, flush=True)
"""


def test_two_processes_of_mpiexec_reduce_send_and_find_that_they_differ(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run([MPIEXEC, "-n", "2", sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 3.0 None True", "1 3.0 [7.] True"]
