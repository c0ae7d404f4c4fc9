"""The contract of a backend: one class, of which only `name` must be written."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir.graph import Graph, Node
from mycelia.engine.ir.types import TensorType


def include_dir() -> Path:
    """The directory of `mycelia/abi.h` and `mycelia/op_attrs.h`, for compiling native kernels."""
    return Path(_C.__file__).parent / "include"


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step of a pipeline: `run` changes a graph in place and returns the number of changes.

    `before`, `after`: where a step that a backend brings (`Backend.passes`) takes its place: in front of the
    first step of that name, behind the last one, or without either at the end.
    """

    name: str
    run: Callable[[Graph], int]
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of a device as a kernel in Python gets to see it: C-contiguous elements from `address` on."""

    address: int
    dtype: DType
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """What a device says of a kernel that it ran: its number, that of its stream, and a status word, 0 where
    nothing is to be told. Bit 1 stands for an overflow in an AI core, bit 2 for one in atomic additions.
    """

    task_id: int
    stream_id: int
    status: int = 0


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """Bytes that tensors hold on a device, bytes that it has taken for them, and the most of both."""

    allocated: int
    reserved: int
    peak_allocated: int
    peak_reserved: int


class Stream:
    """A queue of work of a device, done in order. The host has one: its work is done when a call returns."""

    def synchronize(self) -> None:
        """Wait until all work given so far is done."""

    def query(self) -> bool:
        """Whether all work given so far is done."""
        return True

    def wait(self, event: Event) -> None:
        """Let work given from now on wait until `event` is reached."""


class Event:
    """A point in the work of a stream."""

    def __init__(self) -> None:
        self._time = 0.0

    def record(self, stream: Stream) -> None:
        """Make it the point behind all work that `stream` was given so far."""
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """Wait until it is reached."""

    def query(self) -> bool:
        """Whether it is reached."""
        return True

    def seconds(self) -> float:
        """When it was reached, in seconds of a clock of the device. It must have been recorded."""
        return self._time


_host_stream = Stream()


class _Chosen(threading.local):
    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}  # of each backend, where it is not the default one


_chosen = _Chosen()


class Backend:
    """A device that runs ops. Everything but `name` has a default, that of kernels on the host's memory.

    Core decides per op what runs where, allocates, copies and frees; a backend says what it can do and how.
    """

    #: What `set_context(device_target=...)` calls it, in lower case.
    name = ""

    #: dtypes that run as another one where no kernel exists: ``{bfloat16: float32}``.
    emulated: dict[DType, DType] = {}

    #: Whether the kernels of ops with a `data_format` take "NHWC" too. The compiler lays images out with the
    #: channels last only then, and only if there are kernels for `ops/lowered/channels_last.py`.
    channels_last = False

    #: Whether tensors lie in memory of the device, which the host must not touch. Such a backend writes the
    #: methods from `allocate` to `copy`, and `view` if it has kernels in Python.
    own_memory = False

    #: The number by which the native core knows its memory; set by core. 0: the host's.
    device = 0

    def check(self) -> None:
        """Raise TypeError if a method is missing that this backend must have written. Core asks at its first
        use.
        """
        needed = []
        if type(self).claims is not Backend.claims:
            needed.append(("claims", ("compile",)))
        if self.own_memory:
            memory = ("allocate", "free", "copy_from_host", "copy_to_host", "copy")
            needed.append(("memory of its own (own_memory)", memory))
        for reason, names in needed:
            missing = [name for name in names if getattr(type(self), name) is getattr(Backend, name)]
            if missing:
                raise TypeError(f"the backend '{self.name}' has {reason}, but no {', '.join(missing)}")

    def _lacks(self, name: str) -> NotImplementedError:
        return NotImplementedError(
            f"the backend '{self.name}' has no {name} ({type(self).__qualname__}.{name})"
        )

    # ---- what it runs

    def kernels(self):
        """The kernels: a capsule named ``mycelia.kernel_table`` holding a `myc_kernel_table` (abi.h),
        or a dict.

        Dict: ``{("mat_mul", "f32"): function}``; the dtypes text is as in abi.h; the function takes one array
        per tensor input (None for an absent one, a tuple for a list) and the attributes by keyword, and
        returns an array or a tuple of them. Arrays are NumPy's (float32 for bfloat16), or with memory of its
        own what `view` gives.
        """
        return {}

    def supports(self, op: str, types: Sequence[TensorType | None], attrs: Mapping[str, Any]) -> bool:
        """Whether its kernel of `op` takes this case. It is asked once per signature, if there is one for
        the dtypes of `types`, the inputs one by one (None: absent).
        """
        return True

    def passes(self, frozen: Collection[int]) -> Sequence[Pass]:
        """Steps of its own in the stage "lower", for graphs that are compiled for this backend: the choice
        among algorithms of its kernels, say (`compile/passes/algorithms.py`).

        `frozen`: positions of parameters that seldom change; what depends on nothing else is computed only
        when they do. A step may be one object for all compiles: it gets the graph, a copy that it may change.
        """
        return ()

    def claims(self, graph: Graph) -> Sequence[Collection[Node]]:
        """Groups of nodes of a lowered graph that it compiles as a whole, each by `compile`.

        No group may need, even by way of others, what is computed from its own results; no node is in two.
        """
        return ()

    def compile(self, graph: Graph) -> Callable[..., Sequence[Any]]:
        """A function for a graph of the nodes that `claims` named: from arrays, one per parameter, to arrays,
        one per output, both of the kind that kernels get. It is asked once per program. Written by a backend
        that writes `claims`.
        """
        raise self._lacks("compile")

    # ---- its memory: written by a backend with `own_memory`

    def allocate(self, size: int) -> int:
        """The address of `size` > 0 bytes that are free, a number from which core computes others by adding
        offsets. Raises MemoryError.
        """
        raise self._lacks("allocate")

    def free(self, address: int, size: int) -> None:
        """Take back what `allocate` gave. Work given before may still use it."""
        raise self._lacks("free")

    def copy_from_host(self, address: int, source: memoryview) -> None:
        """Copy bytes of the host to `address`; `source` may change when this returns."""
        raise self._lacks("copy_from_host")

    def copy_to_host(self, target: memoryview, address: int) -> None:
        """Fill `target` with the bytes at `address`, after all work that was given before."""
        raise self._lacks("copy_to_host")

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy `size` bytes from one address of the device to another; they do not overlap."""
        raise self._lacks("copy")

    def view(self, buffer: Buffer) -> Any:
        """What kernels in Python compute with: an array of the device that takes ``array[...] = values``."""
        raise self._lacks("view")

    def launch(
        self, function: Callable[..., Any], inputs: Sequence[Buffer | None], outputs: Sequence[Buffer]
    ) -> None:
        """Run a kernel in Python: ``function(*arrays)`` gives an array per output.

        A device with queues may do so later, in the order of the current stream.
        """
        arrays = [None if b is None else self.view(b) for b in inputs]
        for buffer, result in zip(outputs, function(*arrays), strict=True):
            self.view(buffer)[...] = result

    def contents(self, buffer: Buffer) -> tuple[str, Any]:
        """What lies in memory: the name of its layout and an array of that, for dumps of what a device sees.

        "DefaultFormat" are the plain elements, bfloat16 as uint16; the names of others, and what their arrays
        look like, are in `mycelia.io.device_formats`.
        """
        import numpy as np

        content = bytearray(buffer.nbytes)
        if content and self.own_memory:
            self.copy_to_host(memoryview(content), buffer.address)
        elif content:
            content[:] = ctypes.string_at(buffer.address, buffer.nbytes)
        return "DefaultFormat", np.frombuffer(content, buffer.dtype.np).reshape(buffer.shape)

    def memory_statistics(self) -> MemoryStatistics:
        """What its tensors hold. One that keeps memory for the next tensors says so as `reserved`."""
        found = _C.device_statistics(self.device)
        live, peak = found["live_bytes"], found["peak_bytes"]
        reserved = live + found.get("cached_bytes", 0)
        return MemoryStatistics(live, reserved, peak, found.get("peak_reserved_bytes", peak))

    def reset_peaks(self, allocated: bool, reserved: bool) -> None:
        """Let these peaks of `memory_statistics` start anew from now."""
        if self.device:
            _C.reset_device_peak(self.device)
        else:
            _C.reset_memory_peaks(allocated, reserved)

    def empty_cache(self) -> None:
        """Give back memory that no tensor holds, where some was kept."""
        if not self.own_memory:
            _C.empty_cache()

    # ---- its work in order

    def stream(self, priority: int = 0) -> Stream:
        """A new queue of work, or the only one. A higher `priority` goes first where the device knows it."""
        return _host_stream

    def default_stream(self) -> Stream:
        """The queue that work goes to unless `set_stream` says otherwise."""
        return _host_stream

    def current_stream(self) -> Stream:
        """The queue that the calling thread's work goes to."""
        return _chosen.streams.get(self.name) or self.default_stream()

    def set_stream(self, stream: Stream) -> None:
        """Let the calling thread's work go to `stream`."""
        _chosen.streams[self.name] = stream

    def event(self) -> Event:
        """A new event, not recorded yet."""
        return Event()

    def synchronize(self) -> None:
        """Wait until the work of all streams is done."""

    # ---- what it tells of its work

    @property
    def saturates(self) -> bool:
        """Whether results beyond the range of their dtype are clamped now, so that an overflow shows in the
        status (`read_overflow`, a kernel for the op `overflow_status`) and not in the values. Mixed precision
        asks when a step is captured.
        """
        return False

    def last_task(self) -> TaskInfo | None:
        """The last kernel of the calling thread, None where the device does not count them."""
        return None

    def read_overflow(self, clear: bool) -> tuple[int, Sequence[Mapping[str, Any]]]:
        """The sticky status word of the device, as in `TaskInfo`, and a record of each task that set it since
        it was last cleared: `op`, `task_id`, `stream_id`, `status`, `kind`, `address`, `slots`.

        `clear`: there are none afterwards.
        """
        return 0, ()

    # ---- settings

    def set_threads(self, count: int) -> None:
        """Let kernels use up to `count` host threads (0: the backend's choice)."""

    def limit_threads(self, count: int) -> int:
        """Let kernels that the calling thread runs use up to `count` host threads (0: as `set_threads` says);
        returns the limit before.
        """
        return 0

    def set_deterministic(self, on: bool) -> None:
        """Let results depend on nothing but the inputs, not on the number of threads either. A backend whose
        results are such anyway has nothing to do."""

    def multiply_adds(self, rounds: int) -> float:
        """Do `rounds` rounds of multiply-adds with everything in registers, on the calling thread.

        Returns how many floating-point operations that were, 0 if the backend cannot. The profiler measures
        peaks with it.
        """
        return 0.0
