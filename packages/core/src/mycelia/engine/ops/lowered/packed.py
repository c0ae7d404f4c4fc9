"""What convolutions and products on packed weights share: the size of packs, and what follows in the same op.

Programs hold these ops, users never call them: they have no gradient, and no public name. What a pack looks
like is the business of the backend that made it: a pack and the op that reads it always run on the same
backend, and the compiler emits them only where that backend has kernels for both. Sizes of packs are fixed,
though: ``16 * ceil(channels / 16)`` output channels, called padded below.
"""

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.define import find

PANEL = 16  # channels: packs are padded to a multiple of it

ACTIVATIONS = {
    "none": ("", {}),
    "relu": ("relu", {}),
    "relu6": ("relu6", {}),
    "hardswish": ("hardswish", {}),
    "silu": ("silu", {}),
    "sigmoid": ("sigmoid", {}),
    "gelu": ("gelu", {"approximate": "none"}),
    "gelu_tanh": ("gelu", {"approximate": "tanh"}),
}  # value of the attribute `activation` -> the op it stands for, and its attributes


def padded(channels):
    """`channels` rounded up to whole panels."""
    return -(-channels // PANEL) * PANEL


def np_activated(y, activation):
    name, attrs = ACTIVATIONS[activation]
    return find(name).definition.body(y, **attrs) if name else y


def need_float32(**tensors):
    for name, t in tensors.items():
        if t is not None and t.dtype is not dtypes.float32:
            raise errors.dtype_error(
                f"{name} must be float32, but is {t.dtype.name} of shape {list(t.shape)}"
            )


def check_epilogue(y, b, residual):
    need_float32(b=b, residual=residual)
    if b is not None and b.shape != y.shape[-1:]:
        raise errors.value_error(f"the bias must be [{y.shape[-1]}], got {list(b.shape)}")
    if residual is not None and not y.accepts(residual):
        raise errors.value_error(f"residual must have the result's shape {list(y.shape)}, got {residual}")
