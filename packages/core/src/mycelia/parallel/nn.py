"""Cells of parallel training by MindSpore's newer names: batches in pieces, and pipelines of stages."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.nn.cell import Cell
from mycelia.nn.pipeline.cells import PipelineCell
from mycelia.nn.wrap.pipeline_reducer import PipelineGradReducer  # noqa: F401


def _checked(owner: str, network, count, name: str) -> None:
    if not isinstance(network, Cell):
        raise errors.type_error(owner, f"network must be a Cell, but got {type(network).__name__}")
    if isinstance(count, bool) or not isinstance(count, int):
        raise errors.type_error(owner, f"{name} must be an int, but got {type(count).__name__}")
    if count < 1:
        raise errors.value_error(owner, f"{name} must be at least 1, but got {count}")


def _piece(owner: str, args: tuple, i: int, count: int) -> list:
    """Piece number i of each argument's first axis."""
    found = []
    for x in args:
        if x.shape[0] % count:
            raise errors.value_error(owner, f"a batch of {x.shape[0]} cannot be cut into {count} pieces")
        n = x.shape[0] // count
        found.append(x[i * n : (i + 1) * n])
    return found


class GradAccumulation(Cell):
    """Runs `network`, which gives a loss, on `micro_size` pieces of the batch and adds the losses.

    Shapes: batches [N, ...], where `micro_size` divides N -> what `network` gives.
    """

    def __init__(self, network, micro_size):
        super().__init__(auto_prefix=False)
        _checked("GradAccumulation", network, micro_size, "micro_size")
        self.network = network
        self.micro_size = micro_size

    def construct(self, *args):
        total = self.network(*_piece("GradAccumulation", args, 0, self.micro_size))
        for i in range(1, self.micro_size):
            total = total + self.network(*_piece("GradAccumulation", args, i, self.micro_size))
        return total


class MicroBatchInterleaved(Cell):
    """Runs `network` on `interleave_num` pieces of the batch and adds the results: a device would send one
    piece's results while it computes the next.

    Shapes: batches [N, ...], where `interleave_num` divides N -> what `network` gives.
    """

    def __init__(self, network, interleave_num=2):
        super().__init__(auto_prefix=False)
        _checked("MicroBatchInterleaved", network, interleave_num, "interleave_num")
        self.network = network
        self.interleave_num = interleave_num

    def construct(self, *args):
        n = self.interleave_num
        total = self.network(*_piece("MicroBatchInterleaved", args, 0, n))
        for i in range(1, n):
            total = total + self.network(*_piece("MicroBatchInterleaved", args, i, n))
        return total


class Pipeline(PipelineCell):
    """`nn.PipelineCell` by its newer name."""
