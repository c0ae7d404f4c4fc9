"""An operator run in a process of its own: what a dump says of it may be wrong or hostile, and a kernel that
crashes, hangs or takes all memory takes only that process with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycelia.debug.dump.operator_files import from_json, to_json
from mycelia.debug.operators import given, run_operator
from mycelia.debug.statistics import array_of
from mycelia.engine.base import dtypes, errors
from mycelia.engine.observing import Operator
from mycelia.engine.tensors.tensor import Tensor

TIMEOUT_S = 60.0
MEMORY_BYTES = 8 << 30  # beyond what the process has when it begins
COMMAND = (sys.executable, "-m", "mycelia.debug.isolated")
_TOLD = 300  # characters of what a process that failed had to say
_REQUEST, _INPUTS, _OUTPUTS, _ERROR = "operator.json", "inputs.npz", "outputs.npz", "error.txt"


def rerun_isolated(operator: Operator, inputs: Sequence[Tensor | None]) -> list[np.ndarray]:
    """What `operators.rerun` gives, as arrays, within `TIMEOUT_S` and, on Linux, `MEMORY_BYTES`.

    Errors: ValueError, also for whatever the op raises, for a process that crashed, or one beyond its limits.
    """
    name = operator.op.definition.name
    with tempfile.TemporaryDirectory(prefix="mycelia-rerun-") as place:
        folder = Path(place)
        _write(folder, operator, inputs)
        try:
            ran = subprocess.run(
                COMMAND, cwd=folder, env=_environment(), timeout=TIMEOUT_S, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise errors.value_error(name, f"it took longer than {TIMEOUT_S:g} s and was ended") from None
        if (folder / _ERROR).is_file():
            raise errors.value_error(name, (folder / _ERROR).read_text(encoding="utf-8", errors="replace"))
        if ran.returncode or not (folder / _OUTPUTS).is_file():
            raise errors.value_error(name, _how_it_ended(ran.returncode, ran.stderr))
        with np.load(folder / _OUTPUTS, allow_pickle=False) as found:
            return [found[str(slot)] for slot in range(len(found.files))]


def _environment() -> dict[str, str]:
    """That of this process, with what it imports from: the other one begins in another folder."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path if p)}


def _write(folder: Path, operator: Operator, inputs: Sequence[Tensor | None]) -> None:
    values, arrays = [], {}
    for i, value in enumerate(given(operator, inputs)):
        is_tensor = isinstance(value, Tensor)
        values.append({"tensor": value.dtype.name} if is_tensor else {"number": to_json(value)})
        if is_tensor:
            arrays[str(i)] = array_of(value)
    np.savez(folder / _INPUTS, **arrays)
    told = {
        "op": operator.op.definition.name, "memory_bytes": MEMORY_BYTES, "inputs": values,
        "attrs": {key: to_json(value) for key, value in operator.attrs.items()},
    }  # fmt: skip
    (folder / _REQUEST).write_text(json.dumps(told), encoding="utf-8")


def _how_it_ended(status: int, told: bytes) -> str:
    if status < 0:
        try:
            how = signal.Signals(-status).name
        except ValueError:
            how = f"signal {-status}"
        return f"its kernel crashed with {how}, in a process of its own"
    last = told.decode("utf-8", "replace").strip()[-_TOLD:]
    return f"its process ended with status {status}{': ' if last else ''}{last}"


def main() -> None:
    """Run the operator that lies in the current folder."""
    told = json.loads(Path(_REQUEST).read_text(encoding="utf-8"))
    _limit(told["memory_bytes"])
    try:
        made = [array_of(t) for t in run_operator(told["op"], _inputs(told["inputs"]), _attrs(told["attrs"]))]
    except MemoryError:
        Path(_ERROR).write_text(_beyond(told["memory_bytes"]), encoding="utf-8")
    except errors.MyceliaError as cause:
        Path(_ERROR).write_text(cause.message, encoding="utf-8")
    except Exception as cause:
        Path(_ERROR).write_text(f"{type(cause).__name__}: {cause}", encoding="utf-8")
    else:
        np.savez("part.npz", **{str(slot): array for slot, array in enumerate(made)})
        os.replace("part.npz", _OUTPUTS)


def _beyond(memory_bytes: int) -> str:
    return f"it needs more than {memory_bytes >> 20} MiB of memory"


def _inputs(told: list[dict[str, Any]]) -> list[Any]:
    with np.load(_INPUTS, allow_pickle=False) as arrays:
        return [
            Tensor(arrays[str(i)], getattr(dtypes, one["tensor"])) if "tensor" in one
            else from_json(one["number"])
            for i, one in enumerate(told)
        ]  # fmt: skip


def _attrs(told: dict[str, Any]) -> dict[str, Any]:
    return {key: from_json(value) for key, value in told.items()}


def _limit(memory_bytes: int) -> None:
    """Memory from now on; and no file of the process's memory when it crashes."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            has = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = has + memory_bytes
    limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


if __name__ == "__main__":
    main()
