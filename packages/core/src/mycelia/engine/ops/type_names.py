"""What an operator is called in dumps, reports and scopes: MindSpore's name where it has the operator."""

from __future__ import annotations

from typing import Any

#: Ops whose block names no operator of MindSpore's files, since theirs has other arguments.
_NAMES = {
    "adaptive_avg_pool": "AdaptiveAvgPool2D",
    "adaptive_avg_pool_grad": "AdaptiveAvgPool2DGrad",
    "adaptive_max_pool": "AdaptiveMaxPool2D",
    "adamw": "AdamWeightDecay",
    "all_reduce_pick": "AllReduce",
    "attention": "FlashAttentionScore",
    "attention_grad": "FlashAttentionScoreGrad",
    "avg_pool": "AvgPool",
    "avg_pool_grad": "AvgPoolGrad",
    "batch_norm_grad": "BatchNormGrad",
    "batch_norm_infer": "BatchNorm",
    "batch_norm_train": "BatchNorm",
    "binary_cross_entropy": "BinaryCrossEntropy",
    "broadcast_from": "Broadcast",
    "check_numerics": "CheckNumerics",
    "clip": "ClipByValue",
    "cond": "Switch",
    "ctc_loss": "CTCLossV2",
    "ctc_loss_grad": "CTCLossV2Grad",
    "dropout": "Dropout",
    "elu_grad": "EluGrad",
    "embedding": "Embedding",
    "exchange_parts": "AlltoAllV",
    "gather_grad": "EmbeddingDenseGrad",
    "gelu": "GeLU",
    "gelu_grad": "GeLUGrad",
    "group_norm": "GroupNorm",
    "group_norm_grad": "GroupNormGrad",
    "gru_layer": "DynamicGRUV2",
    "hardswish_grad": "HSwishGrad",
    "kl_div": "KLDivLoss",
    "layer_norm_grad": "LayerNormGrad",
    "leaky_relu": "LeakyReLU",
    "leaky_relu_grad": "LeakyReLUGrad",
    "log_softmax_grad": "LogSoftmaxGrad",
    "logsigmoid": "LogSigmoid",
    "lstm_layer": "LSTM",
    "lstm_layer_grad": "LSTMGrad",
    "max_pool": "MaxPool",
    "max_pool_grad": "MaxPoolGrad",
    "max_pool_index": "MaxPoolWithArgmax",
    "pad_constant": "Pad",
    "receive_from": "Receive",
    "relu_grad": "ReluGrad",
    "rms_norm_grad": "RmsNormGrad",
    "scan": "Scan",
    "send_to": "Send",
    "sgd": "SGD",
    "sigmoid_grad": "SigmoidGrad",
    "silu_grad": "SiLUGrad",
    "smooth_l1": "SmoothL1Loss",
    "softmax_grad": "SoftmaxGrad",
    "softplus_grad": "SoftplusGrad",
    "sparse_softmax_cross_entropy_with_logits": "SparseSoftmaxCrossEntropyWithLogits",
    "split": "Split",
    "strided_slice": "StridedSlice",
    "tanh_grad": "TanhGrad",
    "tensor_scatter": "TensorScatterUpdate",
    "topk": "TopK",
    "unsorted_segment": "UnsortedSegmentSum",
    "while_loop": "While",
}
_CONVOLUTIONS = {
    "conv": "",
    "conv_input_grad": "BackpropInput",
    "conv_weight_grad": "BackpropFilter",
    "conv_last": "",  # the same with channels last
    "conv_last_input_grad": "BackpropInput",
    "conv_last_weight_grad": "BackpropFilter",
}


def type_name(op: Any, rank: int = 4) -> str:
    """The type of `op`: of convolutions for tensors with `rank` axes, of other ops always the same.

    Letters and digits only, as names of dump files need it.
    """
    name = op.name
    if name in _CONVOLUTIONS:
        return f"Conv{3 if rank == 5 else 2}D{_CONVOLUTIONS[name]}"
    return op.definition.mindir or _NAMES.get(name) or "".join(map(_capital, name.split("_")))


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]
