"""The steps that a program of `fused_map` may take, what they mean, and programs as numbers.

A program works on an iteration space, the common broadcast shape of the inputs. Its values are `FULL` (an
element for each point of the space) or `ROW` (an element for each row, that is for the last `row_axes` axes
together). `PRIMITIVES` lists what it may do.
"""

import math
from collections.abc import Callable

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ops.fusion import BRAIN, FLOAT, HALF, INT, KINDS, MASK, NARROW

FULL, ROW, ALL, COLUMN = range(4)  # kinds of values and outputs
DTYPES = {kind: dtype for dtype, kind in (*KINDS.items(), *NARROW.items())}
LOADS = {dtypes.bool_: "load_bool", dtypes.float16: "load_f16", dtypes.bfloat16: "load_bf16"}
STORES = {MASK: "store_bool", HALF: "store_f16", BRAIN: "store_bf16"}

# Limits of a program; the kernel keeps its tables on the stack.
MAX_INPUTS, MAX_CONSTANTS, MAX_BUFFERS, MAX_OUTPUTS, MAX_STEPS = 24, 32, 16, 12, 64
MAX_ROW = 8192  # elements of a row that is reduced: its buffers must stay in the second-level cache


def _erf(x):
    from mycelia.engine.ops.elementwise.special import erf

    return erf.definition.body(x)


def _cut(x):
    from mycelia.engine.ops.elementwise.cast import np_cut

    return np_cut(x, np.dtype(np.int32))


def _sigmoid(x):
    return np.reciprocal(1 + np.exp(-x))


def _gelu_cdf(x):
    return 0.5 * (1 + _erf(x * np.float32(math.sqrt(0.5))))


_GELU1 = 2 * math.sqrt(2 / math.pi)


def _gelu_sigmoid(x):
    return _sigmoid(x * (_GELU1 + _GELU1 * 0.044715 * x * x))


def _gelu_tanh_grad(dy, x):
    s = _gelu_sigmoid(x)
    return dy * (s + x * (s * (1 - s)) * (_GELU1 + 3 * _GELU1 * 0.044715 * x * x))


def _silu_grad(dy, x):
    s = _sigmoid(x)
    return dy * (s * (1 + x * (1 - s)))


def _hardswish_grad(dy, x):
    return np.where(x <= -3, 0, np.where(x >= 3, dy, dy * (x / 3 + 0.5)))


def _mish(x):
    n = np.exp(np.minimum(x, 20)) * (np.exp(np.minimum(x, 20)) + 2)
    return x * (n / (n + 2))


#: name -> (number of operands, result type or None for that of the last operand, meaning on arrays).
#: The position in this table is the code that kernels see.
PRIMITIVES: dict[str, tuple[int, int | None, Callable | None]] = {
    # moves and conversions
    "copy": (1, None, lambda x: x),
    "load_bool": (1, MASK, lambda x: x),
    "store_bool": (1, MASK, lambda x: x),
    "float_of_int": (1, FLOAT, lambda x: x.astype(np.float32)),
    "float_of_mask": (1, FLOAT, lambda x: x.astype(np.float32)),
    "int_of_float": (1, INT, _cut),
    "int_of_mask": (1, INT, lambda x: x.astype(np.int32)),
    "mask_of_float": (1, MASK, lambda x: x != 0),
    "mask_of_int": (1, MASK, lambda x: x != 0),
    # arithmetic
    "add": (2, None, np.add),
    "sub": (2, None, np.subtract),
    "mul": (2, None, np.multiply),
    "div": (2, None, np.divide),
    "maximum": (2, None, np.maximum),
    "minimum": (2, None, np.minimum),
    "pow": (2, None, np.power),
    "neg": (1, None, np.negative),
    "abs": (1, None, np.abs),
    "square": (1, None, np.square),
    "sign": (1, None, lambda x: np.where(x != x, 0, np.sign(x))),
    "reciprocal": (1, None, np.reciprocal),
    "sqrt": (1, None, np.sqrt),
    "rsqrt": (1, None, lambda x: 1 / np.sqrt(x)),
    "floor": (1, None, np.floor),
    "ceil": (1, None, np.ceil),
    "trunc": (1, None, np.trunc),
    "round": (1, None, np.rint),
    "add_int": (2, INT, np.add),
    "sub_int": (2, INT, np.subtract),
    "mul_int": (2, INT, np.multiply),
    # two steps in one, each rounded
    "mul_add": (3, None, lambda a, b, c: a * b + c),
    "mul_sub": (3, None, lambda a, b, c: a * b - c),
    "sub_product": (3, None, lambda a, b, c: c - a * b),
    "add_mul": (3, None, lambda a, b, c: (a + b) * c),
    "sub_mul": (3, None, lambda a, b, c: (a - b) * c),
    "mul_mul": (3, None, lambda a, b, c: a * b * c),
    "add_add": (3, None, lambda a, b, c: a + b + c),
    # comparisons, logic, choice
    "equal": (2, MASK, np.equal),
    "not_equal": (2, MASK, np.not_equal),
    "less": (2, MASK, np.less),
    "less_equal": (2, MASK, np.less_equal),
    "equal_int": (2, MASK, np.equal),
    "not_equal_int": (2, MASK, np.not_equal),
    "less_int": (2, MASK, np.less),
    "less_equal_int": (2, MASK, np.less_equal),
    "and": (2, MASK, np.logical_and),
    "or": (2, MASK, np.logical_or),
    "xor": (2, MASK, np.logical_xor),
    "not": (1, MASK, np.logical_not),
    "select": (3, None, np.where),
    # elementary functions
    "exp": (1, None, np.exp),
    "expm1": (1, None, np.expm1),
    "log": (1, None, np.log),
    "log1p": (1, None, np.log1p),
    "sin": (1, None, np.sin),
    "cos": (1, None, np.cos),
    "tanh": (1, None, np.tanh),
    "tanh_grad": (2, None, lambda dy, y: dy * (1 - y * y)),
    "erf": (1, None, _erf),
    # activations
    "sigmoid": (1, None, _sigmoid),
    "sigmoid_grad": (2, None, lambda dy, y: dy * (y * (1 - y))),
    "relu": (1, None, lambda x: np.maximum(x, 0)),
    "relu_grad": (2, None, lambda dy, y: np.where(y > 0, dy, 0)),
    "relu6": (1, None, lambda x: np.clip(x, 0, 6)),
    "clip": (3, FLOAT, lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "leaky_relu": (2, None, lambda x, alpha: np.where(x > 0, x, x * alpha)),
    "leaky_relu_grad": (3, None, lambda dy, x, alpha: np.where(x > 0, dy, dy * alpha)),
    "elu": (2, None, lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))),
    "elu_grad": (3, None, lambda dy, y, alpha: np.where(y > 0, dy, dy * (y + alpha))),
    "hardsigmoid": (1, None, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": (1, None, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "hardswish_grad": (2, None, _hardswish_grad),
    "silu": (1, None, lambda x: x * _sigmoid(x)),
    "silu_grad": (2, None, _silu_grad),
    "fast_gelu": (1, None, lambda x: x * _sigmoid(1.702 * x)),
    "mish": (1, None, _mish),
    "softplus": (1, None, lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))),
    "gelu": (1, None, lambda x: x * _gelu_cdf(x)),
    "gelu_grad": (
        2,
        None,
        lambda dy, x: dy * (_gelu_cdf(x) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)),
    ),
    "gelu_tanh": (1, None, lambda x: x * _gelu_sigmoid(x)),
    "gelu_tanh_grad": (2, None, _gelu_tanh_grad),
    # to what 16 bits hold
    "round_f16": (1, FLOAT, lambda x: x.astype(np.float16).astype(np.float32)),
    "round_bf16": (1, FLOAT, lambda x: dtypes.from_bfloat16_bits(dtypes.to_bfloat16_bits(x))),
    "load_f16": (1, FLOAT, lambda x: x.astype(np.float32)),
    "load_bf16": (1, FLOAT, dtypes.from_bfloat16_bits),
    "store_f16": (1, HALF, lambda x: x.astype(np.float16)),
    "store_bf16": (1, BRAIN, dtypes.to_bfloat16_bits),
    # reductions: of a row, of everything, of columns (the last two with a divisor)
    "spread": (1, None, lambda x: x),
    "sum_row": (1, None, None),
    "max_row": (1, None, None),
    "min_row": (1, None, None),
    "sum_all": (2, None, None),
    "sum_columns": (2, None, None),
}
_LIGHT = frozenset(
    """copy load_bool store_bool float_of_int float_of_mask int_of_float int_of_mask mask_of_float mask_of_int
    add sub mul maximum minimum neg abs square sign add_int sub_int mul_int
    mul_add mul_sub sub_product add_mul sub_mul mul_mul add_add
    equal not_equal less less_equal equal_int not_equal_int less_int less_equal_int
    and or xor not select relu relu_grad relu6 clip leaky_relu leaky_relu_grad""".split()
)
_LIGHT_STEPS = 8
NUMBER = {name: i for i, name in enumerate(PRIMITIVES)}
NAMES = list(PRIMITIVES)
REDUCTIONS = {"sum_row": ROW, "max_row": ROW, "min_row": ROW, "sum_all": ALL, "sum_columns": COLUMN}

# The code: a head, constants (bits of float32 or int32), outputs (kind, axes of size 1 that are kept, type),
# steps (primitive, 1 for a row's width, destination, three operands). Numbers of operands and destinations
# count inputs, constants, buffers and outputs through.
_HEAD, _OUTPUT, _STEP = 7, 3, 6  # n_in, n_constants, n_buffers, n_out, row_axes, column_axes, n_steps


class Code:
    """The parts of a code."""

    def __init__(self, code: tuple[int, ...]) -> None:
        n_in, n_const, n_buffers, n_out, self.row_axes, self.column_axes, n_steps = code[:_HEAD]
        at = _HEAD
        self.constants = code[at : at + n_const]
        at += n_const
        self.outputs = [code[at + _OUTPUT * i : at + _OUTPUT * (i + 1)] for i in range(n_out)]
        at += _OUTPUT * n_out
        self.steps = [code[at + _STEP * i : at + _STEP * (i + 1)] for i in range(n_steps)]
        self.n_in, self.n_buffers = n_in, n_buffers
        self.first_output = n_in + n_const + n_buffers


def step_count(code: tuple[int, ...]) -> int:
    """How many steps a program has."""
    return code[_HEAD - 1]


def is_light(code: tuple[int, ...]) -> bool:
    """Whether a program reduces nothing and takes a few quick steps, which memory is slower than."""
    parts = Code(code)
    return len(parts.steps) <= _LIGHT_STEPS and all(NAMES[step[0]] in _LIGHT for step in parts.steps)
