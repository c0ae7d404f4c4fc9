# Written by tools/gen_stubs.py.
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.mint.signature_adapters import faces as faces
from mycelia.faces.numpy._arguments import (
    promoted as promoted, result_dtype as result_dtype, same_dtype as same_dtype,
)
from mycelia.faces.numpy.elementwise import named as named, refused as refused
from mycelia.faces.numpy.pairwise import clip as clip
from mycelia.numpy import (
    add as add, arctan2 as arctan2, bitwise_and as bitwise_and, bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor, copysign as copysign, divide as divide, divmod as divmod, equal as equal,
    float_power as float_power, floor_divide as floor_divide, fmod as fmod, gcd as gcd, greater as greater,
    greater_equal as greater_equal, heaviside as heaviside, hypot as hypot, lcm as lcm, less as less,
    less_equal as less_equal, logaddexp as logaddexp, logaddexp2 as logaddexp2, logical_and as logical_and,
    logical_or as logical_or, logical_xor as logical_xor, maximum as maximum, minimum as minimum,
    mod as mod, multiply as multiply, not_equal as not_equal, power as power, remainder as remainder,
    subtract as subtract, true_divide as true_divide,
)
from mycelia.numpy.creation import as_tensor as as_tensor, to_dtype as to_dtype
from mycelia.numpy.elementwise import (
    as_float as as_float, only_tensor as only_tensor, real_floating as real_floating,
    trigonometric as trigonometric, truth as truth,
)

__all__ = [
    "add", "arctan2", "as_float", "as_tensor", "bitwise_and", "bitwise_or", "bitwise_xor", "clip",
    "copysign", "divide", "divmod", "equal", "faces", "float_power", "floor_divide", "fmod", "gcd",
    "greater", "greater_equal", "heaviside", "hypot", "is_tensor", "lcm", "less", "less_equal", "logaddexp",
    "logaddexp2", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply",
    "named", "not_equal", "only_tensor", "power", "promoted", "real_floating", "refused", "remainder",
    "result_dtype", "same_dtype", "subtract", "to_dtype", "trigonometric", "true_divide", "truth",
]
