"""`mint.nn.functional`: activations, normalization, losses; what moves windows is in `windows.py`."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops import (
    cosine_embedding_loss,
    cross_entropy,
    embedding,
    grid_sample,
    group_norm,
    hardsigmoid,
    hardswish,
    l1_loss,
    layer_norm,
    mse_loss,
    pixel_shuffle,
    prelu,
    sigmoid,
    soft_margin_loss,
    softplus,
    tanh,
)
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.nn_ops.loss_reduction import _reduced
from mycelia.faces.mint.nn.windows import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose2d,
    fold,
    interpolate,
    max_pool2d,
    max_unpool2d,
    unfold,
    upsample,
)
from mycelia.faces.mint.shaping import flatten
from mycelia.faces.mint.signature_adapters import faces

_FACES = {
    "gelu(input, *, approximate='none')": ops.gelu,
    "glu(input, dim=-1)": ops.glu,
    "hardshrink(input, lambd=0.5)": ops.hardshrink,
    "leaky_relu(input, negative_slope=0.01)": ops.leaky_relu,
    "linear(input, weight, bias=None)": ops.dense,
    "logsigmoid(input)": ops.logsigmoid,
    "mish(input)": ops.mish,
    "nll_loss(input, target, weight=None, ignore_index=-100, reduction='mean')": ops.nll_loss,
    "pad(input, pad, mode='constant', value=None)": ops.pad,
    "selu(input)": ops.selu,
    "softshrink(input, lambd=0.5)": ops.softshrink,
    "binary_cross_entropy(input, target, weight=None, reduction='mean')": ops.binary_cross_entropy,
}
_made = faces(_FACES, __name__)
globals().update(_made)

# ------------------------------------------------------------------------------------------------ activations


def _result(input, value, inplace: bool):
    """`value`, or `input` itself with that value."""
    return input.assign_value(value) if inplace else value


def _activation(name: str, function, does: str):
    def activation(input, inplace=False):
        return _result(input, function(input), inplace)

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = f"{does}; `inplace` overwrites `input`.\n\nShapes: any -> same."
    return activation


relu = _activation("relu", ops.relu, "``max(input, 0)``")
relu6 = _activation("relu6", ops.relu6, "``min(max(input, 0), 6)``")
silu = _activation("silu", ops.silu, "``input * sigmoid(input)``")


def elu(input, alpha=1.0, inplace=False):
    """``input`` where positive, else ``alpha * (exp(input) - 1)``; `inplace` overwrites `input`.

    Shapes: any -> same.  dtypes: floating.
    """
    return _result(input, ops.elu(input, alpha), inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """Limited to [min_val, max_val]; `inplace` overwrites `input`.

    Shapes: any -> same.  dtypes: real.
    """
    return _result(input, ops.hardtanh(input, min_val, max_val), inplace)


def threshold(input, threshold, value, inplace=False):
    """``input`` where above `threshold`, else `value`; `inplace` overwrites `input`.

    Shapes: any -> same.  dtypes: real.
    """
    return _result(input, ops.threshold(input, threshold, value), inplace)


def relu_(input):
    """`relu` in place."""
    return relu(input, True)


def sigmoid_(input):
    """`sigmoid` in place."""
    return _result(input, sigmoid(input), True)


def elu_(input, alpha=1.0):
    """`elu` in place."""
    return elu(input, alpha, True)


def hardtanh_(input, min_val=-1, max_val=1):
    """`hardtanh` in place."""
    return hardtanh(input, min_val, max_val, True)


def threshold_(input, threshold, value):
    """`threshold` in place."""
    return _result(input, ops.threshold(input, threshold, value), True)


def _softmax_axis(input, dim, dtype):
    """The input as `dtype`, and the axis: without `dim` the first of rank 0, 1 and 3, else the second."""
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise errors.type_error(f"dim must be an int, but is {dim!r}")
    return input if dtype is None else cast(input, dtype), dim


def softmax(input, dim=None, dtype=None):
    """Normalized exponentials along `dim`, of the elements as `dtype`.

    Without `dim`: along the first dimension of rank 0, 1 and 3, else along the second.
    Shapes: any -> same.  dtypes: floating.
    """
    x, axis = _softmax_axis(input, dim, dtype)
    return ops.softmax(x, axis) if x.ndim else ops.ones_like(x)


def log_softmax(input, dim=None, *, dtype=None):
    """Logarithm of `softmax`.

    Shapes: any -> same.  dtypes: floating.
    """
    x, axis = _softmax_axis(input, dim, dtype)
    return ops.log_softmax(x, axis) if x.ndim else ops.zeros_like(x)


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``; nothing if not training.

    Shapes: any -> same.  dtypes: floating.  Errors: ValueError if `p` is not in [0, 1].
    """
    _check_probability("dropout", p)
    return _dropped(input, p, inplace, ops.dropout) if training and p else input


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels with probability `p` and scales the others by ``1 / (1 - p)``.

    Shapes: [N, C, H, W] or [C, H, W] -> same.  dtypes: floating.  Errors: ValueError if `p` is not in [0, 1].
    """
    _check_probability("dropout2d", p)
    return _dropped(input, p, inplace, ops.dropout2d) if training and p else input


def _check_probability(owner: str, p) -> None:
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise errors.type_error(owner, f"p must be a float, but got {p!r}")
    if not 0 <= p <= 1:
        raise errors.value_error(owner, f"p must be in [0, 1], but got {p}")


def _dropped(input, p, inplace, drop):
    return _result(input, ops.mul(input, 0) if p == 1 else drop(input, p), inplace)


# ---------------------------------------------------------------------------------------------- normalization


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """``weight * (input - mean) / sqrt(var + eps) + bias`` per channel; None stands for 1 and 0.

    In training the statistics are those of the batch, and the running ones (which may be None) move towards
    them by `momentum`.
    Shapes: input [N, C, ...], the others [C] -> as input.  dtypes: floating.
    """
    shape = (input.shape[1],)
    kind = running_mean.dtype if running_mean is not None else dtypes.float32
    weight = ops.ones(shape, kind) if weight is None else weight
    bias = ops.zeros(shape, kind) if bias is None else bias
    if training and running_mean is None:
        running_mean, running_var = ops.zeros(shape, kind), ops.ones(shape, kind)
    return ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """Slices along `dim` divided by their `p`-norm, which is at least `eps`.

    Shapes: any -> same.  dtypes: floating.
    """
    return ops.div(input, ops.clamp(ops.vector_norm(input, p, dim, True), eps))


def one_hot(tensor, num_classes=-1):
    """1 at the place that each index names along a new last dimension of `num_classes`, 0 elsewhere.

    Without `num_classes` there are as many as the largest index asks for.
    Shapes: [...] -> [..., num_classes].  dtypes: int32, int64 -> int64.
    Errors: TypeError for other dtypes, ValueError for num_classes < -1.
    """
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise errors.type_error("one_hot", f"tensor must be int32 or int64, but is {tensor.dtype}")
    if isinstance(num_classes, bool) or not isinstance(num_classes, int):
        raise errors.type_error("one_hot", f"num_classes must be an int, but got {num_classes!r}")
    if num_classes < -1:
        raise errors.value_error("one_hot", f"num_classes must be at least -1, but got {num_classes}")
    if num_classes == -1:
        num_classes = int(tensor.asnumpy().max(initial=-1)) + 1
    return cast(ops.equal(ops.expand_dims(tensor, -1), ops.arange(num_classes)), dtypes.int64)


# ----------------------------------------------------------------------------------------------------- losses


def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    """Binary cross entropy of ``sigmoid(input)``, computed without overflow.

    `pos_weight`: a factor of the positive targets.
    Shapes: input, target any -> [] or as input for reduction 'none'.  dtypes: floating.
    """
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input, target, reduction="mean", log_target=False):
    """``target * (log(target) - input)`` of log-probabilities `input`; with `log_target` of their logarithms.

    `reduction`: 'none', 'sum', 'mean' or 'batchmean', the sum over the number of rows.
    Shapes: any -> [] or same.  dtypes: floating.
    """
    if not log_target:
        return ops.kl_div(input, target, reduction)
    loss = ops.exp(target) * (target - input)
    if reduction == "batchmean":
        return ops.sum(loss) / input.shape[0]
    return _reduced("kl_div", loss, reduction)


def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    """``d ** 2 / (2 beta)`` for distances d below `beta`, else ``d - beta / 2``.

    Shapes: broadcast -> [] or that.  dtypes: real.
    """
    if beta == 0:
        return ops.l1_loss(input, target, reduction)
    return ops.smooth_l1_loss(input, target, float(beta), reduction)


__all__ = [
    *_made,
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "binary_cross_entropy_with_logits", "conv1d", "conv2d", "conv3d", "conv_transpose2d",
    "cosine_embedding_loss", "cross_entropy", "dropout", "dropout2d", "elu", "elu_", "embedding",
    "flatten", "fold", "grid_sample", "group_norm", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
    "interpolate", "kl_div", "l1_loss", "layer_norm", "log_softmax", "max_pool2d", "max_unpool2d",
    "mse_loss", "normalize", "one_hot", "pixel_shuffle", "prelu", "relu", "relu6", "relu_", "sigmoid",
    "sigmoid_", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softplus", "tanh", "threshold",
    "threshold_", "unfold", "upsample",
]  # fmt: skip
