"""How long all_reduce takes between processes of this machine: a rank of it, and the job that starts all."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from mycelia.engine.base import errors
from mycelia.parallel import launcher
from mycelia.parallel.planning.network import Network, fitted

SIZES = (4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20)  # bytes
_ROUNDS = 9


def measured(ranks: int) -> Network:
    """The network between `ranks` processes of this machine: one level, fitted to medians of `SIZES`.

    Errors: ValueError below two ranks, RuntimeError if the job fails; its log has been shown.
    """
    if ranks < 2:
        raise errors.value_error("plan", f"a network is measured between two ranks or more, but got {ranks}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "times.json")
        command = [sys.executable, "-m", __name__, str(out)]
        code = launcher.run(launcher.Job(command, ranks, log_dir=Path(folder), tail=()))
        if code:
            raise errors.error(
                errors.MyceliaRuntimeError, "plan", f"the processes that measure ended with {code}"
            )
        return Network((fitted("machine", ranks, json.loads(out.read_text())),))


def _rank(out: Path) -> None:
    """What each process does; rank 0 writes pairs (bytes, seconds)."""
    import mycelia as ms
    from mycelia.communication import get_rank, init

    init()
    reduce, times = ms.ops.AllReduce(), []
    for size in SIZES:
        given = ms.ops.zeros((size // 4,), ms.float32)
        found = []
        for _ in range(_ROUNDS):
            start = time.perf_counter()
            reduce(given)
            found.append(time.perf_counter() - start)
        times.append((size, sorted(found)[_ROUNDS // 2]))
    if get_rank() == 0:
        out.write_text(json.dumps(times))


if __name__ == "__main__":
    _rank(Path(sys.argv[1]))
