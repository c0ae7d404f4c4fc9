"""Random graphs whose inputs and outputs lie at pages that nobody may touch: `run_guarded.py FIRST COUNT`

A kernel that reads or writes an element before or behind them, in C++, by intrinsics or in assembly, ends the
process. MYCELIA_ISA chooses the kernels. The last line has how many graphs ran.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import tempfile
from pathlib import Path

import numpy as np

import mycelia_lite as mslite
from mycelia_lite import runtime
from mycelia_lite.format import write

sys.path.insert(0, str(Path(__file__).parents[3] / "lite"))
from tests.converter.optimise.random_graphs import Graph
from tests.converter.optimise.small_models import agree, values

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_PAGE = mmap.PAGESIZE


class Guarded:
    """Memory between two pages without access, at the end of its pages or at their beginning."""

    def __init__(self, size: int, at_end: bool) -> None:
        inner = max(-(-size // _PAGE), 1) * _PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.length = inner + 2 * _PAGE
        self.base = _LIBC.mmap(None, self.length, 0, flags, -1, 0)
        first = self.base + _PAGE
        access = mmap.PROT_READ | mmap.PROT_WRITE
        if _LIBC.mprotect(ctypes.c_void_p(first), ctypes.c_size_t(inner), access):
            raise OSError(ctypes.get_errno(), "mprotect")
        self.address = first + inner - size if at_end else first

    def free(self) -> None:
        _LIBC.munmap(ctypes.c_void_p(self.base), ctypes.c_size_t(self.length))


def run(path: Path, arrays: list[np.ndarray], at_end: bool | None, threads: int) -> list[np.ndarray]:
    """The answers; `at_end` None: with memory of the model's own."""
    context = mslite.Context()
    context.cpu.thread_num = threads
    model = mslite.Model()
    model.build_from_file(path, context=context)
    inputs, outputs, kept = model.get_inputs(), model.get_outputs(), []
    if at_end is not None:
        for tensor in (*inputs, *outputs):
            kept.append(Guarded(tensor.data_size, at_end))
            address = ctypes.c_void_p(kept[-1].address)
            runtime.check(runtime.library().MSTensorSetData(tensor._handle, address))
    for tensor, array in zip(inputs, arrays, strict=True):
        tensor.set_data_from_numpy(array)
    answers = [t.get_data_to_numpy().copy() for t in model.predict(inputs)]
    del model
    for memory in kept:
        memory.free()
    return answers


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.ms"
        for seed in range(first, first + count):
            model = Graph(seed).grow(3)
            arrays = values(model, seed)
            write(path, model)
            expected = run(path, arrays, None, 1)
            for at_end, threads in ((True, 1), (False, 1), (True, 2)):
                agree(expected, run(path, arrays, at_end, threads), 0)
    print(count)


if __name__ == "__main__":
    main()
