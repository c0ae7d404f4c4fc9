"""The readable form of a graph, and back.

    graph main(%x: Tensor[Float32](2, 3), %w: Tensor[Float32](3, 4)) {
      %0: Tensor[Float32](2, 4) = matmul(%x, %w) {transpose_a=false}  @ "net.py":41 "construct" in "Default"
      %1: Tensor[Float32](2, 4) = add(%0, const Tensor[Float32]() [1.0])
      return %1
    }

A constant of at most `INLINE` elements is written out; a larger one is `const @name type` and its tensor
is handed beside the text (`constant_table`, `parse(..., constants=...)`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes
from mycelia.engine.base.dtypes import DType
from mycelia.engine.base.errors import Place
from mycelia.engine.base.origins import Origin
from mycelia.engine.ir.graph import Graph, Value
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ir.walk import all_graphs, constants

INLINE = 16  # more elements than this would bury the structure


def constant_table(graph: Graph) -> dict[str, Any]:
    """The tensors that `to_text` refers to by name, for `parse`."""
    table: dict[str, Any] = {}
    for part in all_graphs(graph):
        for value in constants(part):
            if value.type.size > INLINE and not any(tensor is value.constant for tensor in table.values()):
                table[f"c{len(table)}"] = value.constant
    return table


NODES, TYPES, PLACES = range(3)  # how much `to_text` tells


def to_text(graph: Graph, detail: int = PLACES) -> str:
    """The graph as text; the regions of its nodes are written inside their attributes.

    `detail`: `NODES` what each node reads, and its regions, `TYPES` types and attributes, too, `PLACES` all
    that `parse` wants: the user's lines and scopes.
    """
    names = {id(tensor): name for name, tensor in constant_table(graph).items()}
    return "\n".join(_Printer(names, detail).graph(graph, ""))


def to_dot(graph: Graph) -> str:
    """The graph as a picture for Graphviz: nodes with their ops, edges with types; regions by their names."""
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    lines = [f"digraph {json.dumps(graph.name)} {{"]
    lines += [f"  p{i} [shape=ellipse label={json.dumps(v.name or f'p{i}')}]"
              for i, v in enumerate(graph.parameters)]  # fmt: skip
    sources = {v: f"p{i}" for i, v in enumerate(graph.parameters)}
    for node, i in numbers.items():
        label = "\n".join([node.op.name, *(region.name for region in node.regions)])
        lines.append(f"  n{i} [shape=box label={json.dumps(label)}]")
        lines += [f"  {sources[v]} -> n{i} [label={json.dumps(str(v.type))}]"
                  for v in node.inputs if v in sources]  # fmt: skip
        sources.update((v, f"n{i}") for v in node.outputs)
    for i, value in enumerate(graph.outputs):
        lines.append(f"  r{i} [shape=ellipse label={json.dumps(f'result {i}')}]")
        if value in sources:
            lines.append(f"  {sources[value]} -> r{i} [label={json.dumps(str(value.type))}]")
    return "\n".join([*lines, "}"]) + "\n"


class _Printer:
    def __init__(self, constant_names: dict[int, str], detail: int) -> None:
        self.constant_names, self.detail = constant_names, detail

    def graph(self, graph: Graph, indent: str) -> list[str]:
        names: dict[Value, str] = {}
        taken: set[str] = set()
        for value in graph.parameters:
            names[value] = self.unique(value.name or f"p{len(names)}", taken)
        parameters = ", ".join(f"%{names[v]}: {v.type}" for v in graph.parameters)
        lines = [f"graph {json.dumps(graph.name)}({parameters}) {{"]
        inner = indent + "  "
        count = 0
        for node in graph.nodes:
            for value in node.outputs:
                names[value] = self.unique(value.name or str(count), taken)
                count += not value.name
            left = ", ".join(f"%{names[v]}" + self.typed(v) for v in node.outputs)
            inputs = ", ".join(self.use(v, names) for v in node.inputs)
            told = (
                node.attrs.items()
                if self.detail
                else ((k, a) for k, a in node.attrs.items() if isinstance(a, Graph))
            )
            attrs = ", ".join(f"{k}={self.attribute(a, inner)}" for k, a in told)
            place = node.location if self.detail == PLACES else None
            suffix = "" if place is None else f"  @ {self.place(place)}"
            lines.append(
                f"{inner}{left} = {node.op.name}({inputs})" + (f" {{{attrs}}}" if attrs else "") + suffix
            )
        results = ", ".join(self.use(v, names) for v in graph.outputs)
        lines.append(f"{inner}return {results}".rstrip())
        lines.append(indent + "}")
        return lines

    def typed(self, value: Value) -> str:
        return f": {value.type}" if self.detail else ""

    @staticmethod
    def place(place: Place) -> str:
        told = f"{json.dumps(place.file)}:{place.line} {json.dumps(place.function)}"
        return f"{told} in {json.dumps(place.scope)}" if isinstance(place, Origin) else told

    def use(self, value: Value | None, names: dict[Value, str]) -> str:
        if value is None:
            return "none"
        if not value.is_constant:
            return f"%{names[value]}" if value in names else f"%?{value.name}"
        if id(value.constant) in self.constant_names:
            return f"const @{self.constant_names[id(value.constant)]} {value.type}"
        elements = value.constant.asnumpy().reshape(-1)
        return f"const {value.type} [{', '.join(_number(e) for e in elements)}]"

    def attribute(self, value: Any, indent: str) -> str:
        if isinstance(value, Graph):
            return "\n".join(self.graph(value, indent))
        if isinstance(value, (tuple, list)):
            open_, close = "()" if isinstance(value, tuple) else "[]"
            return open_ + ", ".join(self.attribute(v, indent) for v in value) + close
        if type(value) is SymInt:
            return value.formula()
        if isinstance(value, DType):
            return f"dtype.{value.name}"
        if value is None or isinstance(value, (bool, int, str)):
            return json.dumps(value).replace("null", "none") if value is None else json.dumps(value)
        if isinstance(value, float):
            return _number(value)
        return f"<{type(value).__name__}>"  # a Python object: shown, not read back

    @staticmethod
    def unique(name: str, taken: set[str]) -> str:
        name = re.sub(r"[^\w.]", "_", name)
        candidate, number = name, 1
        while candidate in taken:
            candidate, number = f"{name}.{number}", number + 1
        taken.add(candidate)
        return candidate


def _number(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value).replace("(", "").replace(")", "") if isinstance(value, complex) else repr(value)


# ---- parser ------------------------------------------------------------------------------------------------

_REAL = r"(?:inf|nan|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
_TOKEN = re.compile(
    rf"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<value>%[\w.]+)
      | (?P<number>[+-]?{_REAL}(?:[+-]{_REAL}?j|j)?(?!\w))
      | (?P<word>[A-Za-z_][\w.]*)
      | (?P<mark>[-(){{}}\[\],:=@<>])
    )""",
    re.VERBOSE,
)


class ParseError(ValueError):
    """Text that is not a graph; the message names the line and what was expected."""


def parse(text: str, ops: Callable[[str], Any], constants: Mapping[str, Any] | None = None) -> Graph:
    """Reads what `to_text` wrote. `ops` gives the op for a name, `constants` the tensors of
    `constant_table`."""
    parser = _Parser(text, ops, constants or {})
    graph = parser.graph()
    parser.expect_end()
    return graph


class _Parser:
    def __init__(self, text: str, ops: Callable[[str], Any], constants: Mapping[str, Any]) -> None:
        self.text, self.ops, self.constants = text, ops, constants
        self.tokens: list[tuple[str, str, int]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise ParseError(
                    f"line {text.count(chr(10), 0, position) + 1}: cannot read "
                    f"{text[position : position + 20]!r}"
                )
            self.tokens.append((match.lastgroup, match.group(match.lastgroup), match.start(match.lastgroup)))
            position = match.end()
        self.position = 0

    def fail(self, expected: str) -> ParseError:
        if self.position >= len(self.tokens):
            return ParseError(f"text ends where {expected} was expected")
        _, token, start = self.tokens[self.position]
        return ParseError(
            f"line {self.text.count(chr(10), 0, start) + 1}: expected {expected}, got {token!r}"
        )

    def peek(self, token: str) -> bool:
        return self.position < len(self.tokens) and self.tokens[self.position][1] == token

    def accept(self, token: str) -> bool:
        found = self.peek(token)
        self.position += found
        return found

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.fail(repr(token))

    def take(self, kind: str, expected: str) -> str:
        if self.position >= len(self.tokens) or self.tokens[self.position][0] != kind:
            raise self.fail(expected)
        self.position += 1
        return self.tokens[self.position - 1][1]

    def expect_end(self) -> None:
        if self.position != len(self.tokens):
            raise self.fail("the end")

    def graph(self) -> Graph:
        self.expect("graph")
        graph = Graph(json.loads(self.take("string", "the graph's name")))
        values: dict[str, Value] = {}
        self.expect("(")
        while not self.accept(")"):
            name = self.take("value", "a parameter")
            self.expect(":")
            values[name] = graph.add_parameter(self.type(), name[1:])
            if not self.peek(")"):
                self.expect(",")
        self.expect("{")
        while not self.accept("return"):
            self.node(graph, values)
        while not self.accept("}"):
            graph.outputs.append(self.use(values))
            if not self.peek("}"):
                self.expect(",")
        return graph

    def node(self, graph: Graph, values: dict[str, Value]) -> None:
        outputs: list[tuple[str, TensorType]] = []
        while not self.accept("="):
            name = self.take("value", "a result name, or 'return'")
            self.expect(":")
            outputs.append((name, self.type()))
            if not self.peek("="):
                self.expect(",")
        op = self.ops(self.take("word", "an op name"))
        self.expect("(")
        inputs: list[Value | None] = []
        while not self.accept(")"):
            inputs.append(None if self.accept("none") else self.use(values))
            if not self.peek(")"):
                self.expect(",")
        attrs: dict[str, Any] = {}
        if self.accept("{"):
            while not self.accept("}"):
                name = self.take("word", "an attribute name")
                self.expect("=")
                attrs[name] = self.attribute()
                if not self.peek("}"):
                    self.expect(",")
        location = None
        if self.accept("@"):
            file = json.loads(self.take("string", "a file name"))
            self.expect(":")
            line = int(self.take("number", "a line number"))
            function = json.loads(self.take("string", "a function name"))
            location = Place(file, line, function)
            if self.accept("in"):
                location = Origin(((file, line, function),), json.loads(self.take("string", "a scope")))
        node = graph.append(op, inputs, attrs, [type for _, type in outputs], location)
        for (name, _), value in zip(outputs, node.outputs):
            value.name = "" if name[1:].isdigit() else name[1:]
            values[name] = value

    def use(self, values: dict[str, Value]) -> Value:
        if self.accept("const"):
            return self.constant()
        name = self.take("value", "a value")
        if name not in values:
            self.position -= 1
            raise self.fail("a value that is defined above")
        return values[name]

    def constant(self) -> Value:
        if self.accept("@"):
            name = self.take("word", "the name of a constant")
            if name not in self.constants:
                raise ParseError(
                    f"constant @{name} is not among the given constants "
                    f"({', '.join(self.constants) or 'none'})"
                )
            return Value(self.type(), constant=self.constants[name])
        type = self.type()
        self.expect("[")
        elements = []
        while not self.accept("]"):
            elements.append(self.attribute())
            if not self.peek("]"):
                self.expect(",")
        if type.dtype is dtypes.bfloat16:
            array = dtypes.to_bfloat16_bits(np.array(elements, np.float32)).reshape(type.shape)
        else:
            array = np.array(elements, type.dtype.np).reshape(type.shape)
        return Value(type, constant=_C.from_array(array, type.dtype, False))

    def type(self) -> TensorType:
        word = self.take("word", "a type")
        if word != "Tensor":
            raise ParseError(f"a type starts with 'Tensor', got {word!r}")
        self.expect("[")
        dtype = dtypes.as_dtype(self.take("word", "a dtype"))
        self.expect("]")
        self.expect("(")
        shape = []
        while not self.accept(")"):
            shape.append(int(self.take("number", "a size")))
            if not self.peek(")"):
                self.expect(",")
        return TensorType(dtype, tuple(shape))

    def attribute(self) -> Any:
        if self.peek("graph"):
            return self.graph()
        for open_, close, kind in (("(", ")", tuple), ("[", "]", list)):
            if self.accept(open_):
                items = []
                while not self.accept(close):
                    items.append(self.attribute())
                    if not self.peek(close):
                        self.expect(",")
                return kind(items)
        if self.peek("<"):
            raise self.fail("a value that text can carry; this attribute is a Python object")
        for word, value in (("true", True), ("false", False), ("none", None)):
            if self.accept(word):
                return value
        if self.position >= len(self.tokens):
            raise self.fail("an attribute")
        kind, token, _ = self.tokens[self.position]
        self.position += 1
        if kind == "string":
            return json.loads(token)
        if kind == "number":
            return (
                complex(token)
                if token.endswith("j")
                else float(token)
                if re.search(r"[.einf]", token)
                else int(token)
            )
        if kind == "word" and token.startswith("dtype."):
            return dtypes.as_dtype(token.removeprefix("dtype."))
        self.position -= 1
        raise self.fail("an attribute")


Graph.__str__ = to_text
