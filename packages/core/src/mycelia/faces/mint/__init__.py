"""mint: tensor functions, layers and optimizers with the signatures of PyTorch.

A function has its home in one module of this package, or in `mycelia.ops` where the signature is the same.
Names are looked up on first use.
"""

from __future__ import annotations

from importlib import import_module

_HOMES = {
    "mycelia.engine.ops": """
        abs acos acosh addbmm addmm addmv arange arccos arccosh arcsinh arctan arctan2 arctanh asin asinh atan
        atan2 atanh bitwise_and bitwise_or bitwise_xor ceil clamp cos cosh cross cumprod div divide dstack
        einsum empty empty_like eq erf erfc erfinv exp exp2 expm1 eye float_power floor floor_divide fmod
        full_like gcd greater greater_equal gt hstack imag inverse isclose isfinite isinf isneginf le
        lerp less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
        logical_xor logsumexp lt masked_select matmul maximum minimum mm mul ne neg negative nonzero not_equal
        ones_like outer polar pow ravel real reciprocal remainder roll round rsqrt searchsorted sigmoid sign
        sin sinc sinh square swapaxes t take tan tanh trunc unbind unique_consecutive unsqueeze xlogy
        zeros_like
    """,
    "mycelia.faces.mint.elementwise": """
        add addcdiv allclose arcsin bitwise_not clone equal fix frac isnan nan_to_num npu_gelu sqrt sub
    """,
    "mycelia.faces.mint.reduction": """
        all amax amin any argmax argmin bincount count_nonzero cummax cummin cumsum diff histc max mean median
        min nansum norm prod softmax std std_mean sum trace var var_mean
    """,
    "mycelia.faces.mint.shaping": """
        broadcast_to cat chunk concat diag flatten flip meshgrid narrow permute repeat_interleave reshape
        split squeeze stack tile transpose tril triu
    """,
    "mycelia.faces.mint.indexing": """
        argsort gather index_add index_select kthvalue scatter scatter_add select sort topk unique where
    """,
    "mycelia.faces.mint.products": "addr_ baddbmm bmm cdist dot mv triangular_solve vdot",
    "mycelia.faces.mint.creation": """
        bernoulli full linspace multinomial normal ones rand rand_like randint randint_like randn randn_like
        randperm zeros
    """,
    "mycelia.faces.mint.batches": """
        batch_norm_elemt batch_norm_gather_stats_with_counts batch_norm_stats conv_tbc
    """,
    "mycelia.faces.mint.nn.windows": "conv2d",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}
_MODULES = ("distributed", "linalg", "nn", "optim", "special")

__all__ = sorted([*_NAMES, *_MODULES])


def __getattr__(name: str):
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
