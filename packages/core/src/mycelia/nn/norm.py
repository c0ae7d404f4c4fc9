"""Normalization layers: batch, layer, group, instance, RMS, local response."""

from __future__ import annotations

from mycelia.engine import ops
from mycelia.engine.base import errors, ignored
from mycelia.engine.base.dtypes import float32
from mycelia.engine.communication import world
from mycelia.engine.ops.communication.collectives import all_reduce
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.ops.nn_ops.batch_norm import _batch_norm_infer, _batch_norm_train
from mycelia.engine.ops.nn_ops.group_norm import _instance_norm, group_norm
from mycelia.engine.ops.nn_ops.lrn import lrn
from mycelia.engine.ops.nn_ops.norm import _layer_norm, rms_norm
from mycelia.nn.cell import Cell
from mycelia.nn.parameters import check_group_norm, check_positive, parameters
from mycelia.nn.parts import has_strategy, operator


class _ChannelNorm(Cell):
    """Scale and offset of each channel, and the moving statistics that checkpoints of MindSpore hold."""

    def _init_features(
        self, num_features, eps, momentum, affine, gamma_init, beta_init, mean_init, var_init, dtype
    ) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.moving_mean, self.moving_variance = parameters(
            (num_features,), dtype, False, mean=mean_init, variance=var_init
        )
        self.gamma, self.beta = parameters(
            (num_features,), dtype, bool(affine), gamma=gamma_init, beta=beta_init
        )

    def extend_repr(self):
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"gamma={self.gamma}, beta={self.beta}, "
            f"moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class _BatchNorm(_ChannelNorm):
    """Batch normalization per channel; `momentum` is the share of the old moving statistics that is kept."""

    _ranks = (2, 3, 4, 5)

    bn_train = operator(
        "BatchNorm", is_training=True, epsilon=lambda cell: cell.eps,
        momentum=lambda cell: 1.0 - cell.momentum, data_format=lambda cell: cell.data_format,
    )  # fmt: skip
    bn_infer = operator(
        "BatchNorm", epsilon=lambda cell: cell.eps, data_format=lambda cell: cell.data_format
    )

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.9,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        moving_mean_init="zeros",
        moving_var_init="ones",
        use_batch_statistics=None,
        data_format="NCHW",
        dtype=float32,
    ):
        super().__init__()
        owner = type(self).__name__
        check_positive(owner, num_features=num_features)
        if not 0 <= momentum <= 1:
            raise errors.value_error(owner, f"momentum must be in [0, 1], but got {momentum}")
        if data_format not in ("NCHW", "NHWC"):
            raise errors.one_of(data_format, ["NCHW", "NHWC"], subject=owner, what="data_format")
        self.use_batch_statistics, self.data_format = use_batch_statistics, data_format
        self._init_features(
            num_features,
            eps,
            momentum,
            affine,
            gamma_init,
            beta_init,
            moving_mean_init,
            moving_var_init,
            dtype,
        )

    def construct(self, x):
        if x.ndim not in self._ranks:
            raise errors.shape_error(
                type(self).__name__,
                f"x must have rank {' or '.join(map(str, self._ranks))}, but its shape is {list(x.shape)}",
            )
        batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if has_strategy(self, "bn_train" if batch else "bn_infer"):
            by_operator = self.bn_train if batch else self.bn_infer
            return by_operator(x, self.gamma, self.beta, self.moving_mean, self.moving_variance)[0]
        if batch:
            return _batch_norm_train(self.moving_mean, self.moving_variance, x, self.gamma, self.beta,
                epsilon=self.eps,
                                     momentum=1.0 - self.momentum,
                                         data_format=self.data_format)[0]  # fmt: skip
        return _batch_norm_infer(
            x,
            self.gamma,
            self.beta,
            self.moving_mean,
            self.moving_variance,
            epsilon=self.eps,
            data_format=self.data_format,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalization. Shapes: x [N, C] or [N, C, L] -> same."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization. Shapes: x [N, C, H, W] -> same."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization. Shapes: x [N, C, D, H, W] -> same."""

    _ranks = (5,)

    def __init__(
        self, num_features, eps=1e-5, momentum=0.9, affine=True, gamma_init="ones", beta_init="zeros",
        moving_mean_init="zeros", moving_var_init="ones", use_batch_statistics=None, dtype=float32,
    ):  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, dtype=dtype,
        )  # fmt: skip


class LayerNorm(Cell):
    """Normalize the dimensions from `begin_norm_axis` on (Ba et al. 2016).

    Shapes: x [..., *normalized_shape] -> same.
    """

    layer_norm = operator(
        "LayerNorm",
        begin_norm_axis=lambda cell: cell.begin_norm_axis,
        begin_params_axis=lambda cell: cell.begin_params_axis,
        epsilon=lambda cell: cell.epsilon,
    )

    def __init__(
        self,
        normalized_shape,
        begin_norm_axis=-1,
        begin_params_axis=-1,
        gamma_init="ones",
        beta_init="zeros",
        epsilon=1e-7,
        dtype=float32,
    ):
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)):
            raise errors.type_error(
                "LayerNorm", f"normalized_shape must be a tuple or list, but got {normalized_shape!r}"
            )
        if not normalized_shape:
            raise errors.value_error("LayerNorm", "normalized_shape must not be empty")
        self.normalized_shape = normalized_shape
        self.begin_norm_axis, self.begin_params_axis, self.epsilon = (
            begin_norm_axis,
            begin_params_axis,
            epsilon,
        )
        self.gamma, self.beta = parameters(
            tuple(normalized_shape), dtype, True, gamma=gamma_init, beta=beta_init
        )

    def construct(self, x):
        if has_strategy(self, "layer_norm"):
            return self.layer_norm(x, self.gamma, self.beta)[0]
        return _layer_norm(x, self.gamma, self.beta, begin_norm_axis=self.begin_norm_axis,
            begin_params_axis=self.begin_params_axis,
                           epsilon=self.epsilon)[0]  # fmt: skip

    def extend_repr(self):
        # MindSpore prints no "=" after gamma.
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma{self.gamma}, beta={self.beta}"
        )


class GroupNorm(Cell):
    """Normalize groups of channels of each sample (Wu and He 2018). Shapes: x [N, C, ...] -> same."""

    def __init__(
        self,
        num_groups,
        num_channels,
        eps=1e-5,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        dtype=float32,
    ):
        super().__init__()
        check_group_norm(num_groups, num_channels)
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.gamma, self.beta = parameters(
            (num_channels,), dtype, bool(affine), gamma=gamma_init, beta=beta_init
        )

    def construct(self, x):
        return group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self):
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


class _InstanceNorm(_ChannelNorm):
    _rank = 4

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        dtype=float32,
    ):
        super().__init__()
        check_positive(type(self).__name__, num_features=num_features)
        # Each sample is normalized by itself: the moving statistics stay.
        self._init_features(
            num_features, eps, momentum, affine, gamma_init, beta_init, "zeros", "ones", dtype
        )

    def construct(self, x):
        if x.ndim != self._rank:
            raise errors.shape_error(
                type(self).__name__, f"x must have rank {self._rank}, but its shape is {list(x.shape)}"
            )
        return _instance_norm(x, self.gamma, self.beta, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each sample. Shapes: x [N, C, L] -> same."""

    _rank = 3


class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each sample. Shapes: x [N, C, H, W] -> same."""

    _rank = 4


class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each sample. Shapes: x [N, C, D, H, W] -> same."""

    _rank = 5


class RMSNorm(Cell):
    """Divide the last dimensions by their root mean square (Zhang and Sennrich 2019).
    Shapes: x [..., *dims] -> same.
    """

    def __init__(self, normalized_shape, epsilon=1e-6, gamma_init="ones", dtype=float32):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.epsilon = shape, epsilon
        (self.gamma,) = parameters(shape, dtype, True, gamma=gamma_init)

    def construct(self, x):
        return rms_norm(x, self.gamma, epsilon=self.epsilon)[0]

    def extend_repr(self):
        return f"normalized_shape={self.normalized_shape}, epsilon={self.epsilon}"


class LRN(Cell):
    """Local response normalization across channels (Krizhevsky et al. 2012).
    Shapes: x [N, C, H, W] -> same.
    """

    def __init__(self, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS"):
        super().__init__()
        self.settings = (depth_radius, bias, alpha, beta, norm_region)

    def construct(self, input_x):
        return lrn(input_x, *self.settings)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of all processes that have joined; with one process, `BatchNorm`.

    `process_groups`: lists of ranks that normalize together, by default all; warned of where none has joined.
    Shapes: x [N, C, H, W] -> same; N may differ between processes.
    Errors: ValueError if this rank is in none of the groups.
    """

    def __init__(
        self, num_features, eps=1e-5, momentum=0.9, affine=True, gamma_init="ones", beta_init="zeros",
        moving_mean_init="zeros", moving_var_init="ones", use_batch_statistics=None, process_groups=None,
        dtype=float32,
    ):  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, dtype=dtype,
        )  # fmt: skip
        self.process_groups = process_groups
        self.group = _own_group(process_groups)

    def construct(self, x):
        batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if not batch or self.group is None or x.ndim not in self._ranks:
            return super().construct(x)
        mean, variance, count = statistics_of_all(x, self.group)
        share = 1.0 - self.momentum
        unbiased = variance * (count / ops.maximum(count - 1, 1.0))
        for moving, batch_value in ((self.moving_mean, mean), (self.moving_variance, unbiased)):
            change = ops.stop_gradient(batch_value).astype(moving.dtype) - moving
            assign(moving, moving + share * change)
        given = (self.gamma, self.beta, mean.astype(self.gamma.dtype), variance.astype(self.gamma.dtype))
        return _batch_norm_infer(x, *given, epsilon=self.eps, data_format=self.data_format)


def _own_group(process_groups) -> str | None:
    """The group that this process normalizes with; None if it is alone."""
    here = world.current()
    if here is None or here.communicator.size == 1:
        if process_groups is not None:
            ignored.tell("SyncBatchNorm", "process_groups", process_groups, "no other process takes part")
        return None
    if process_groups is None:
        return world.WORLDS[0]
    for ranks in process_groups:
        if here.communicator.rank in ranks:
            name = f"sync_batch_norm_{'_'.join(map(str, ranks))}"
            if here.ranks(name) is None:
                here.create(name, ranks)
            return name if len(ranks) > 1 else None
    raise errors.value_error(
        "SyncBatchNorm", f"rank {here.communicator.rank} is in none of process_groups={process_groups}"
    )


def statistics_of_all(x, group: str):
    """Mean and variance of each channel over the batches of a group, and how many numbers each channel
    has.
    """
    axes = tuple(a for a in range(x.ndim) if a != 1)
    wide = x.astype(float32)
    own = ops.full((1,), float(x.size // x.shape[1]), dtype=float32)
    sums = all_reduce(ops.cat([wide.sum(axes), own]), "sum", group)
    count = sums[-1]
    mean = sums[:-1] / count
    shifted = wide - mean.reshape(tuple(-1 if a == 1 else 1 for a in range(x.ndim)))
    return mean, all_reduce((shifted * shifted).sum(axes), "sum", group) / count, count
