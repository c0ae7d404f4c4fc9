"""Derivatives of fused gradient ops.

A fused gradient kernel (of a normalization, a recurrent layer, attention) has no formula of its own for the
second derivative: it is obtained by writing the same gradient as a composition of public ops and
differentiating that.
"""


def double_backward(composition, cts, *inputs):
    """Gradients of ``composition(*inputs)`` for the cotangents `cts`,
    one an input (None for an input that is None).

    `composition` returns a tensor or a tuple of tensors; an entry of `cts` that is None counts as zero.
    """
    from mycelia.engine.autodiff.jacobian_products import vjp  # autodiff is built upon the ops

    given = [i for i, x in enumerate(inputs) if x is not None]
    used = [i for i, ct in enumerate(cts) if ct is not None]

    def outputs(*tensors):
        full = list(inputs)
        for i, tensor in zip(given, tensors, strict=True):
            full[i] = tensor
        results = composition(*full)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(results[i] for i in used)

    _, pull = vjp(outputs, *(inputs[i] for i in given))
    gradients = pull(*(cts[i] for i in used))
    gradients = gradients if isinstance(gradients, (tuple, list)) else (gradients,)
    found = [None] * len(inputs)
    for i, gradient in zip(given, gradients, strict=True):
        found[i] = gradient
    return found
