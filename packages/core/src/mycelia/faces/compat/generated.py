"""`mindspore.ops.auto_generate`: the primitives that MindSpore generates from its table of functions.

Most of them take their function's arguments by position, in the order of its signature, `SumExt()(x, axis,
keepdim, dtype)`; so a class of this module is made from the function of `mint` or `ops` with its name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from mycelia import ops
from mycelia.engine.tensors.tensor import Tensor
from mycelia.faces import mint
from mycelia.ops.primitive import Primitive
from mycelia.ops.primitives.define import Operation

#: Classes whose function has another name.
_FUNCTIONS: dict[str, str] = {
    "AdaptiveAvgPool1D": "adaptive_avg_pool1d", "AdaptiveAvgPool2DExt": "adaptive_avg_pool2d",
    "AdaptiveAvgPool3DExt": "adaptive_avg_pool3d", "AddScalar": "add", "ArgMaxExt": "argmax",
    "ArgMinExt": "argmin", "ArgSort": "argsort", "AvgPool1D": "avg_pool1d", "AvgPool2D": "avg_pool2d",
    "AvgPool3DExt": "avg_pool3d", "BatchMatMulExt": "bmm", "BitwiseAndScalar": "bitwise_and",
    "BitwiseAndTensor": "bitwise_and", "BitwiseOrScalar": "bitwise_or", "BitwiseOrTensor": "bitwise_or",
    "BitwiseXorScalar": "bitwise_xor", "BitwiseXorTensor": "bitwise_xor", "ClampScalar": "clamp",
    "ClampTensor": "clamp", "Conv1DExt": "conv1d", "Conv2DExt": "conv2d", "Conv3DExt": "conv3d",
    "CrossEntropyLoss": "cross_entropy", "DivMod": "div", "DivMods": "div", "Divs": "div",
    "EqScalar": "eq", "FFTFreq": "fftfreq", "FloorDivScalar": "floor_divide", "FmodScalar": "fmod",
    "FmodTensor": "fmod", "GreaterEqualScalar": "greater_equal", "IsNegInf": "isneginf", "KLDiv": "kl_div",
    "LeakyReLUExt": "leaky_relu", "LessScalar": "less", "LinSpaceExt": "linspace", "LogAddExp": "logaddexp",
    "LogAddExp2": "logaddexp2", "LogSigmoid": "logsigmoid", "LogSumExp": "logsumexp",
    "MSELossExt": "mse_loss",
    "MatMulExt": "matmul", "MatrixInverseExt": "inverse", "Muls": "mul", "NewEmpty": "new_empty",
    "NonZeroExt": "nonzero", "PowScalarTensor": "pow", "PowTensorScalar": "pow",
    "RemainderScalarTensor": "remainder", "RemainderTensorScalar": "remainder",
    "RemainderTensorTensor": "remainder", "RepeatInterleaveInt": "repeat_interleave",
    "RepeatInterleaveTensor": "repeat_interleave", "SeLUExt": "selu", "SelectV2": "where", "SubScalar": "sub",
    "UniqueDim": "unique", "XLogYScalarOther": "xlogy", "XLogYScalarSelf": "xlogy",
}  # fmt: skip
_SOURCES = (mint, mint.nn.functional, ops)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _function(name: str) -> Callable | None:
    wanted = _FUNCTIONS.get(name) or _snake(name.removesuffix("Ext"))
    for source in _SOURCES:
        found = getattr(source, wanted, None)
        if found is not None and not isinstance(found, type) and callable(found):
            return found
    return None


def _by_position(function: Callable) -> Callable:
    """`function` with all its arguments by position, those that it takes by keyword only too."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    if not named or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return function
    count = len(parameters) - len(named)

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args[:count], **dict(zip(named, args[count:])), **kwargs)

    return call


def _instance(name: str) -> Callable | None:
    """`expand_dims_view_op`, an instance of a primitive, and functions without a place of their own."""
    wanted = re.sub(r"(_view|_ext)?(_op)?$", "", name)
    if wanted.startswith("inplace_"):
        return getattr(Tensor, wanted.removeprefix("inplace_") + "_", None)
    return _function(wanted) or getattr(Tensor, wanted, None)


def __getattr__(name: str) -> type[Primitive] | Callable:
    if name[:1].islower():
        found = _instance(name)
        if found is not None:
            return found
    function = _function(name) if name[:1].isupper() else None
    if function is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    body = staticmethod(_by_position(function))
    members = {
        "__doc__": f"`{getattr(function, '__name__', name)}` as a primitive.",
        "__module__": "mycelia.compat.generated",
        "__signature__": inspect.Signature(), "_body": body, "_constants": inspect.Signature(),
        "_checks": {}, "_shown": {}, "_extra": {}, "__call__": body,
    }  # fmt: skip
    made = globals()[name] = type(name, (Operation,), members)
    return made
