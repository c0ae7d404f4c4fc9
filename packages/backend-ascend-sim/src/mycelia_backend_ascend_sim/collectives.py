"""Sums over the ranks of a job that runs in one process, in the order of the device's ring.

For tests of what compares ranks: each rank's tensors are arrays of the host here, nothing is sent.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mycelia import dtypes
from mycelia_backend_ascend_sim import arithmetic, faults

_numbers = itertools.count()


def all_reduce(tensors: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The sum of the ranks' `tensors`, once for each rank.

    Rank after rank is added, from 0, and each sum is rounded to the dtype: float16 or float32.
    A planted `DroppedAllReduce` leaves one rank out, which keeps what it had.

    Errors: ValueError without tensors or if shapes or dtypes differ; TypeError for another dtype.
    """
    if not tensors:
        raise ValueError("all_reduce needs the tensors of at least one rank")
    first = tensors[0]
    for rank, tensor in enumerate(tensors):
        if tensor.shape != first.shape or tensor.dtype != first.dtype:
            raise ValueError(
                f"all_reduce: rank 0 has {first.dtype}{list(first.shape)}, "
                f"but rank {rank} {tensor.dtype}{list(tensor.shape)}"
            )
    if first.dtype not in (np.float16, np.float32):
        raise TypeError(f"all_reduce takes float16 or float32, but got {first.dtype}")
    dtype = dtypes.from_numpy(first.dtype)
    lost = faults.dropped_ranks(next(_numbers)) if faults.planted() else set()
    total = np.zeros(first.shape, first.dtype)
    for rank, tensor in enumerate(tensors):
        if rank not in lost:
            wide = total.astype(np.float32) + tensor.astype(np.float32)
            total = arithmetic.rounded(wide, dtype)
    return [(tensors[rank] if rank in lost else total).copy() for rank in range(len(tensors))]
