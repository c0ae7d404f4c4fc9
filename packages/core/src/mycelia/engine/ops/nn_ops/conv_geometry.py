"""Windows of convolutions and poolings: strides, pads, dilations, sizes of results."""

from mycelia.engine.base import errors
from mycelia.engine.ir.sizes import is_open
from mycelia.engine.ir.symint import applied


def same_pads(size, kernel, stride, dilation):
    """Explicit paddings (begins, then ends) of pad mode 'same': ``ceil(size / stride)`` output positions.

    The smaller half comes first. Unknown sizes (-1) are allowed where the stride is 1.
    """
    begins, ends = [], []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        if n < 0 and s != 1:
            raise errors.value_error(
                f"pad mode 'same' with stride {s} needs known spatial sizes, got {tuple(size)}"
            )
        outputs = n if s == 1 else -(-n // s)
        total = applied(max, (outputs - 1) * s + (k - 1) * d + 1 - n, 0)
        begins.append(total // 2)
        ends.append((total + 1) // 2)
    return (*begins, *ends)


def spread(name, value, rank, least, owner):
    """`rank` ints from one int or a sequence, each at least `least`; errors name `owner` and `name`."""
    values = (value,) * rank if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(values, (tuple, list)) or any(
        isinstance(v, bool) or not isinstance(v, int) for v in values
    ):
        kind = type(value).__name__
        raise errors.type_error(
            f"For '{owner}', '{name}' must be an int or {rank} ints, got {value!r} ({kind})"
        )
    if len(values) == 1:
        values = tuple(values) * rank
    if len(values) != rank:
        raise errors.value_error(
            f"For '{owner}', '{name}' must be an int or a tuple of {rank} ints, got {value!r}"
        )
    if any(v < least for v in values):
        raise errors.value_error(f"For '{owner}', '{name}' must be at least {least}, got {value!r}")
    return tuple(values)


def explicit_pads(owner, pad_mode, padding, size, kernel, stride, dilation):
    """Explicit paddings for MindSpore's `pad_mode`;
    `padding` is symmetric or has begin and end a dimension.
    """
    rank = len(kernel)
    if pad_mode == "pad":
        if isinstance(padding, (tuple, list)) and len(padding) == 2 * rank and rank > 1:
            both = spread("padding", padding, 2 * rank, 0, owner)  # (top, bottom, left, right)
            return (*both[0::2], *both[1::2])
        return spread("padding", padding, rank, 0, owner) * 2
    if pad_mode not in ("valid", "same"):
        raise errors.value_error(
            f"For '{owner}', 'pad_mode' must be 'valid', 'same' or 'pad', got {pad_mode!r}"
        )
    if any(padding) if isinstance(padding, (tuple, list)) else padding:
        raise errors.value_error(
            f"For '{owner}', 'padding' must be 0 when 'pad_mode' is {pad_mode!r}, got {padding!r}"
        )
    return same_pads(size, kernel, stride, dilation) if pad_mode == "same" else (0,) * (2 * rank)


LARGEST = 2**31 - 1  # kernel, stride, pad, dilation: sums and products of positions stay far from overflow


def full_attributes(rank, kernel, stride, pad, dilation):
    """The list attributes, each with one entry a spatial dimension (pads: two), checked."""
    if not 1 <= rank <= 3:
        raise errors.value_error(f"convolution has 1 to 3 spatial dimensions, got {rank}")

    def full(name, values, count, least):
        values = tuple(values) * count if len(values) == 1 else tuple(values)
        if len(values) != count or any(v < least for v in values):
            raise errors.value_error(f"{name} must have {count} entries of {least} or more, got {values}")
        if any(not is_open(v) and v > LARGEST for v in values):
            raise errors.value_error(f"{name} must have entries of at most {LARGEST}, got {values}")
        return values

    return (
        full("kernel", kernel, rank, 1),
        full("stride", stride, rank, 1),
        full("pad", pad, 2 * rank, 0),
        full("dilation", dilation, rank, 1),
    )


def output_size(size, kernel, stride, pad, dilation):
    """Positions of the window in each dimension; -1 where the size is unknown."""
    rank, out = len(kernel), []
    for d in range(rank):
        span = (kernel[d] - 1) * dilation[d] + 1
        padded = size[d] + pad[d] + pad[rank + d]
        if size[d] >= 0 and padded < span:
            raise errors.value_error(
                f"a window of {span} does not fit the padded size {padded} of spatial dimension {d}"
            )
        out.append(-1 if size[d] < 0 else (padded - span) // stride[d] + 1)
    return tuple(out)
