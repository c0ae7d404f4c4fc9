"""Activations, normalization, recurrent layers, losses."""

from __future__ import annotations

from mycelia.engine import ops
from mycelia.engine.ops.nn_ops.batch_norm import _batch_norm_infer, _batch_norm_train
from mycelia.engine.ops.nn_ops.cross_entropy import _softmax_cross_entropy
from mycelia.engine.ops.nn_ops.lrn import _l2_normalize
from mycelia.engine.ops.nn_ops.norm import _layer_norm
from mycelia.engine.ops.nn_ops.rnn import _lstm_layer
from mycelia.io.mindir.operators.arguments import REDUCTIONS, as_dtype, ints, is_channels_last, text
from mycelia.io.mindir.operators.table import operator

# ---- activations ---------------------------------------------------------------------------------


@operator
def GeLU(x):
    return ops.gelu(x, approximate="tanh")


@operator
def GeluExt(x, approximate=0):
    return ops.gelu(x, approximate=text(approximate, ("none", "tanh")))


@operator
def Softmax(x, *, axis=-1):
    axes = ints(axis)
    if len(axes) == 1:
        return ops.softmax(x, axes[0])
    e = ops.exp(x - ops.amax(x, axes, True))
    return e / ops.sum(e, axes, True)


@operator
def LogSoftmaxExt(x, dim=None, dtype=None):
    if dtype is not None:
        x = ops.cast(x, as_dtype(dtype))
    return ops.log_softmax(x, -1 if dim is None else dim)


@operator
def Elu(x, *, alpha=1.0):
    return ops.elu(x, alpha)


operator(Elu, "EluExt")


@operator
def LeakyReLU(x, *, negative_slope=0.01):
    return ops.leaky_relu(x, alpha=negative_slope)


operator(LeakyReLU, "LeakyReLUExt")


@operator
def Softplus(x):
    return ops.softplus(x)


@operator
def SoftplusExt(x, beta=1, threshold=20):
    return ops.softplus(x, beta, threshold)


@operator
def Hardtanh(x, min_val=-1, max_val=1):
    return ops.hardtanh(x, min_val, max_val)


@operator
def Threshold(x, threshold, value):
    return ops.threshold(x, thr=threshold, value=value)


@operator
def LogSigmoid(x):
    y = ops.logsigmoid(x)
    return y, y  # the second is a buffer for the gradient


@operator
def Dropout(x, *, keep_prob=0.5, Seed0=0, Seed1=0):
    y = ops.dropout(x, p=1 - keep_prob, training=True)
    return y, ops.cast(ops.not_equal(y, 0), x.dtype)


# ---- normalization -------------------------------------------------------------------------------


@operator
def BatchNorm(
    x, scale, bias, mean, variance, *, is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW"
):
    layout = dict(epsilon=epsilon, data_format="NHWC" if is_channels_last(data_format) else "NCHW")
    if not is_training:
        return _batch_norm_infer(x, scale, bias, mean, variance, **layout), scale, bias, mean, variance
    y, batch_mean, inv_std = _batch_norm_train(mean, variance, x, scale, bias, momentum=momentum, **layout)
    return y, batch_mean, inv_std, batch_mean, inv_std


@operator
def BatchNormExt(x, weight=None, bias=None, mean=None, variance=None, training=False, momentum=0.1, eps=1e-5):
    y = ops.batch_norm(x, mean, variance, weight, bias, training, momentum, eps)
    return y, mean, variance


@operator
def LayerNorm(x, gamma, beta, *, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7):
    axes = dict(begin_norm_axis=begin_norm_axis, begin_params_axis=begin_params_axis)
    y, mean, inverse = _layer_norm(x, gamma, beta, **axes, epsilon=epsilon)
    return y, mean, 1 / ops.square(inverse) - epsilon  # the variance


@operator
def L2Normalize(x, *, axis=0, epsilon=1e-4):
    return _l2_normalize(x, axis=ints(axis), epsilon=epsilon)


@operator
def LayerNormExt(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return (ops.layer_norm(x, ints(normalized_shape), weight, bias, eps),)


@operator
def GroupNorm(x, num_groups, weight=None, bias=None, eps=1e-5):
    return (ops.group_norm(x, num_groups, weight, bias, eps),)


@operator
def RmsNorm(x, gamma, *, epsilon=1e-6):
    return ops.rms_norm(x, gamma, epsilon)


# ---- recurrent -----------------------------------------------------------------------------------


@operator
def LSTM(
    x, h0, c0, weights, *, input_size, hidden_size, num_layers=1, has_bias=True, bidirectional=False,
    dropout=0.0, proj_size=0,
):  # fmt: skip
    """One layer, one direction: x [T, B, I], states [1, B, H], weights [n, 1, 1] packed
    as W_ih, W_hh, b_ih + b_hh.
    """
    if num_layers != 1 or bidirectional or proj_size:
        raise ValueError("LSTM with several layers, two directions or a projection is not supported")
    flat = ops.reshape(weights, (-1,))
    rows = 4 * hidden_size
    w_ih = ops.reshape(ops.narrow(flat, 0, 0, rows * input_size), (rows, input_size))
    w_hh = ops.reshape(ops.narrow(flat, 0, rows * input_size, rows * hidden_size), (rows, hidden_size))
    bias = ops.narrow(flat, 0, rows * (input_size + hidden_size), rows) if has_bias else None
    y, h, c, *_ = _lstm_layer(x, ops.squeeze(h0, 0), ops.squeeze(c0, 0), w_ih, w_hh, bias)
    scratch = ops.zeros((1, 1), x.dtype)  # two outputs that only MindSpore's gradient uses
    return y, ops.expand_dims(h, 0), ops.expand_dims(c, 0), scratch, scratch


# ---- losses --------------------------------------------------------------------------------------


@operator
def MSELossExt(x, target, reduction=1):
    return ops.mse_loss(x, target, text(reduction, REDUCTIONS))


@operator
def L1LossExt(x, target, reduction=1):
    return ops.l1_loss(x, target, text(reduction, REDUCTIONS))


@operator
def SmoothL1Loss(x, target, *, beta=1.0, reduction=2):
    return ops.smooth_l1_loss(x, target, beta, text(reduction, REDUCTIONS))


@operator
def BinaryCrossEntropy(x, target, weight=None, *, reduction=1):
    return ops.binary_cross_entropy(x, target, weight, text(reduction, REDUCTIONS))


@operator
def BCEWithLogitsLoss(x, target, weight=None, pos_weight=None, *, reduction=1):
    return ops.binary_cross_entropy_with_logits(x, target, weight, pos_weight, text(reduction, REDUCTIONS))


@operator
def SoftmaxCrossEntropyWithLogits(logits, labels):
    return _softmax_cross_entropy(logits, labels)


@operator
def SparseSoftmaxCrossEntropyWithLogits(logits, labels, *, is_grad=False):
    if is_grad:
        depth = logits.shape[-1]
        return (ops.softmax(logits, -1) - ops.cast(ops.one_hot(labels, depth), logits.dtype)) / labels.size
    return ops.cross_entropy(logits, labels)


@operator
def NLLLoss(log_probabilities, labels, weight, *, reduction=1, ignore_index=-100):
    loss = ops.nll_loss(log_probabilities, labels, weight, ignore_index, text(reduction, REDUCTIONS))
    return loss, ops.sum(ops.gather(weight, labels, 0))
