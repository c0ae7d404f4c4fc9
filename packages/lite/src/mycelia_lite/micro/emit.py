"""The C text of a model: its weights, its calls one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from mycelia_lite.micro import library, maps
from mycelia_lite.micro.layout import Layout
from mycelia_lite.micro.lower import Call, Map
from mycelia_lite.micro.program import Program

_WIDTH = 110


def wrapped(tokens: Iterable[str], indent: str = "    ") -> str:
    """Tokens with commas between, in lines."""
    lines, line = [], ""
    for token in tokens:
        if line and len(line) + len(token) > _WIDTH:
            lines.append(line)
            line = ""
        line += f"{token}, "
    lines.append(line)
    return "\n".join(indent + text.rstrip().rstrip(",") + "," for text in lines if text).rstrip(",")


def numbers(array: np.ndarray) -> list[str]:
    """The elements as literals."""
    flat = array.ravel()
    if flat.dtype == np.float32:
        texts = flat.astype(str).tolist()
        if np.isfinite(flat).all():
            return [t + "f" for t in texts]
    if flat.dtype.itemsize < 4 and flat.dtype.kind in "iub":
        return list(map(str, flat.astype(np.int32).tolist()))
    return [maps.number(v, flat.dtype).strip("()") if v >= 0 else maps.number(v, flat.dtype) for v in flat]


class Emitter:
    """Gathers what the files of one model hold."""

    def __init__(self, program: Program, items: list[Call | Map], where: Layout, name: str) -> None:
        self.program, self.items, self.where, self.name = program, items, where, name
        self.weights: dict[tuple[str, bytes], str] = {}  # (type, elements) -> its name
        self.declared: list[tuple[str, str, int, np.ndarray]] = []
        self.parameters: dict[str, str] = {}  # text of a struct -> its name
        self.functions: dict[str, str] = {}  # text of a loop without its name -> its name
        self.used: set[str] = set()  # parts of the library
        self.calls = [self._call(t, item) for t, item in enumerate(items)]

    # ---- values

    def weight(self, array: np.ndarray) -> str:
        """The name of a constant."""
        array = np.ascontiguousarray(array)
        kind = maps.C_TYPES.get(array.dtype.name, "uint16_t")
        key = (kind, array.tobytes())
        if key not in self.weights:
            self.weights[key] = f"{self.name}_w{len(self.weights)}"
            self.declared.append((self.weights[key], kind, max(1, array.size), array))
        return self.weights[key]

    def pointer(self, value: int, constant: bool = True, kind: str = "") -> str:
        """The address of a value as an argument."""
        if value < 0:
            return "0"
        v = self.program.values[value]
        if v.data is not None:
            return self.weight(v.data)
        kind = kind or maps.C_TYPES.get(v.dtype.name, "uint16_t")
        place = self.where.place(self.program, value)
        at = f"(arena + {place})" if place else "arena"
        return f"({'const ' if constant else ''}{kind} *)(void *){at}"

    # ---- calls

    def _call(self, t: int, item: Call | Map) -> str:
        return self._loop(item) if isinstance(item, Map) else self._kernel(t, item)

    def _kernel(self, t: int, item: Call) -> str:
        self.used |= {item.function, item.struct}
        text = self._struct(item.struct, item.fields)
        name = self.parameters.setdefault(f"{item.struct} {text}", f"p{len(self.parameters)}")
        arguments = [f"&{name}"]
        arguments += [self.pointer(v) for v in item.inputs] + [self.pointer(v, False) for v in item.outputs]
        if item.scratch:
            place = self.where.scratch[t]
            arguments.append(f"(void *)(arena + {place})")
        call = f"{item.function}({', '.join(arguments)})"
        # What finds a place outside of a tensor ends the run.
        return f"if ({call}) return {t + 1};" if library.parts()[item.function].can_fail else f"{call};"

    def _struct(self, struct: str, given: dict[str, Any]) -> str:
        """A struct with these fields, also those of structs in it."""
        texts = [
            self._struct(kind, given) if kind.startswith("micro_") else self._field(kind, places, given[name])
            for kind, name, places in library.fields(struct)
        ]
        return "{" + ", ".join(texts) + "}"

    @staticmethod
    def _field(kind: str, places: int, value: Any) -> str:
        dtype = np.dtype(np.float32 if kind == "float" else np.float64 if kind == "double" else np.int64)
        if not places:
            return maps.number(value, dtype)
        padded = list(value) + [0] * (places - len(value))
        return "{" + ", ".join(maps.number(v, dtype) for v in padded) + "}"

    # ---- loops

    def _loop(self, item: Map) -> str:
        program = self.program
        (out,) = item.outputs
        result = program.values[out]
        looked_up = {step.inputs[i] for step in item.steps for i in maps.tables(step)}
        operands: dict[int, tuple[str, list[int]]] = {}  # (pointer's name, steps along the axes) by value
        literals: dict[int, str] = {}
        arguments: list[str] = []
        heads: list[str] = []
        for v in item.inputs:
            value = program.values[v]
            if value.data is not None and v not in looked_up and (same := self._same(value.data)) is not None:
                literals[v] = same
                continue
            name = f"x{len(operands)}"
            operands[v] = (name, _strides(value.shape, result.shape) if v not in looked_up else [])
            heads.append(f"const {maps.C_TYPES[value.dtype.name]} *{name}")
            arguments.append(self.pointer(v))
        heads.append(f"{maps.C_TYPES[result.dtype.name]} *y")
        arguments.append(self.pointer(out, False))
        sizes, strides = _merged(result.shape, [s for v, (_, s) in operands.items() if v not in looked_up])
        body: list[str] = []
        names = dict(literals)
        element = iter(strides)
        for v, (name, _) in operands.items():
            if v in looked_up:
                names[v] = name
                continue
            kind = maps.C_TYPES[program.values[v].dtype.name]
            body.append(f"const {kind} a{len(body)} = {name}[{_index(next(element))}];")
            names[v] = f"a{len(body) - 1}"
        for k, step in enumerate(item.steps):
            text = maps.expression(program, step, [names[v] for v in step.inputs])
            self._use(text)
            if k == len(item.steps) - 1:
                body.append(f"y[{_index(_contiguous(sizes))}] = {text};")
            else:
                (made,) = step.outputs
                names[made] = f"t{k}"
                body.append(f"const {maps.C_TYPES[program.values[made].dtype.name]} t{k} = {text};")
        function = self._function(heads, sizes, body)
        first = [str(sizes[0])] if len(sizes) == 1 else []
        return f"{function}({', '.join(first + arguments)});"

    def _same(self, data: np.ndarray) -> str | None:
        """The literal of a constant whose elements are all alike."""
        flat = data.ravel()
        if not flat.size or (flat.tobytes() != flat[:1].tobytes() * flat.size):
            return None
        return maps.number(flat[0], flat.dtype)

    def _use(self, text: str) -> None:
        self.used |= set(library._NAME.findall(text))

    def _function(self, heads: list[str], sizes: list[int], body: list[str]) -> str:
        """The name of a loop with this body; a plain one is told how many elements there are."""
        plain = len(sizes) == 1
        heads = (["int32_t count"] if plain else []) + heads
        lines = [
            f"({', '.join(heads)})",
            "{",
            f"    int32_t {', '.join(f'i{d}' for d in range(len(sizes)))};",
        ]
        for d, size in enumerate(sizes):
            opening = " {" if d == len(sizes) - 1 else ""
            lines.append(
                f"{'    ' * (d + 1)}for (i{d} = 0; i{d} < {'count' if plain else size}; i{d}++){opening}"
            )
        indent = "    " * len(sizes)
        lines += [f"{indent}    {line}" for line in body]
        lines += [f"{indent}}}", "}"]
        return self.functions.setdefault("\n".join(lines), f"map{len(self.functions)}")

    # ---- files

    def weight_files(self) -> tuple[str, str]:
        """(header, source) of the constants."""
        head = [f"extern const {kind} {name}[{size}];" for name, kind, size, _ in self.declared]
        body = []
        for name, kind, size, array in self.declared:
            body.append(f"const {kind} {name}[{size}] = {{\n{wrapped(numbers(array) or ['0'])}\n}};")
        return "\n".join(head), "\n".join(body)

    def parameter_text(self) -> str:
        """The structs that calls point to."""
        return "\n".join(
            f"static const {text.partition(' ')[0]} {name} = {text.partition(' ')[2]};"
            for text, name in self.parameters.items()
        )

    def function_text(self) -> str:
        """The loops."""
        return "\n\n".join(f"static void {name}{text}" for text, name in self.functions.items())


def _strides(shape: tuple[int, ...], result: tuple[int, ...]) -> list[int]:
    """Steps of an operand along the axes of the result."""
    padded = (1,) * (len(result) - len(shape)) + tuple(shape)
    found, step = [], 1
    for size in reversed(padded):
        found.append(step if size != 1 else 0)
        step *= size
    return found[::-1]


def _contiguous(sizes: list[int]) -> list[int]:
    return [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]


def _merged(shape: tuple[int, ...], operands: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Axes that all operands walk alike as one: sizes, steps of each operand."""
    axes: list[tuple[int, list[int]]] = []
    for d, size in enumerate(shape):
        if size == 1:
            continue
        steps = [s[d] for s in operands]
        if axes and all(before == step * size for before, step in zip(axes[-1][1], steps)):
            axes[-1] = (axes[-1][0] * size, steps)
        else:
            axes.append((size, steps))
    axes = axes or [(math.prod(shape), [0] * len(operands))]
    return [size for size, _ in axes], [[steps[k] for _, steps in axes] for k in range(len(operands))]


def _index(steps: list[int]) -> str:
    parts = [f"i{d}" if step == 1 else f"i{d} * {step}" for d, step in enumerate(steps) if step]
    return " + ".join(parts) or "0"
