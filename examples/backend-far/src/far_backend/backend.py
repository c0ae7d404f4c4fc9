"""The backend class: kernels, memory, copies and streams of the far device."""

from __future__ import annotations

from collections import deque

import numpy as np

from far_backend import kernels
from far_backend.memory import Memory
from far_backend.queues import FarEvent, FarStream
from mycelia import dtypes
from mycelia.backends import Backend, Buffer


class FarBackend(Backend):
    """A device whose memory the host cannot touch and whose work waits until somebody asks for its result.

    It computes in NumPy, on memory of its own; a missed copy ends the program, and a missed wait gives
    rubbish. Ops that are not in the table run on the host, on copies.
    """

    name = "far"
    own_memory = True
    emulated = {dtypes.bfloat16: dtypes.float32}

    def __init__(self) -> None:
        self.memory = Memory()
        self.streams = [FarStream()]
        self.leaving: deque[tuple[int, list[tuple[FarStream, int]]]] = deque()

    # ---- what it runs

    def kernels(self):
        return kernels.table()

    def supports(self, op, types, attrs):
        return kernels.supports(op, types, attrs)

    def view(self, buffer: Buffer) -> np.ndarray:
        return self.memory.bytes_at(buffer.address, buffer.nbytes).view(buffer.dtype.np).reshape(buffer.shape)

    def launch(self, function, inputs, outputs):
        self.current_stream().give(lambda: super(FarBackend, self).launch(function, inputs, outputs))

    # ---- its memory

    def allocate(self, size):
        return self.memory.allocate(size)

    def free(self, address, size):
        # Work that was given may still need it: it goes when each stream has done what it has now.
        self.leaving.append((address, [(stream, stream.given) for stream in self.streams]))
        self.let_go()

    def let_go(self) -> None:
        """Free what no work needs any more."""
        while self.leaving and all(stream.done >= count for stream, count in self.leaving[0][1]):
            self.memory.free(self.leaving.popleft()[0])

    def copy_from_host(self, address, source):
        content = np.frombuffer(source, np.uint8).copy()  # the host may change it when this returns
        self.current_stream().give(lambda: np.copyto(self.memory.bytes_at(address, content.size), content))

    def copy_to_host(self, target, address):
        self.current_stream().synchronize()
        np.frombuffer(target, np.uint8)[:] = self.memory.bytes_at(address, len(target))

    def copy(self, target, source, size):
        self.current_stream().give(
            lambda: np.copyto(self.memory.bytes_at(target, size), self.memory.bytes_at(source, size))
        )

    # ---- its work in order

    def stream(self, priority=0):
        self.streams.append(FarStream())
        return self.streams[-1]

    def default_stream(self):
        return self.streams[0]

    def event(self):
        return FarEvent()

    def synchronize(self):
        for stream in self.streams:
            stream.synchronize()
        self.let_go()
