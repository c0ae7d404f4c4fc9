"""What the ops are in PyTorch, and which cases of them."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from mycelia import dtypes


def conv(x, w, b, *, stride, pad, dilation, group):
    return F.conv2d(x, w, b, two(stride), two(pad[:2]), two(dilation), group)


def conv_input_grad(dy, w, *, size, stride, pad, dilation, group):
    stride, pad, dilation = two(stride), two(pad[:2]), two(dilation)
    least = [
        (dy.shape[i + 2] - 1) * stride[i] - 2 * pad[i] + dilation[i] * (w.shape[i + 2] - 1) + 1
        for i in (0, 1)
    ]
    rest = [int(size[i] - least[i]) for i in (0, 1)]  # what no window reached
    return F.conv_transpose2d(dy, w, None, stride, pad, rest, group, dilation)


def conv_weight_grad(x, dy, *, kernel, stride, pad, dilation, group):
    windows = F.unfold(x, kernel, two(dilation), two(pad[:2]), two(stride))
    windows = windows.reshape(x.shape[0], group, windows.shape[1] // group, -1)
    dy = dy.reshape(x.shape[0], group, dy.shape[1] // group, -1)
    return torch.einsum("ngop,ngkp->gok", dy, windows).reshape(-1, x.shape[1] // group, *kernel)


def max_pool(x, *, kernel, stride, pad, dilation, ceil, data_format):
    return F.max_pool2d(x, kernel, two(stride))


def max_pool_grad(x, dy, *, kernel, stride, pad, dilation, ceil, data_format):
    _, places = F.max_pool2d(x, kernel, two(stride), return_indices=True)
    return torch.ops.aten.max_pool2d_with_indices_backward(
        dy, x, kernel, two(stride), (0, 0), (1, 1), False, places
    )


def mat_mul(x, y, *, transpose_a, transpose_b):
    return torch.matmul(x.T if transpose_a else x, y.T if transpose_b else y)


def total(x, *, dim, keepdim, dtype):
    return torch.sum(x, dim or tuple(range(x.ndim)), keepdim)


def two(values):
    """A value for each dimension of an image."""
    return tuple(values) * (2 // len(values))


FUNCTIONS = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "relu": torch.relu,
    "relu_grad": lambda dy, y: dy * (y > 0),
    "tanh": torch.tanh,
    "exp": torch.exp,
    "dense": F.linear,
    "mat_mul": mat_mul,
    "conv": conv,
    "conv_input_grad": conv_input_grad,
    "conv_weight_grad": conv_weight_grad,
    "max_pool": max_pool,
    "max_pool_grad": max_pool_grad,
    "reshape": lambda x, *, shape: torch.reshape(x, shape),
    "transpose": lambda x, *, dims: torch.permute(x, dims),
    "sum": total,
}


def can_run(node) -> bool:
    """Whether a node is one of these, on float32 tensors that are not empty, in a case that is the same."""
    name, attrs = node.op.name, node.attrs
    types = [v.type for v in (*node.inputs, *node.outputs) if v is not None]
    if name not in FUNCTIONS or any(t.dtype is not dtypes.float32 or 0 in t.shape for t in types):
        return False
    if not all(t.is_static for t in types):
        return False
    if name.startswith("conv"):
        pad = attrs["pad"]
        return types[0].rank == 4 and (len(pad) < 4 or pad[:2] == pad[2:])
    if name.startswith("max_pool"):
        plain = not any(attrs["pad"]) and set(attrs["dilation"]) == {1} and not attrs["ceil"]
        return types[0].rank == 4 and plain and attrs["data_format"] == "NCHW"
    if name == "sum":
        return attrs["dtype"] is None and types[0].rank > 0
    return True
