"""Layers of `mint.nn` that call one function with the settings they were made with.

Each is a line: its settings and their defaults are the parameters of the function behind its tensors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from mycelia.faces.mint.nn import functional as F
from mycelia.nn.cell import Cell


def _constructs(function: Callable, names: tuple[str, ...]) -> dict[int, Callable]:
    """`construct` for one, two and three tensors."""

    def one(self, input):
        return function(input, *(getattr(self, name) for name in names))

    def two(self, input, target):
        return function(input, target, *(getattr(self, name) for name in names))

    def three(self, input1, input2, target):
        return function(input1, input2, target, *(getattr(self, name) for name in names))

    return {1: one, 2: two, 3: three}


def _layer(
    name: str, function: Callable, tensors: int = 1, without: str = "", shown: str = "", **defaults
) -> type[Cell]:
    """The layer of a function of `tensors`: the other parameters, but those `without`, are its settings.

    `shown`: the settings that its text names; `defaults`: those that differ from the function's.
    """
    given = list(inspect.signature(function).parameters.values())[tensors:]
    settings = [
        p.replace(
            kind=inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=defaults.get(p.name, p.default),
        )
        for p in given
        if p.name not in without.split()
    ]
    signature = inspect.Signature(settings)
    names = tuple(p.name for p in settings)
    shown_names = shown.split()

    def __init__(self, *args, **kwargs):
        Cell.__init__(self)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for key, value in bound.arguments.items():
            setattr(self, key, value)

    def extend_repr(self):
        return ", ".join(f"{key}={getattr(self, key)}" for key in shown_names)

    if any(p.kind is p.KEYWORD_ONLY for p in given):
        compute = _by_name(function, names)
    else:
        compute = function
    space = {
        "__init__": __init__,
        "construct": _constructs(compute, names)[tensors],
        "extend_repr": extend_repr,
        "__signature__": signature,
        "__module__": __name__,
        "__doc__": f"`mint.nn.functional.{function.__name__}` as a layer.\n\n{function.__doc__ or ''}",
    }
    return type(name, (Cell,), space)


def _by_name(function: Callable, names: tuple[str, ...]) -> Callable:
    """`function` of one tensor, whose settings are keyword-only, with positional ones."""
    return lambda input, *values: function(input, **dict(zip(names, values)))


AdaptiveAvgPool1d = _layer("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, shown="output_size")
AdaptiveAvgPool2d = _layer("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, shown="output_size")
AdaptiveAvgPool3d = _layer("AdaptiveAvgPool3d", F.adaptive_avg_pool3d)
AdaptiveMaxPool1d = _layer("AdaptiveMaxPool1d", F.adaptive_max_pool1d, shown="output_size return_indices")
AdaptiveMaxPool2d = _layer("AdaptiveMaxPool2d", F.adaptive_max_pool2d)
AvgPool1dExt = _layer("AvgPool1dExt", F.avg_pool1d)
AvgPool2dExt = _layer("AvgPool2dExt", F.avg_pool2d)
AvgPool3dExt = _layer("AvgPool3dExt", F.avg_pool3d)
MaxPool2dExt = _layer("MaxPool2dExt", F.max_pool2d)
MaxUnpool2d = _layer("MaxUnpool2d", F.max_unpool2d, 2, "output_size")
Flatten = _layer("Flatten", F.flatten, start_dim=1)
Fold = _layer("Fold", F.fold)
UnfoldExt = _layer("UnfoldExt", F.unfold)
PixelShuffle = _layer("PixelShuffle", F.pixel_shuffle)
UpsampleExt = _layer("UpsampleExt", F.interpolate)

ELU = _layer("ELU", F.elu)
GELU = _layer("GELU", F.gelu)
GLU = _layer("GLU", F.glu)
Hardtanh = _layer("Hardtanh", F.hardtanh)
LogSigmoid = _layer("LogSigmoid", F.logsigmoid)
LogSoftmaxExt = _layer("LogSoftmaxExt", F.log_softmax, without="dtype")
Mish = _layer("Mish", F.mish)
ReLU6 = _layer("ReLU6", F.relu6)
SELU = _layer("SELU", F.selu)
SiLU = _layer("SiLU", F.silu)
SoftmaxExt = _layer("SoftmaxExt", F.softmax, without="dtype")
Threshold = _layer("Threshold", F.threshold)

BCELoss = _layer("BCELoss", F.binary_cross_entropy, 2)
BCEWithLogitsLoss = _layer("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, 2)
CosineEmbeddingLoss = _layer("CosineEmbeddingLoss", F.cosine_embedding_loss, 3)
CrossEntropyLoss = _layer("CrossEntropyLoss", F.cross_entropy, 2)
KLDivLoss = _layer("KLDivLoss", F.kl_div, 2)
L1LossExt = _layer("L1LossExt", F.l1_loss, 2)
MSELoss = _layer("MSELoss", F.mse_loss, 2)
NLLLoss = _layer("NLLLoss", F.nll_loss, 2)
SmoothL1Loss = _layer("SmoothL1Loss", F.smooth_l1_loss, 2)


def _interpolation(name: str, mode: str, align_corners: bool | None) -> type[Cell]:
    def __init__(self, size=None, scale_factor=None):
        Cell.__init__(self)
        self.size, self.scale_factor = size, scale_factor

    def construct(self, input):
        return F.interpolate(input, self.size, self.scale_factor, mode, align_corners)

    doc = f"Resizes images to `size` or by `scale_factor` in mode {mode!r}."
    space = {"__init__": __init__, "construct": construct, "__module__": __name__, "__doc__": doc}
    return type(name, (Cell,), space)


UpsamplingNearest2d = _interpolation("UpsamplingNearest2d", "nearest", None)
UpsamplingBilinear2d = _interpolation("UpsamplingBilinear2d", "bilinear", True)


def _dropout(name: str, function: Callable) -> type[Cell]:
    def __init__(self, p=0.5, inplace=False):
        Cell.__init__(self)
        self.p, self.inplace = p, inplace

    def construct(self, input):
        return function(input, self.p, self.training, self.inplace)

    doc = f"`mint.nn.functional.{function.__name__}` as a layer, which does nothing but in training."
    space = {"__init__": __init__, "construct": construct, "__module__": __name__, "__doc__": doc}
    return type(name, (Cell,), space)


DropoutExt = _dropout("DropoutExt", F.dropout)
Dropout2dExt = _dropout("Dropout2dExt", F.dropout2d)
