"""Normalization layers of `mint.nn`: parameters `weight` and `bias`, torch's meaning of `momentum`."""

from __future__ import annotations

import numpy as np

from mycelia import ops
from mycelia.engine.base import errors, ignored
from mycelia.engine.base.dtypes import float32
from mycelia.engine.communication import world
from mycelia.engine.ops.control_flow.state import assign, assign_add
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.mint.nn import functional as F
from mycelia.nn.cell import Cell
from mycelia.nn.norm import statistics_of_all
from mycelia.nn.parameters import check_group_norm, check_positive, parameters


class _BatchNorm(Cell):
    """Normalization of each channel by the batch (Ioffe and Szegedy 2015).

    `momentum`: the share of the batch in the running statistics; None averages over all batches.
    `track_running_stats` False: the batch's own statistics always.
    """

    _ranks: tuple[int, ...] | None = None

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, dtype=None
    ):
        super().__init__()
        owner = type(self).__name__
        check_positive(owner, num_features=num_features)
        if momentum is not None and not 0 <= momentum <= 1:
            raise errors.value_error(owner, f"momentum must be in [0, 1] or None, but got {momentum}")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        dtype, shape = float32 if dtype is None else dtype, (num_features,)
        self.weight = self.bias = self.running_mean = self.running_var = self.num_batches_tracked = None
        if affine:
            self.weight, self.bias = parameters(shape, dtype, True, weight="ones", bias="zeros")
        if track_running_stats:
            self.running_mean, self.running_var = parameters(
                shape, dtype, False, running_mean="zeros", running_var="ones"
            )
            count = Tensor(np.zeros((), np.int64))
            self.num_batches_tracked = Parameter(count, name="num_batches_tracked", requires_grad=False)

    def _check_rank(self, input) -> None:
        ranks = self._ranks
        if input.ndim < 2 or ranks is not None and input.ndim not in ranks:
            wanted = " or ".join(map(str, ranks)) if ranks else "at least 2"
            raise errors.value_error(
                type(self).__name__, f"input must have rank {wanted}, but its shape is {list(input.shape)}"
            )

    def construct(self, input):
        self._check_rank(input)
        running = (self.running_mean, self.running_var)
        if not self.training or running[0] is None:
            from_batch = running[0] is None
            return F.batch_norm(input, *running, self.weight, self.bias, from_batch, 0.0, self.eps)
        assign_add(self.num_batches_tracked, 1)
        if self.momentum is not None:
            return F.batch_norm(input, *running, self.weight, self.bias, True, self.momentum, self.eps)
        others = (0, *range(2, input.ndim))
        share = 1.0 / ops.cast(self.num_batches_tracked, float32)
        for old, new in zip(reversed(running), ops.var_mean(input, others, 1)):
            assign(old, old + (ops.stop_gradient(new) - old) * share)
        return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.0, self.eps)

    def extend_repr(self):
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalization. Shapes: [N, C] or [N, C, L] -> same."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization. Shapes: [N, C, H, W] -> same."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization. Shapes: [N, C, D, H, W] -> same."""

    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization by the batches of all processes of `process_group`, by default of all that have
    joined; with one process, that of the own batch.

    Shapes: [N, C, ...] -> same; N may differ between processes.
    Errors: ValueError for a group that does not exist, RuntimeError for one that this process is not in.
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        dtype=None,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)
        self.process_group = process_group
        self.group = _group_with_others(process_group)

    def construct(self, input):
        if not self.training or self.group is None:
            return super().construct(input)
        self._check_rank(input)
        mean, variance, count = statistics_of_all(input, self.group)
        if self.running_mean is not None:
            assign_add(self.num_batches_tracked, 1)
            share = self.momentum
            if share is None:
                share = 1.0 / ops.cast(self.num_batches_tracked, float32)
            unbiased = variance * (count / ops.maximum(count - 1, 1.0))
            for old, new in ((self.running_mean, mean), (self.running_var, unbiased)):
                assign(old, old + (ops.stop_gradient(new).astype(old.dtype) - old) * share)
        return F.batch_norm(input, mean, variance, self.weight, self.bias, False, 0.0, self.eps)


def _group_with_others(process_group) -> str | None:
    """The group that this process normalizes with; None if it is alone in it."""
    if world.current() is None:
        if process_group is not None:
            ignored.tell("SyncBatchNorm", "process_group", process_group, "no other process has joined yet")
        return None
    name = world.WORLDS[0] if process_group is None else process_group
    return name if world.size("SyncBatchNorm", name) > 1 else None


class GroupNorm(Cell):
    """Normalization of groups of channels of each sample (Wu and He 2018). Shapes: [N, C, ...] -> same."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, dtype=None):
        super().__init__()
        check_group_norm(num_groups, num_channels)
        if not isinstance(eps, float):
            raise errors.type_error("GroupNorm", f"eps must be a float, but got {eps!r}")
        if not isinstance(affine, bool):
            raise errors.type_error("GroupNorm", f"affine must be a bool, but got {affine!r}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        dtype, shape = float32 if dtype is None else dtype, (num_channels,)
        self.weight, self.bias = parameters(shape, dtype, affine, weight="ones", bias="zeros")

    def construct(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extend_repr(self):
        return (
            f"num_groups={self.num_groups}, num_channels={self.num_channels}, eps={self.eps}, "
            f"affine={self.affine}"
        )


class LayerNormExt(Cell):
    """Normalization of the last dimensions of each sample (Ba et al. 2016).

    Shapes: [..., *normalized_shape] -> same.
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, dtype=None):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        if not isinstance(shape, (tuple, list)):
            raise errors.type_error(
                "LayerNorm", f"normalized_shape must be an int, a tuple or a list, but got {shape!r}"
            )
        if not shape:
            raise errors.value_error("LayerNorm", "normalized_shape must not be empty")
        self.normalized_shape, self.eps = tuple(shape), eps
        self.elementwise_affine = elementwise_affine
        dtype = float32 if dtype is None else dtype
        self.weight = self.bias = None
        if elementwise_affine:
            (self.weight,) = parameters(self.normalized_shape, dtype, True, weight="ones")
            if bias:
                (self.bias,) = parameters(self.normalized_shape, dtype, True, bias="zeros")

    def construct(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self):
        return (
            f"normalized_shape={self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )
