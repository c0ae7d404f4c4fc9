# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.mint.signature_adapters import faces as faces
from mycelia.faces.numpy._arguments import (
    promoted as promoted, result_dtype as result_dtype, same_dtype as same_dtype,
)
from mycelia.faces.numpy.elementwise import clip as clip
from mycelia.numpy import (
    abs as abs, absolute as absolute, add as add, arccos as arccos, arccosh as arccosh, arcsin as arcsin,
    arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as arctanh, around as around,
    bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor, cbrt as cbrt, ceil as ceil, copysign as copysign, cos as cos, cosh as cosh,
    deg2rad as deg2rad, divide as divide, divmod as divmod, equal as equal, exp as exp, exp2 as exp2,
    expm1 as expm1, fabs as fabs, fix as fix, float_power as float_power, floor as floor,
    floor_divide as floor_divide, fmod as fmod, gcd as gcd, greater as greater,
    greater_equal as greater_equal, heaviside as heaviside, hypot as hypot, invert as invert,
    isfinite as isfinite, isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf,
    lcm as lcm, less as less, less_equal as less_equal, log as log, log10 as log10, log1p as log1p,
    log2 as log2, logaddexp as logaddexp, logaddexp2 as logaddexp2, logical_and as logical_and,
    logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor, maximum as maximum,
    minimum as minimum, mod as mod, multiply as multiply, negative as negative, not_equal as not_equal,
    positive as positive, power as power, rad2deg as rad2deg, radians as radians, reciprocal as reciprocal,
    remainder as remainder, rint as rint, sign as sign, signbit as signbit, sin as sin, sinh as sinh,
    sqrt as sqrt, square as square, subtract as subtract, tan as tan, tanh as tanh,
    true_divide as true_divide, trunc as trunc,
)
from mycelia.numpy.creation import as_tensor as as_tensor, to_dtype as to_dtype

__all__ = [
    "abs", "absolute", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "around", "as_float", "as_tensor", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt",
    "ceil", "clip", "copysign", "cos", "cosh", "deg2rad", "divide", "divmod", "equal", "exp", "exp2",
    "expm1", "fabs", "faces", "fix", "float_power", "floor", "floor_divide", "fmod", "gcd", "greater",
    "greater_equal", "heaviside", "hypot", "invert", "is_tensor", "isfinite", "isinf", "isnan", "isneginf",
    "isposinf", "lcm", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply",
    "negative", "not_equal", "only_tensor", "positive", "power", "promoted", "rad2deg", "radians",
    "reciprocal", "remainder", "result_dtype", "rint", "round", "same_dtype", "sign", "signbit", "sin",
    "sinh", "sqrt", "square", "subtract", "tan", "tanh", "to_dtype", "true_divide", "trunc",
]


def as_float(x) -> Tensor:
    """`x`, integers and bools as float32."""

def only_tensor(name: str, x, parameter: str = 'x') -> Tensor:
    """`x`; TypeError unless it is a Tensor."""

def round(a, decimals=0) -> Tensor:
    """`a` rounded to `decimals` places, halves to even."""
