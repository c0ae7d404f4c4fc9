"""`mint.nn`: layers with torch's arguments; many are layers of `mycelia.nn` under mint's names."""

from __future__ import annotations

from importlib import import_module

# Module -> the names it brings; "mint's name=name there" where they differ.
_HOMES = {
    "mycelia.faces.mint.nn.layers": """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
        AvgPool1d=AvgPool1dExt AvgPool2d=AvgPool2dExt AvgPool3d=AvgPool3dExt BCELoss BCEWithLogitsLoss
        CosineEmbeddingLoss CrossEntropyLoss Dropout=DropoutExt Dropout2d=Dropout2dExt ELU Flatten Fold GELU
        GLU Hardtanh KLDivLoss L1Loss=L1LossExt LogSigmoid LogSoftmax=LogSoftmaxExt MSELoss
        MaxUnpool2d Mish NLLLoss PixelShuffle ReLU6 SELU SiLU SmoothL1Loss Softmax=SoftmaxExt Threshold
        Unfold=UnfoldExt Upsample=UpsampleExt UpsamplingBilinear2d UpsamplingNearest2d
    """,
    "mycelia.faces.mint.nn.conv": "Conv1d Conv2d Conv3d ConvTranspose2d",
    "mycelia.faces.mint.nn.norm": """
        BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm LayerNorm=LayerNormExt SyncBatchNorm
    """,
    "mycelia.faces.mint.nn.basic": "Embedding=EmbeddingExt PReLU=PReLUExt ZeroPad1d ZeroPad3d",
    "mycelia.nn": """
        ConstantPad1d ConstantPad2d ConstantPad3d Hardshrink=HShrink Hardsigmoid=HSigmoid Hardswish=HSwish
        Identity Linear ReLU ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
        ReplicationPad3d Sigmoid SoftMarginLoss Softshrink=SoftShrink Tanh ZeroPad2d
    """,
}
_NAMES = {
    (pair := text.split("="))[0]: (home, pair[-1]) for home, texts in _HOMES.items() for text in texts.split()
}

__all__ = sorted([*_NAMES, "functional"])


def __getattr__(name: str):
    if name in _NAMES:
        home, own = _NAMES[name]
        value = getattr(import_module(home), own)
    elif name == "functional":
        value = import_module("mycelia.faces.mint.nn.functional")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
