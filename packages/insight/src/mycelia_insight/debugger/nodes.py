"""The nodes of graphs as a tree of scopes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mycelia_insight.debugger import Node

SCOPE = "name_scope"


def graph_name(number: int) -> str:
    """How the interface calls a graph."""
    return f"graph_{number}"


class Tree:
    """Scopes and nodes of one rank; names of the interface are ``graph_N/full/name``. `version`: that of the
    source before it gave these nodes.
    """

    def __init__(self, nodes: Iterable[Node], rank: int, version: int = 0) -> None:
        self.version = version
        self.nodes: dict[str, Node] = {f"{graph_name(n.graph)}/{n.name}": n for n in nodes if n.rank == rank}
        self.graphs = list(dict.fromkeys(graph_name(n.graph) for n in self.nodes.values()))
        self.readers: dict[str, list[str]] = {}
        for name, node in self.nodes.items():
            for feed in node.feeds:
                self.readers.setdefault(f"{graph_name(node.graph)}/{feed}", []).append(name)

    def find(self, name: str, graph: str = "") -> Node | None:
        """The node with this name, given with its graph or beside it."""
        candidates = [name, f"{graph}/{name}", *(f"{g}/{name}" for g in self.graphs)]
        return next((self.nodes[c] for c in candidates if c in self.nodes), None)

    def below(self, name: str, graph: str = "") -> list[str]:
        """The nodes of a scope, or the node itself; the name is given with its graph, beside it, or without,
        which means all graphs.
        """
        return [
            full for full, node in self.nodes.items()
            if any(one == name or one.startswith(f"{name}/") for one in (full, node.name))
            and (not graph or full.startswith(f"{graph}/"))
        ]  # fmt: skip

    def full_name(self, node: Node) -> str:
        """With its graph."""
        return f"{graph_name(node.graph)}/{node.name}"

    def children(self, scope: str) -> list[dict[str, Any]]:
        """What lies directly in a scope ("" the top): scopes first met first, and nodes."""
        found: dict[str, int] = {}
        prefix = f"{scope}/" if scope else ""
        for name in self.nodes:
            if name.startswith(prefix):
                head, _, rest = name[len(prefix) :].partition("/")
                path = prefix + head
                found[path] = found.get(path, 0) + (1 if rest else 0)
        return [self.described(path, count) for path, count in found.items()]

    def described(self, path: str, count: int = 0) -> dict[str, Any]:
        """A node or scope as MindInsight's graph pages have it."""
        node = self.nodes.get(path)
        ends = {"data_type": "", "edge_type": "data", "independent_layout": False, "shape": []}
        graph = path.partition("/")[0]
        feeds = [] if node is None else [f"{graph}/{f}" for f in node.feeds]
        return {
            "name": path, "type": SCOPE if node is None else node.kind,
            "attr": {} if node is None else dict(node.attributes),
            "input": {f: ends for f in feeds}, "output": {r: ends for r in self.readers.get(path, ())},
            "output_i": 0, "proxy_input": {}, "proxy_output": {}, "subnode_count": count,
            "independent_layout": False, "is_dynamic_shape_node": False,
            "stack_info": [] if node is None else stack_of(node),
        }  # fmt: skip

    def forest(self, chosen: Callable[[str, Node], bool]) -> list[dict[str, Any]]:
        """The nodes that are chosen, in the scopes around them."""
        return _forest("", [name for name, node in self.nodes.items() if chosen(name, node)], self)


def _forest(prefix: str, names: Iterable[str], tree: Tree) -> list[dict[str, Any]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        head = name[len(prefix) :].partition("/")[0]
        groups.setdefault(prefix + head, []).append(name)
    return [
        {
            "name": path,
            "type": tree.nodes[path].kind if path in tree.nodes else SCOPE,
            "is_dynamic_shape_node": False,
            "nodes": _forest(f"{path}/", [n for n in inside if n != path], tree),
        }
        for path, inside in groups.items()
    ]


def stack_of(node: Node) -> list[dict[str, Any]]:
    """The user's lines, the innermost first."""
    return [
        {"file_path": line.file, "line_no": line.line, "code_line": line.code, "has_substack": False}
        for line in node.stack
    ]


def by_file(nodes: Iterable[Node]) -> Iterator[dict[str, Any]]:
    """All lines that made nodes, by their files, in order."""
    files: dict[str, dict[int, dict[str, Any]]] = {}
    for node in nodes:
        for line in stack_of(node):
            files.setdefault(line["file_path"], {}).setdefault(line["line_no"], line)
    for path in sorted(files):
        yield {"file_path": path, "items": [files[path][number] for number in sorted(files[path])]}
