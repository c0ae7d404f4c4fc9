"""Runs damaged `.ms` files through the runtime: `python run_damaged.py FIRST COUNT FILE...`

Mutation i changes one of the files by its own number. Each is loaded, resized, run, watched, profiled and
measured; what the runtime refuses must have a reason and a code. The last line has how many were refused and
how many ran. `PROGRESS`, an environment variable, names a file for the number of the mutation at work and the
counts so far, so that a crash shows which it was; `LIMIT` is the address space in bytes. `WATCH` names the
library made of `allocations.c`: then no load may take more than twice the file and the tensors that it
declares.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np

import mycelia_lite as mslite
from mycelia_lite.format import FormatError, decode, encode

sys.path.insert(0, str(Path(__file__).parent))
import table_mutations

_MOST_NODES = 3000  # of a run that is watched: a file may say that a loop runs for ever
_MOST_ELEMENTS = 1 << 22  # that an input is filled with
_BESIDE = 1 << 20  # bytes of threads, tables of kernels and Python's own objects


def bytes_changed(good: bytes, rng: random.Random) -> bytes:
    data = bytearray(good)
    kind = rng.randrange(4)
    if kind == 0:
        del data[rng.randrange(len(data)) :]
    elif kind == 1:
        for _ in range(rng.choice((1, 2, 8))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:  # offsets and lengths
        place = rng.randrange(len(data) // 4) * 4
        value = rng.choice((0, 1, 2**31 - 1, 2**32 - 1, len(data), rng.getrandbits(32)))
        data[place : place + 4] = value.to_bytes(4, "little")
    else:  # of the tables, which stand in front
        data[rng.randrange(min(len(data), 6000))] = rng.choice((0, 1, 127, 128, 255))
    return bytes(data)


def mutated(good: bytes, number: int, part: float = 0.25) -> bytes:
    """Mutation `number`; of these the part `part` changes bytes, the others tables."""
    rng = random.Random(number)
    if rng.random() < part:
        return bytes_changed(good, rng)
    root = decode(good)
    table_mutations.change(root, rng)
    try:
        return bytes(encode(root))
    except FormatError:  # a value that no file can have
        return bytes_changed(good, rng)


def fill(tensor, rng: random.Random) -> None:
    count = int(np.prod(tensor.shape, dtype=object))
    if not 0 <= count <= _MOST_ELEMENTS:
        raise RuntimeError("too large to fill (code 0)")
    dtype, random_numbers = tensor.dtype.numpy, np.random.default_rng(rng.randrange(1 << 30))
    kind = rng.randrange(4)
    if kind == 0 or dtype.kind == "b":
        array = random_numbers.integers(0, 4, tensor.shape)
    elif kind == 1:
        array = random_numbers.normal(size=tensor.shape) * 3
    elif kind == 2:
        large = (1 << 20, (1 << 31) - 1) if count > 1 else ()  # one number may say how often a loop runs
        array = np.full(tensor.shape, rng.choice((0, -1, 5, *large)))
    else:
        array = np.where(
            random_numbers.random(tensor.shape) < 0.2, np.nan, random_numbers.normal(size=tensor.shape)
        )
    with np.errstate(all="ignore"):
        tensor.set_data_from_numpy(np.asarray(array).astype(dtype).reshape(tensor.shape))


def declared(data: bytes) -> int:
    """Bytes of the tensors that a file declares; of an open size there is one element."""
    try:
        tensors = decode(data).allTensors
    except FormatError:
        return 0
    sizes = {dtype: size for size, dtypes in table_mutations.SIZES.items() for dtype in dtypes}
    return sum(math.prod(max(int(n), 1) for n in t.dims) * sizes.get(int(t.dataType), 1) for t in tensors)


class Watch:
    """Counts what a load takes; without a library it lets all pass."""

    def __init__(self, library: str | None) -> None:
        self.library = ctypes.CDLL(library) if library else None
        if self.library:
            self.library.allocations_begin.restype = self.library.allocations_most.restype = ctypes.c_longlong
            assert self.library.allocations_watch(), "the sanitizer's allocator takes no hooks"

    def load(self, model: mslite.Model, path: Path, context: mslite.Context) -> None:
        if self.library is None:
            model.build_from_file(path, context=context)
            return
        data = path.read_bytes()
        most = 2 * len(data) + declared(data) + _BESIDE
        before = self.library.allocations_begin()
        try:
            model.build_from_file(path, context=context)
            most += made(model)
        finally:
            taken = self.library.allocations_most() - before
        assert taken <= most, f"a file of {len(data)} bytes took {taken}, it may take {most}"


def made(model: mslite.Model) -> int:
    """Bytes of what sizes of inputs and attributes ask for beyond the declared tensors, which may say less.

    Kernels that look places up have tables of these beside their results, a quarter of them at most.
    """
    borders = sum(t.data_size for t in (*model.get_inputs(), *model.get_outputs()))
    inner = sum(int(model.get_model_info(key)) for key in ("arena_bytes", "packed_bytes"))
    return (borders + inner) * 5 // 4


def use(path: Path, rng: random.Random, watch: Watch | None = None) -> None:
    """Everything that a program does with a model.  Errors: RuntimeError of what the runtime refuses."""
    context = mslite.Context()
    context.cpu.thread_num = rng.choice((1, 1, 2))
    context.cpu.inter_op_parallel_num = rng.choice((1, 1, 2))
    if context.cpu.inter_op_parallel_num > context.cpu.thread_num:
        context.cpu.thread_num = 2
    context.cpu.shared_thread_pool = rng.random() < 0.2
    model = mslite.Model()
    (watch or Watch(None)).load(model, path, context)
    inputs = model.get_inputs()
    if any(-1 in t.shape for t in inputs) or rng.random() < 0.1:
        sizes = rng.choice(((1,), (2,), (1, 2, 3), (3, 4), (0, 1, 2)))
        model.resize(
            inputs,
            [[rng.choice(sizes) if n < 0 or rng.random() < 0.02 else n for n in t.shape] for t in inputs],
        )
    for tensor in inputs:
        fill(tensor, rng)
    left = [_MOST_NODES]

    def look(given, made, name, kind):
        left[0] -= 1
        for tensor in (*given, *made):
            if tensor.data_size < 1 << 16:
                try:
                    tensor.get_data_to_numpy()
                except RuntimeError:
                    pass
        return left[0] > 0

    model.predict(inputs, None, look if rng.random() < 0.3 else lambda *node: look((), (), "", ""), None)
    model.predict(inputs)
    for tensor in model.get_outputs():
        tensor.get_data_to_numpy()
    how = rng.randrange(6)
    if how == 0:
        model.profile(1)
    elif how == 1:
        for key in (
            "precision",
            "isa",
            "arena_bytes",
            "weight_bytes",
            "packed_bytes",
            "partition",
            "memory_plan",
        ):
            try:
                model.get_model_info(key)
            except RuntimeError:
                pass
    elif how == 2:
        other = mslite.Model()
        other.build_from_model(model)
        del model
        other.resize(other.get_inputs(), [t.shape for t in other.get_inputs()])
    elif how == 3:
        model.resize(inputs, [[n + 1 for n in t.shape] for t in inputs])
        for tensor in inputs:
            fill(tensor, rng)
        model.predict(inputs)


def main() -> None:
    first, count, files = int(sys.argv[1]), int(sys.argv[2]), [Path(f) for f in sys.argv[3:]]
    if os.environ.get("LIMIT"):  # address sanitizers take the address space for themselves
        resource.setrlimit(resource.RLIMIT_AS, (int(os.environ["LIMIT"]),) * 2)
    progress = os.environ.get("PROGRESS")
    contents, watch = [f.read_bytes() for f in files], Watch(os.environ.get("WATCH"))
    told = ran = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.ms"
        for number in range(first, first + count):
            if progress:
                Path(progress).write_text(f"{number} {told} {ran}")
            path.write_bytes(mutated(contents[number % len(contents)], number))
            try:
                use(path, random.Random(number), watch)
                ran += 1
            except MemoryError:  # Python's own, within `LIMIT`: a result as large as its file says
                told += 1
            except RuntimeError as error:
                assert str(error).strip(), f"mutation {number}: {error}"
                told += 1
        if progress:
            Path(progress).write_text(f"{first + count} {told} {ran}")
    print(told, ran)


if __name__ == "__main__":
    main()
