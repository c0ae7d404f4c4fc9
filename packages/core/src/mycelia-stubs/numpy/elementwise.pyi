# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.mint.signature_adapters import faces as faces
from mycelia.faces.numpy._arguments import result_dtype as result_dtype
from mycelia.faces.numpy.elementwise import named as named, refused as refused
from mycelia.numpy import (
    abs as abs, absolute as absolute, arccos as arccos, arccosh as arccosh, arcsin as arcsin,
    arcsinh as arcsinh, arctan as arctan, arctanh as arctanh, around as around, bitwise_not as bitwise_not,
    cbrt as cbrt, ceil as ceil, cos as cos, cosh as cosh, deg2rad as deg2rad, exp as exp, exp2 as exp2,
    expm1 as expm1, fabs as fabs, fix as fix, floor as floor, invert as invert, isfinite as isfinite,
    isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf, log as log, log10 as log10,
    log1p as log1p, log2 as log2, logical_not as logical_not, negative as negative, positive as positive,
    rad2deg as rad2deg, radians as radians, reciprocal as reciprocal, rint as rint, sign as sign,
    signbit as signbit, sin as sin, sinh as sinh, sqrt as sqrt, square as square, tan as tan, tanh as tanh,
    trunc as trunc,
)
from mycelia.numpy.creation import as_tensor as as_tensor, to_dtype as to_dtype

__all__ = [
    "abs", "absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "around", "as_float",
    "as_tensor", "bitwise_not", "cbrt", "ceil", "cos", "cosh", "deg2rad", "exp", "exp2", "expm1", "fabs",
    "faces", "fix", "floor", "invert", "is_tensor", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "log", "log10", "log1p", "log2", "logical_not", "named", "negative", "only_tensor", "positive",
    "rad2deg", "radians", "real_floating", "reciprocal", "refused", "result_dtype", "rint", "round", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "to_dtype", "trigonometric", "trunc",
    "truth",
]


def as_float(x) -> Tensor:
    """`x`, integers and bools as float32."""

def only_tensor(name: str, x, parameter: str = 'x') -> Tensor:
    """`x`; TypeError unless it is a Tensor."""

def real_floating(name, x) -> Tensor: ...

def round(a, decimals=0) -> Tensor:
    """`a` rounded to `decimals` places, halves to even."""

def trigonometric(name, x) -> Tensor: ...

def truth(x) -> Tensor: ...
