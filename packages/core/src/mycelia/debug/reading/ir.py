"""The text of graphs in dumps, ours and MindSpore's: operators, what feeds them, and the lines they come
from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_NODE = re.compile(r"\s*(%[^=]*?)\s*=\s*(?:PrimFunc_)?([A-Za-z0-9_]+)\((.*?)\)\s*(?:\{|$|[a-z_]+_attrs:)")
#: A node whose first line ends within a constant: `Add(Tensor(shape=[2], dtype=Float32, value=`.
_BEGUN = re.compile(r"\s*%[^=]*=\s*\w+\(")
_ENDED = re.compile(r"\)\s*(?:\{|$|[a-z_]+_attrs:)")
_OTHER = re.compile(r"\s*(?:#|:|%|\}|return\b|subgraph\b)")
_SCOPE = re.compile(r"\s*# Fullname with scope: \((.*)\)\s*$")
#: By MindSpore 2.10 with columns, a function with its last line (its group 3); by 2.0 without either.
_LINE = re.compile(r"\s*# (?:inlined:)?In file (.*?):(\d+)(~\d+)?(?:, \d+~\d+)?/(.*)/\s*$")
_ROLE = re.compile(r"  :  role: (.+?)\s*$")
_VALUE = re.compile(r"%[A-Za-z0-9_.]+")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's code; also read as MindInsight's dicts are, ``line["file_path"]``."""

    file: str
    line: int
    code: str

    def __getitem__(self, key: str) -> str | int:
        """`file_path`, `line_no` or `code_line`."""
        return getattr(self, {"file_path": "file", "line_no": "line", "code_line": "code"}[key])

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.code}"


@dataclass(slots=True)
class GraphNode:
    """An operator, or a parameter, which has no inputs. `stack`: the innermost line first; `attributes`: as
    texts.
    """

    kind: str
    name: str
    inputs: list[str] = field(default_factory=list)  # full names of the nodes that feed it, in order
    stack: list[SourceLine] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)


def read_graph(path: Path) -> dict[str, GraphNode]:
    """Full name -> node, in order of execution; parameters come first."""
    nodes: dict[str, GraphNode] = {}
    makers: dict[str, GraphNode] = {}  # a value's name -> what makes it
    current: GraphNode | None = None
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in _joined(file):
            if line.startswith("%para"):
                name = line.partition(":")[0].strip()
                label = re.sub(r"^%para\d+_", "", name)
                makers[name] = nodes[label] = GraphNode("Parameter", label)
                if role := _ROLE.search(line):
                    nodes[label].attributes["role"] = role[1]
                continue
            if match := _NODE.match(line):
                current = _node(match, makers)
                current.attributes = attributes_of(line[match.end(3) + 1 :])
            elif _BEGUN.match(line):
                current = None  # what follows is of a node that cannot be read
            elif current is not None and not current.name and (match := _SCOPE.match(line)):
                current.name = match[1]
                nodes[current.name] = current
            elif current is not None and (match := _LINE.match(line)) and not match[3]:
                current.stack.insert(0, SourceLine(match[1], int(match[2]), match[4].strip()))
    for node in nodes.values():
        node.inputs = [makers[v].name for v in node.inputs if v in makers and makers[v].name]
    return nodes


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """The lines, those of one node as one: constants with more than one dimension go over several."""
    begun: list[str] = []
    for line in lines:
        if begun and not _OTHER.match(line):
            begun.append(line)
            if _ENDED.search(line):
                yield "".join(begun).replace("\n", " ")
                begun = []
            continue
        yield from begun
        begun = []
        if _BEGUN.match(line) and not _ENDED.search(line):
            begun.append(line)
        else:
            yield line
    yield from begun


def attributes_of(text: str) -> dict[str, str]:
    """What stands behind an operator and its inputs: ``{a: 1, b: (2, 3)}``, or MindSpore's
    ``{instance name: x} primitive_attrs: {...} cnode_attrs: {...}``, of which the middle is meant.
    """
    before, mark, behind = text.partition("primitive_attrs:")
    inside = (behind if mark else before).lstrip()
    if not inside.startswith("{") or (not mark and inside.startswith("{instance name:")):
        return {}
    found: dict[str, str] = {}
    depth, quoted, begin = 0, False, 1
    for place, letter in enumerate(inside):
        if letter == '"' and inside[place - 1] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "({[<":
            depth += 1
        elif letter in ")}]>":
            depth -= 1
        if (letter == "," and depth == 1) or not depth:
            key, colon, value = inside[begin:place].partition(":")
            if colon:
                found[key.strip()] = value.strip()
            begin = place + 1
            if not depth:
                break
    return found


def _node(match: re.Match, makers: dict[str, GraphNode]) -> GraphNode:
    made, kind, arguments = match.groups()
    node = GraphNode(kind, "", _VALUE.findall(arguments))
    for value in made.split(", "):
        found = _VALUE.match(value.strip())
        if found:
            makers[found[0]] = node
    return node


def read_graphs(rank_folder: Path) -> dict[int, dict[str, GraphNode]]:
    """Graph number -> its nodes, for each that a dump has the text of."""
    found = {}
    for path in sorted((rank_folder / "graphs").glob("ms_output_trace_code_graph_*.ir")):
        number = path.stem.rpartition("_")[2]
        if number.isdigit():
            found[int(number)] = read_graph(path)
    return found
