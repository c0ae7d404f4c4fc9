"""The backend class: kernels, memory, copies and streams of the far device."""

from __future__ import annotations

import threading

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
        self.current = threading.local()

    # ---- what it runs

    def kernels(self):
        return kernels.table()

    def supports(self, op, types, attrs):
        return op not in kernels.LIMITS or kernels.LIMITS[op](*types, **attrs)

    def view(self, buffer: Buffer) -> np.ndarray:
        return self.memory.bytes_at(buffer.address, buffer.nbytes).view(buffer.dtype.np).reshape(buffer.shape)

    def launch(self, function, inputs, outputs):
        self.current_stream().give(lambda: super(FarBackend, self).launch(function, inputs, outputs))

    # ---- its memory

    def allocate(self, size):
        return self.memory.allocate(size)

    def free(self, address, size):
        # Streams may still have to work with it.
        for stream in self.streams[1:]:
            stream.synchronize()
        self.streams[0].give(lambda: self.memory.free(address))

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

    def empty_cache(self):
        """It keeps nothing that it could give back."""

    # ---- its work in order

    def stream(self, priority=0):
        self.streams.append(FarStream())
        return self.streams[-1]

    def current_stream(self):
        return getattr(self.current, "stream", self.streams[0])

    def set_stream(self, stream):
        self.current.stream = stream

    def event(self):
        return FarEvent()

    def synchronize(self):
        for stream in self.streams:
            stream.synchronize()
