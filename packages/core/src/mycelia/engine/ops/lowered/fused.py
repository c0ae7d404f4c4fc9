"""One pass over memory for many elementwise ops: `fused_map`, made by the compiler only, and its program.

A program works on an iteration space, the common broadcast shape of the inputs. Its values are `FULL` (an
element for each point of the space) or `ROW` (an element for each row, that is for the last `row_axes` axes
together). `PRIMITIVES` lists what it may do; `Program` collects steps and gives the code that kernels run.
Which op becomes which primitives, its block says (`ops/fusion.py`).
"""

import math
import struct
from collections.abc import Callable

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.fusion import BRAIN, FLOAT, HALF, INT, KINDS, MASK, NARROW
from mycelia.engine.ops.infer import broadcast_shapes

FULL, ROW, ALL, COLUMN = range(4)  # kinds of values and outputs
_DTYPES = {kind: dtype for dtype, kind in (*KINDS.items(), *NARROW.items())}
_LOADS = {dtypes.bool_: "load_bool", dtypes.float16: "load_f16", dtypes.bfloat16: "load_bf16"}
_STORES = {MASK: "store_bool", HALF: "store_f16", BRAIN: "store_bf16"}

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
_NUMBER = {name: i for i, name in enumerate(PRIMITIVES)}
_NAMES = list(PRIMITIVES)
_REDUCTIONS = {"sum_row": ROW, "max_row": ROW, "min_row": ROW, "sum_all": ALL, "sum_columns": COLUMN}

# The code: a head, constants (bits of float32 or int32), outputs (kind, axes of size 1 that are kept, type),
# steps (primitive, 1 for a row's width, destination, three operands). Numbers of operands and destinations
# count inputs, constants, buffers and outputs through.
_HEAD, _OUTPUT, _STEP = 7, 3, 6  # n_in, n_constants, n_buffers, n_out, row_axes, column_axes, n_steps


class _Code:
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
    parts = _Code(code)
    return len(parts.steps) <= _LIGHT_STEPS and all(_NAMES[step[0]] in _LIGHT for step in parts.steps)


def _output_shape(space: tuple, kind: int, kept: int, row_axes: int, column_axes: int) -> tuple:
    if kind == FULL:
        return space
    if kind == ROW:
        return space[: len(space) - row_axes] + (1,) * kept
    return (1,) * kept + (space[len(space) - column_axes :] if kind == COLUMN else ())


def _fused_type(xs, *, code):
    parts = _Code(code)
    if len(xs) != parts.n_in:
        raise ValueError(f"the program takes {parts.n_in} inputs, but {len(xs)} were given")
    space = broadcast_shapes(*(x.shape for x in xs))
    return tuple(
        TensorType(_DTYPES[type], _output_shape(space, kind, kept, parts.row_axes, parts.column_axes))
        for kind, kept, type in parts.outputs
    )


@op(infer=_fused_type, outputs=None, nondiff=True)
def fused_map(xs: "tensors", *, code: "code"):
    """The results of a program of elementwise steps and reductions, see `Program`.

    Shapes: any that broadcast -> the space, its rows, its columns or one element.
    dtypes: float32, int32, bool, float16, bfloat16.
    Errors: ValueError if the number of inputs differs from the program's.
    """
    parts = _Code(code)
    space = broadcast_shapes(*(x.shape for x in xs))
    rows = tuple(range(len(space) - parts.row_axes, len(space)))
    leading = tuple(range(len(space) - parts.column_axes))
    values = dict(enumerate(xs))
    for i, bits in enumerate(parts.constants):
        values[parts.n_in + i] = struct.pack("<I", bits)  # its type shows at its use
    with np.errstate(all="ignore"):
        for number, _, target, *operands in parts.steps:
            name = _NAMES[number]
            arity, _, function = PRIMITIVES[name]
            kind = "i4" if name.endswith("_int") else "f4"
            given = [values[k] for k in operands[:arity]]
            given = [np.frombuffer(v, kind)[0] if isinstance(v, bytes) else v for v in given]
            if name in ("sum_row", "max_row", "min_row"):
                reduce = {"sum_row": np.sum, "max_row": np.max, "min_row": np.min}[name]
                result = reduce(np.broadcast_to(given[0], space), axis=rows, keepdims=True)
            elif name in ("sum_all", "sum_columns"):
                axes = leading if name == "sum_columns" else None
                result = np.sum(np.broadcast_to(given[0], space), axis=axes, dtype=np.float64) / given[1]
            else:
                result = function(*given)
            values[target] = result
    results = []
    for i, (kind, kept, type) in enumerate(parts.outputs):
        shape = _output_shape(space, kind, kept, parts.row_axes, parts.column_axes)
        value = np.asarray(values[parts.first_output + i])
        if kind == FULL:
            value = np.broadcast_to(value, space)
        elif kind == ROW:
            value = np.broadcast_to(value, space[: len(space) - parts.row_axes] + (1,) * parts.row_axes)
        results.append(value.reshape(shape).astype(_DTYPES[type].np))
    return tuple(results)


# ---- making programs ---------------------------------------------------------------------------------------

# A product or sum that only the next step uses becomes one step with it: (outer, inner, position of the inner
# in the outer) -> primitive, whose operands are those of the inner, then the outer's other one.
_PAIRS = {
    ("add", "mul", 0): "mul_add", ("add", "mul", 1): "mul_add",
    ("sub", "mul", 0): "mul_sub", ("sub", "mul", 1): "sub_product",
    ("mul", "add", 0): "add_mul", ("mul", "add", 1): "add_mul",
    ("mul", "sub", 0): "sub_mul", ("mul", "sub", 1): "sub_mul",
    ("mul", "mul", 0): "mul_mul", ("mul", "mul", 1): "mul_mul",
    ("add", "add", 0): "add_add", ("add", "add", 1): "add_add",
}  # fmt: skip
_NOT_IN_PLACE = {"spread", *_LOADS.values(), *_STORES.values()}


class Program:
    """Collects the steps of one `fused_map`. Values are small ints that its methods give; `code` is the end.

    `row_axes`: trailing axes of the space that a row takes; `column_axes`: trailing axes that remain when
    columns are reduced (0: neither happens).
    """

    def __init__(self, row_axes: int = 0, column_axes: int = 0) -> None:
        self.row_axes, self.column_axes = row_axes, column_axes
        self.n_in = 0
        self.steps: list[tuple[str, tuple]] = []  # ("in", (k,)), ("constant", (bits,)) or a primitive
        self.types: list[int] = []
        self.widths: list[int | None] = []  # FULL, ROW, or None for a constant
        self.outputs: list[tuple[int, int, int, int]] = []  # value, kind, kept axes, type
        self._constants: dict[tuple, int] = {}
        self._spread: dict[int, int] = {}

    def _add(self, name: str, operands: tuple, type: int, width: int | None) -> int:
        self.steps.append((name, operands))
        self.types.append(type)
        self.widths.append(width)
        return len(self.steps) - 1

    def input(self, dtype, width: int = FULL) -> int:
        """The next input: FULL if it broadcasts to the space, ROW if it has one element for each row."""
        type = KINDS.get(dtype, FLOAT)
        given = self._add("in", (self.n_in,), type, width)
        self.n_in += 1
        return self._add(_LOADS[dtype], (given,), type, width) if dtype in _LOADS else given

    def constant(self, number: float | int, type: int = FLOAT) -> int:
        """A number that stands wherever a value may."""
        packed = (
            struct.pack("<f", number)
            if type == FLOAT
            else struct.pack("<i", -number if type == MASK else number)
        )
        bits = struct.unpack("<I", packed)[0]
        found = self._constants.get((bits, type))
        if found is None:
            found = self._constants[bits, type] = self._add("constant", (bits,), type, None)
        return found

    def step(self, name: str, *operands: int) -> int:
        """The primitive `name` of `operands`; among values of the space those of rows are spread."""
        arity, type, _ = PRIMITIVES[name]
        assert arity == len(operands)
        if name == "select" and self.steps[operands[0]][0] == "constant":
            return operands[1 if self.steps[operands[0]][1][0] else 2]
        type = self.types[operands[-1]] if type is None else type
        if name in _REDUCTIONS:
            return self._add(name, (self._as_full(operands[0]), *operands[1:]), type, _REDUCTIONS[name])
        widths = {self.widths[v] for v in operands}
        if FULL in widths:
            operands = tuple(self._as_full(v) for v in operands)
        return self._add(name, operands, type, FULL if FULL in widths else ROW if ROW in widths else None)

    def _as_full(self, value: int) -> int:
        if self.widths[value] != ROW:
            return value
        if value not in self._spread:
            self._spread[value] = self._add("spread", (value,), self.types[value], FULL)
        return self._spread[value]

    def output(self, value: int, kind: int | None = None, kept: int = 0, dtype: object = None) -> None:
        """Makes `value` the next output, of this kind, by default its own; `kept`: how many of the reduced
        axes stay with size 1; `dtype`: of 16 bits, for a float that is to leave as such.
        """
        if kind == FULL:
            value = self._as_full(value)
        width = self.widths[value]
        kind = (FULL if width is None else width) if kind is None else kind
        if width is None and kind != FULL:
            value = self._add("copy", (value,), self.types[value], kind)
        elif width is not None and width != kind:
            raise ValueError(f"an output of kind {kind} cannot be made of a value of kind {width}")
        self.outputs.append((value, kind, kept, NARROW.get(dtype, self.types[value])))

    def _paired(self) -> list[tuple[str, tuple]]:
        """The steps with pairs joined; those that are not used are None."""
        steps: list = list(self.steps)
        uses = [0] * len(steps)
        for _, operands in (s for s in steps if s[0] not in ("in", "constant")):
            for v in operands:
                uses[v] += 1
        for v, _, _, _ in self.outputs:
            uses[v] += 2  # stays
        for i, (name, operands) in enumerate(steps):
            if name not in ("add", "sub", "mul") or self.types[i] != FLOAT:
                continue
            for inner in ("mul", "add", "sub"):
                at = next(
                    (k for k, v in enumerate(operands)
                     if steps[v] is not None and steps[v][0] == inner and uses[v] == 1
                     and self.widths[v] == self.widths[i] and (name, inner, k) in _PAIRS),
                    None,
                )  # fmt: skip
                if at is not None:
                    steps[i] = _PAIRS[name, inner, at], (*steps[operands[at]][1], operands[1 - at])
                    steps[operands[at]] = None
                    break
        live = [uses[i] > 0 for i in range(len(steps))]
        return [s if live[i] or (s and s[0] == "in") else None for i, s in enumerate(steps)]

    def code(self) -> tuple[int, ...] | None:
        """The program as numbers, or None if it does not keep within the limits."""
        steps = self._paired()
        constants = [i for i, s in enumerate(steps) if s and s[0] == "constant"]
        run = [i for i, s in enumerate(steps) if s and s[0] not in ("constant", "in")]
        place: dict[int, int] = {i: s[1][0] for i, s in enumerate(steps) if s and s[0] == "in"}
        inputs = set(place)
        place.update((v, self.n_in + k) for k, v in enumerate(constants))
        first_buffer = self.n_in + len(constants)
        last_use = {v: i for i in run for v in steps[i][1]}
        last_input = max((i for i in run for v in steps[i][1] if v in inputs), default=-1)
        # Where results go: straight to an output when its place may be written then, else to a buffer.
        direct: dict[int, int] = {}
        copies: list[tuple[str, int, int]] = []
        for k, (value, kind, _, type) in enumerate(self.outputs):
            is_stored = type in _STORES
            late = k == 0 and kind in (FULL, ROW) and value < last_input  # its memory may be that of an input
            if value in direct or is_stored or late or value in inputs or self.widths[value] is None:
                copies.append((_STORES.get(type, "copy"), value, k))
                last_use[value] = len(steps) + k
            else:
                direct[value] = k
        free: list[int] = []
        count = 0
        emitted: list[tuple[int, int, int, tuple]] = []
        dying: dict[int, list[int]] = {}
        for v, i in last_use.items():
            dying.setdefault(i, []).append(v)
        buffers: dict[int, int] = {}
        for i in run:
            name, operands = steps[i]
            released = [buffers[v] for v in dying.get(i, ()) if v in buffers]
            if name not in _NOT_IN_PLACE:
                free += released
            if i in direct:
                place[i] = ~direct[i]
            else:
                if not free:
                    free.append(count)
                    count += 1
                buffers[i] = free.pop()
                place[i] = first_buffer + buffers[i]
                if i not in last_use:
                    free.append(buffers[i])
            if name in _NOT_IN_PLACE:
                free += released
            width = int(self.widths[i] == ROW and name not in _REDUCTIONS)
            emitted.append((_NUMBER[name], width, place[i], tuple(place[v] for v in operands)))
        for name, value, k in copies:
            width = int(self.widths[value] == ROW)
            emitted.append((_NUMBER[name], width, ~k, (place[value],)))
        first_output = first_buffer + count
        if (
            self.n_in > MAX_INPUTS or len(constants) > MAX_CONSTANTS or count > MAX_BUFFERS
            or len(self.outputs) > MAX_OUTPUTS or len(emitted) > MAX_STEPS
        ):  # fmt: skip
            return None

        def final(at: int) -> int:
            return first_output + ~at if at < 0 else at

        words = [self.n_in, len(constants), count, len(self.outputs), self.row_axes, self.column_axes]
        words.append(len(emitted))
        words += [steps[v][1][0] for v in constants]
        for _, kind, kept, type in self.outputs:
            words += [kind, kept, type]
        for number, width, target, operands in emitted:
            padded = [final(v) for v in operands] + [0] * (3 - len(operands))
            words += [number, width, final(target), *padded]
        return tuple(words)


# ---- samples -----------------------------------------------------------------------------------------------


def _sample(shapes_or_dtypes, build, **axes):
    p = Program(**axes)
    build(p, *(p.input(d) for d in shapes_or_dtypes))
    return dict(code=p.code())


@fused_map.samples
def fused_map(rand):
    f32 = dtypes.float32

    def chain(p, x, y):
        p.output(p.step("mul", p.step("tanh", p.step("add", x, y)), p.constant(0.5)))

    code = _sample((f32, f32), chain)
    for left, right in (
        ((3, 4), (3, 4)), ((1,), (1,)), ((), ()), ((0, 4), (4,)), ((67, 31), (31,)), ((67, 31), (67, 1)),
        ((2, 3, 5, 7), (3, 1, 1)), ((5, 1, 7), (3, 1)), ((4099,), ()), ((3, 2111), (2111,)),
        ((3, 2111), (3, 1)), ((2, 4, 3, 1, 5), (4, 1, 6, 1)),
    ):  # fmt: skip
        yield [rand(*left), rand(*right)], code

    def masks(p, x, y, m):
        smaller = p.step("less", x, y)
        p.output(p.step("and", smaller, m))
        p.output(p.step("select", m, x, p.step("float_of_mask", smaller)))

    code = _sample((f32, f32, dtypes.bool_), masks)
    yield [rand(5, 37), rand(37), rand.bools(5, 1)], code
    yield [rand(5, 37), rand(5, 37), rand.bools(5, 37)], code

    def norm(p, x, gain):
        mean = p.step("mul", p.step("sum_row", x), p.constant(1 / 33))
        centred = p.step("sub", x, mean)
        variance = p.step("mul", p.step("sum_row", p.step("square", centred)), p.constant(1 / 33))
        scale = p.step("rsqrt", p.step("add", variance, p.constant(1e-5)))
        p.output(p.step("mul", p.step("mul", centred, scale), gain))
        p.output(mean, kept=1)
        p.output(variance)

    for rows in (1, 2, 129):
        yield [rand(rows, 33), rand(33)], _sample((f32, f32), norm, row_axes=1)

    def sums(p, x, y):
        product = p.step("mul", x, y)
        p.output(p.step("sum_all", product, p.constant(1.0)))
        p.output(p.step("sum_columns", product, p.constant(2.0)))
        p.output(product)

    for shape in ((7, 5), (1, 1), (300, 17), (3, 2111), (40, 3, 5)):
        yield [rand(*shape), rand(shape[-1])], _sample((f32, f32), sums, column_axes=1)


@fused_map.cost
def fused_map(inputs, outputs, *, code):
    return step_count(code) * max(t.size for t in inputs if t is not None)
