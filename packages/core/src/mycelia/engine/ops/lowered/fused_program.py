"""How programs of `fused_map` are made: `Program` collects steps and gives the code that kernels run."""

import struct

from mycelia.engine.ops.fusion import FLOAT, KINDS, MASK, NARROW
from mycelia.engine.ops.lowered.fused_steps import (
    FULL,
    LOADS,
    MAX_BUFFERS,
    MAX_CONSTANTS,
    MAX_INPUTS,
    MAX_OUTPUTS,
    MAX_STEPS,
    NUMBER,
    PRIMITIVES,
    REDUCTIONS,
    ROW,
    STORES,
)

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
_NOT_IN_PLACE = {"spread", *LOADS.values(), *STORES.values()}


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
        return self._add(LOADS[dtype], (given,), type, width) if dtype in LOADS else given

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
        if name in REDUCTIONS:
            return self._add(name, (self._as_full(operands[0]), *operands[1:]), type, REDUCTIONS[name])
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
            is_stored = type in STORES
            late = k == 0 and kind in (FULL, ROW) and value < last_input  # its memory may be that of an input
            if value in direct or is_stored or late or value in inputs or self.widths[value] is None:
                copies.append((STORES.get(type, "copy"), value, k))
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
            width = int(self.widths[i] == ROW and name not in REDUCTIONS)
            emitted.append((NUMBER[name], width, place[i], tuple(place[v] for v in operands)))
        for name, value, k in copies:
            width = int(self.widths[value] == ROW)
            emitted.append((NUMBER[name], width, ~k, (place[value],)))
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
