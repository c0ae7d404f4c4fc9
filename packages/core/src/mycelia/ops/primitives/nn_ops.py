"""Activations, normalization, dropout, dense layers."""

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.nn_ops.batch_norm import _batch_norm_infer, _batch_norm_train
from mycelia.engine.ops.nn_ops.lrn import _l2_normalize
from mycelia.engine.ops.nn_ops.norm import _layer_norm
from mycelia.engine.ops.random.draws import _dropout
from mycelia.ops.primitives.checks import Misfit, anything, choice, integer, natural, real, within
from mycelia.ops.primitives.define import primitive, renamed, table
from mycelia.ops.primitives.random_ops import next_key, own_stream

table(ops, {"Dense": "dense", "ReLU": "relu", "Softplus": "softplus"})


@primitive
def GeLU(x):
    """Gaussian error linear unit by its tanh approximation. Source: Hendrycks and Gimpel 2016."""
    return ops.gelu(x, approximate="tanh")


renamed({"FastGelu": "FastGeLU", "Gelu": "GeLU"})


@primitive
def Elu(input_x, *, alpha: anything = 1.0):
    """``x`` where it is positive, else ``exp(x) - 1``. Errors: ValueError for an `alpha` other than 1."""
    if alpha != 1.0:
        raise errors.value_error("Elu", f"alpha must be 1.0, but got {alpha!r}")
    return ops.elu(input_x, alpha)


@primitive
def CeLU(x, *, alpha: anything = 1.0):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""
    return ops.celu(x, alpha)


@primitive
def HShrink(input, *, lambd: anything = 0.5):
    """Zero between -lambd and lambd."""
    return ops.hardshrink(input, lambd)


@primitive
def SoftShrink(input, *, lambd: anything = 0.5):
    """Moved towards zero by `lambd`, zero in between."""
    return ops.softshrink(input, lambd)


@primitive
def GLU(x, *, axis: anything = -1):
    """The first half along `axis` times the sigmoid of the second."""
    if x.shape[axis] % 2:
        raise errors.runtime_error("GLU", f"axis {axis} must have an even size, but the shape is {x.shape}")
    return ops.glu(x, axis)


def _one_or_more_axes(value):
    if isinstance(value, bool) or not isinstance(value, (int, tuple)):
        raise Misfit(TypeError, "an int or a tuple of int")
    return value if isinstance(value, tuple) else (value,)


@primitive
def Softmax(input, *, axis: _one_or_more_axes = -1):
    """``exp(x) / sum(exp(x))`` along an axis."""
    if len(axis) != 1:
        raise errors.runtime_error("Softmax", f"on CPU axis must be one axis, but got {axis}")
    return ops.softmax(input, axis[0])


@primitive
def LogSoftmax(logits, *, axis: anything = -1):
    """Logarithm of the softmax along an axis."""
    return ops.log_softmax(logits, axis)


@primitive
def LogSoftmaxExt(input, dim=None, dtype=None):
    """Logarithm of the softmax along `dim`, by default 0 for ranks 0, 1 and 3, else 1."""
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return ops.log_softmax(input if dtype is None else input.astype(dtype), dim)


@primitive
def BiasAdd(input_x, bias, *, data_format: choice("NCHW", "NHWC", "NCDHW") = "NCHW"):
    """A bias for each channel added. Shapes: input_x [N, C, ...] ("NHWC": [N, ..., C]), bias [C]."""
    if not 2 <= input_x.ndim <= 5:
        raise errors.value_error(
            "BiasAdd", f"input_x must have rank 2 to 5, but its shape is {input_x.shape}"
        )
    return ops.bias_add(input_x, bias, data_format)


# ----------------------------------------------------------------------------------------- normalization


@primitive
def BatchNorm(
    input_x, scale, bias, mean, variance,
    *, is_training: anything = False, epsilon: real = 1e-5, momentum: real = 0.1,
    data_format: choice("NCHW", "NHWC") = "NCHW",
):  # fmt: skip
    """Normalization of each channel by the statistics of the batch or, if not training, by those given.

    In training `mean` and `variance` move towards those of the batch by `momentum`.
    Shapes: input_x [N, C, ...], the others [C] -> input_x's, and four times [C]: batch mean and variance,
    twice, through which no gradient flows; zeros if not training.
    """
    how = dict(epsilon=epsilon, data_format=data_format)
    if not is_training:
        mean, variance = ops.stop_gradient(mean), ops.stop_gradient(variance)
        nothing = ops.zeros_like(mean)
        y = _batch_norm_infer(input_x, scale, bias, mean, variance, **how)
        return y, nothing, nothing, nothing, nothing
    y, batch_mean, inv_std = _batch_norm_train(mean, variance, input_x, scale, bias, momentum=momentum, **how)
    batch_variance = _variance(inv_std, epsilon)
    batch_mean, batch_variance = ops.stop_gradient(batch_mean), ops.stop_gradient(batch_variance)
    return y, batch_mean, batch_variance, batch_mean, batch_variance


def _variance(inv_std, epsilon):
    """The variance that an inverse deviation was made of."""
    return ops.relu(1.0 / ops.square(inv_std) - epsilon)


@primitive
def LayerNorm(
    input_x, gamma, beta,
    *, begin_norm_axis: anything = 1, begin_params_axis: anything = 1, epsilon: anything = 1e-7,
):  # fmt: skip
    """Normalization of each sample over the axes from `begin_norm_axis` on.

    Shapes: input_x [..., *norm], gamma and beta its shape from `begin_params_axis` on -> input_x's, and the
    mean and variance with the normalized axes of size 1, through which no gradient flows.
    """
    y, mean, inv_std = _layer_norm(
        input_x, gamma, beta, begin_norm_axis=begin_norm_axis, begin_params_axis=begin_params_axis,
        epsilon=float(epsilon),
    )  # fmt: skip
    return y, ops.stop_gradient(mean), ops.stop_gradient(_variance(inv_std, float(epsilon)))


@primitive
def RmsNorm(x, gamma, *, epsilon: real = 1e-6):
    """Division by the root mean square over the axes of `gamma`; also the factor."""
    return ops.rms_norm(x, gamma, epsilon)


def _single_axis(value):
    axes = [value] if isinstance(value, int) else value
    if not isinstance(axes, (list, tuple)) or any(
        isinstance(a, bool) or not isinstance(a, int) for a in axes
    ):
        raise Misfit(TypeError, "an int, or a list or tuple of one")
    if len(axes) != 1:
        raise Misfit(TypeError, "one axis")
    return list(axes)


@primitive
def L2Normalize(x, *, axis: _single_axis = 0, epsilon: real = 1e-4):
    """Scaled to length one along `axis`: ``x / sqrt(max(sum(x^2), epsilon))``."""
    if not -x.ndim <= axis[0] < x.ndim:
        raise errors.value_error("L2Normalize", f"axis {axis[0]} is out of range for shape {tuple(x.shape)}")
    return _l2_normalize(x, axis=tuple(axis), epsilon=epsilon)


@primitive
def LRN(
    x, *, depth_radius: natural = 5, bias: real = 1.0, alpha: real = 1.0, beta: real = 0.5,
    norm_region: choice("ACROSS_CHANNELS") = "ACROSS_CHANNELS",
):  # fmt: skip
    """Local response normalization across channels, see `ops.lrn`."""
    return ops.lrn(x, depth_radius, bias, alpha, beta, norm_region)


@primitive
def L2Loss(input_x):
    """Half the sum of squares. dtypes: floating."""
    if not input_x.dtype.is_floating:
        raise errors.type_error("L2Loss", f"the input must have a floating dtype, but it is {input_x.dtype}")
    return ops.sum(ops.square(input_x)) / 2


@primitive
def ChannelShuffle(x, *, group: integer):
    """Channels of `group` groups dealt out in turn, see `ops.channel_shuffle`."""
    return ops.channel_shuffle(x, group)


@primitive
def InTopK(x1, x2, *, k: integer):
    """Whether the class of each row is among its `k` largest. Shapes: x1 [N, C], x2 [N] -> bool [N]."""
    return ops.intopk(x1, x2, k)


# ----------------------------------------------------------------------------------------- dropout


@primitive(extra={"side_effect_hidden": True}, state=own_stream)
def Dropout(x, *, keep_prob: anything = 0.5, Seed0: integer = 0, Seed1: integer = 0, state):
    """Elements kept with probability `keep_prob` and scaled by its inverse; also the mask, in x's dtype."""
    if isinstance(keep_prob, (str, bool)) or not 0 < keep_prob <= 1:
        raise errors.runtime_error("Dropout", f"keep_prob must be in (0, 1], but got {keep_prob!r}")
    key = next_key(state)
    kept = _dropout(ops.ones_like(x), key, p=1.0 - keep_prob)
    return _dropout(x, key, p=1.0 - keep_prob), ops.cast(kept != 0, x.dtype)


_probability = within(real, 0.0, 1.0)


def _channel_dropout(owner, rank, x, keep_prob):
    if x.ndim != rank:
        raise errors.value_error(owner, f"the input must have rank {rank}, but its shape is {tuple(x.shape)}")
    drawn = ops.rand(*x.shape[:2], *(1,) * (rank - 2))
    mask = ops.broadcast_to(drawn < keep_prob, x.shape)
    scale = 1.0 / keep_prob if keep_prob else 0.0
    return x * ops.cast(mask, x.dtype) * scale, mask


@primitive
def Dropout2D(x, *, keep_prob: _probability = 0.5):
    """Channels of images kept with probability `keep_prob` and scaled by its inverse; also the bool mask."""
    return _channel_dropout("Dropout2D", 4, x, keep_prob)


@primitive
def Dropout3D(x, *, keep_prob: _probability = 0.5):
    """Channels of volumes kept with probability `keep_prob` and scaled by its inverse; also the bool mask."""
    return _channel_dropout("Dropout3D", 5, x, keep_prob)


@primitive
def DropoutGenMask(shape, keep_prob, *, Seed0: integer = 0, Seed1: integer = 0):
    """A mask for `DropoutDoMask`: a bit an element, in bytes, padded to 128 bits. -> uint8 [bytes]."""
    sizes = shape.asnumpy().tolist() if hasattr(shape, "asnumpy") else shape
    count = 1
    for n in sizes:
        count *= n
    drawn = ops.rand(-(-count // 128) * 16, 8) < keep_prob
    bits = ops.cast(drawn, dtypes.int32) * ops.cast(2 ** ops.arange(8), dtypes.int32)
    return ops.cast(ops.sum(bits, -1), dtypes.uint8)


@primitive
def DropoutDoMask(x, mask, keep_prob):
    """The elements whose bits are set in a mask of `DropoutGenMask`, scaled by ``1 / keep_prob``."""
    rows = ops.cast(ops.expand_dims(mask, -1), dtypes.int32)
    bits = ops.bitwise_and(ops.bitwise_right_shift(rows, ops.cast(ops.arange(8), dtypes.int32)), 1)
    kept = ops.reshape(ops.reshape(bits, (-1,))[: x.size], x.shape)
    return x * ops.cast(kept, x.dtype) / keep_prob


@primitive
def FloatStatus(x):
    """Whether a number is not finite. Shapes: any -> float32 [1]: 1 if there is one, else 0."""
    return ops.reshape(ops.cast(ops.logical_not(ops.all(ops.isfinite(x))), dtypes.float32), (1,))
