# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.faces.mint.nn.windows import (
    adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d, avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d,
    avg_pool3d as avg_pool3d, conv1d as conv1d, conv2d as conv2d, conv3d as conv3d,
    conv_transpose2d as conv_transpose2d, fold as fold, interpolate as interpolate,
    max_pool2d as max_pool2d, unfold as unfold, upsample as upsample,
)
from mycelia.mint import flatten as flatten
from mycelia.mint.special import log_softmax as log_softmax
from mycelia.ops import (
    cosine_embedding_loss as cosine_embedding_loss, cross_entropy as cross_entropy, embedding as embedding,
    grid_sample as grid_sample, group_norm as group_norm, hardsigmoid as hardsigmoid,
    hardswish as hardswish, l1_loss as l1_loss, layer_norm as layer_norm, mse_loss as mse_loss,
    pixel_shuffle as pixel_shuffle, prelu as prelu, sigmoid as sigmoid,
    soft_margin_loss as soft_margin_loss, softplus as softplus, tanh as tanh,
)
from typing import Any as Any

__all__ = [
    "gelu", "glu", "hardshrink", "leaky_relu", "linear", "logsigmoid", "mish", "nll_loss", "pad", "selu",
    "softshrink", "binary_cross_entropy", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "batch_norm", "binary_cross_entropy_with_logits", "conv1d", "conv2d", "conv3d",
    "conv_transpose2d", "cosine_embedding_loss", "cross_entropy", "dropout", "dropout2d", "elu", "elu_",
    "embedding", "flatten", "fold", "grid_sample", "group_norm", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "interpolate", "kl_div", "l1_loss", "layer_norm", "log_softmax", "max_pool2d",
    "max_unpool2d", "mse_loss", "normalize", "one_hot", "pixel_shuffle", "prelu", "relu", "relu6", "relu_",
    "sigmoid", "sigmoid_", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softplus", "tanh",
    "threshold", "threshold_", "unfold", "upsample",
]


def gelu(input, *, approximate='none') -> Tensor:
    """Gaussian error unit: ``x * (1 + erf(x / sqrt(2))) / 2``."""

def glu(input, dim=-1) -> Tensor:
    """Gated linear unit: the first half of `x` along `axis` times the sigmoid of the second half."""

def hardshrink(input, lambd=0.5) -> Tensor:
    """Zero near the origin: `input` where ``|input| > lambd``, else 0."""

def leaky_relu(input, negative_slope=0.01) -> Tensor:
    """Rectifier with a slope for negative values: ``input if input > 0 else alpha * input``."""

def linear(input, weight, bias=None) -> Tensor:
    """Fully connected layer: ``input @ weight.T + bias``."""

def logsigmoid(input) -> Tensor:
    """Logarithm of the logistic function: ``-log(1 + exp(-x))``."""

def mish(input) -> Tensor:
    """Self regularized unit: ``x * tanh(log(1 + exp(x)))``."""

def nll_loss(input, target, weight=None, ignore_index=-100, reduction='mean') -> Tensor:
    """Negative log likelihood of class indices: ``-weight[target] * inputs[target]`` of log-probabilities."""

def pad(input, pad, mode='constant', value=None) -> Any:
    """Pad the last axes: `padding` is (before, after) of the last axis, then of the one before it, and so on."""

def selu(input) -> Tensor:
    """Scaled exponential unit: ``1.0507 * (x if x > 0 else 1.67326 * (exp(x) - 1))``,"""

def softshrink(input, lambd=0.5) -> Tensor:
    """Shrink towards zero: ``input - lambd`` above `lambd`, ``input + lambd`` below ``-lambd``, else 0."""

def binary_cross_entropy(input, target, weight=None, reduction='mean') -> Tensor:
    """Cross entropy of two classes from probabilities:"""

def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05) -> Tensor:
    """``weight * (input - mean) / sqrt(var + eps) + bias`` per channel; None stands for 1 and 0."""

def binary_cross_entropy_with_logits(input, target, weight=None, reduction='mean', pos_weight=None) -> Tensor:
    """Binary cross entropy of ``sigmoid(input)``, computed without overflow."""

def dropout(input, p=0.5, training=True, inplace=False) -> Tensor:
    """Zeroes elements with probability `p` and scales the others by ``1 / (1 - p)``; nothing if not training."""

def dropout2d(input, p=0.5, training=True, inplace=False) -> Tensor:
    """Zeroes whole channels with probability `p` and scales the others by ``1 / (1 - p)``."""

def elu(input, alpha=1.0, inplace=False) -> Tensor:
    """``input`` where positive, else ``alpha * (exp(input) - 1)``; `inplace` overwrites `input`."""

def elu_(input, alpha=1.0) -> Tensor:
    """`elu` in place."""

def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False) -> Tensor:
    """Limited to [min_val, max_val]; `inplace` overwrites `input`."""

def hardtanh_(input, min_val=-1, max_val=1) -> Tensor:
    """`hardtanh` in place."""

def kl_div(input, target, reduction='mean', log_target=False) -> Tensor:
    """``target * (log(target) - input)`` of log-probabilities `input`; with `log_target` of their logarithms."""

def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None) -> Tensor:
    """Puts maxima of an image back to their places `indices` (in H * W of the result); 0 elsewhere."""

def normalize(input, p=2.0, dim=1, eps=1e-12) -> Tensor:
    """Slices along `dim` divided by their `p`-norm, which is at least `eps`."""

def one_hot(tensor, num_classes=-1) -> Tensor:
    """1 at the place that each index names along a new last dimension of `num_classes`, 0 elsewhere."""

def relu(input, inplace=False) -> Tensor:
    """``max(input, 0)``; `inplace` overwrites `input`."""

def relu6(input, inplace=False) -> Tensor:
    """``min(max(input, 0), 6)``; `inplace` overwrites `input`."""

def relu_(input) -> Tensor:
    """`relu` in place."""

def sigmoid_(input) -> Tensor:
    """`sigmoid` in place."""

def silu(input, inplace=False) -> Tensor:
    """``input * sigmoid(input)``; `inplace` overwrites `input`."""

def smooth_l1_loss(input, target, reduction='mean', beta=1.0) -> Tensor:
    """``d ** 2 / (2 beta)`` for distances d below `beta`, else ``d - beta / 2``."""

def softmax(input, dim=None, dtype=None) -> Tensor:
    """Normalized exponentials along `dim`, of the elements as `dtype`."""

def threshold(input, threshold, value, inplace=False) -> Tensor:
    """``input`` where above `threshold`, else `value`; `inplace` overwrites `input`."""

def threshold_(input, threshold, value) -> Tensor:
    """`threshold` in place."""
