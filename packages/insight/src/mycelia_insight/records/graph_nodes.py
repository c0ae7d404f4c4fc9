"""A computation graph node by node, as MindInsight 2.3.1 tells clients: flat names, scopes, far ends.

Operators keep their names; each scope has its own copy of the parameters and constants that it takes; five
or more nodes of one type in a scope lie in an aggregation `Type[n]_i`, i counted over the whole graph; scopes
and aggregations have the edges of what they hold. Where it cannot read a graph, `<` in a name, this one can.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

AGGREGATED, AGGREGATED_OPTIMIZED = 5, 10  # so many nodes of a type in a scope lie in an aggregation
SCOPE, AGGREGATION, PARAMETER, CONSTANT = "name_scope", "aggregation_scope", "Parameter", "Const"
_PASSED = frozenset({"Load", "TupleGetItem", "MakeTuple", "UpdateState"})  # left out of optimized graphs
_MAPS = ("inputs", "outputs", "proxy_inputs", "proxy_outputs")

Edges = dict[str, dict[str, Any]]


@dataclass(slots=True, eq=False)
class Node:
    """An operator, a parameter, a constant, a scope or an aggregation.

    wants: ids of its inputs, and whether they only decide the order. shapes, data_type: of its output. place:
    among the operators of its graph, -1 of others. trains: is of the gradients or the optimizer.
    """

    name: str
    type: str
    scope: str = ""
    id: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    wants: list[tuple[str, bool]] = field(default_factory=list)
    shapes: list[list[int]] = field(default_factory=list)
    data_type: str = ""
    output_i: int = 0
    place: int = -1
    trains: bool = False
    is_dynamic: bool = False
    inputs: Edges = field(default_factory=dict)
    outputs: Edges = field(default_factory=dict)
    proxy_inputs: Edges = field(default_factory=dict)
    proxy_outputs: Edges = field(default_factory=dict)
    independent: bool = False
    children: list[Node] = field(default_factory=list)

    def add(self, which: str, name: str, edge: dict[str, Any]) -> None:
        getattr(self, which)[name] = edge
        self.is_dynamic = self.is_dynamic or any(-1 in one or -2 in one for one in edge.get("shape", ()))

    def told(self) -> dict[str, Any]:
        """What the interface answers."""
        return {
            "name": self.name,
            "type": self.type,
            "is_dynamic_shape_node": self.is_dynamic,
            "attr": self.attributes,
            "input": self.inputs,
            "output": self.outputs,
            "output_i": self.output_i,
            "proxy_input": self.proxy_inputs,
            "proxy_output": self.proxy_outputs,
            "subnode_count": len(self.children),
            "independent_layout": self.independent,
            "stack_info": [],  # lines of source are the attribute "source"
        }


class NodeGraph:
    """Nodes below the root, which is the scope "".

    operators, parameters and constants: without edges, which `wants` tells.
    optimized: without gradients, the optimizer, and nodes that only take apart, join or keep an order.
    """

    def __init__(
        self,
        operators: Iterable[Node],
        parameters: Iterable[Node],
        constants: Iterable[Node],
        optimized: bool = False,
    ):
        self.nodes: dict[str, Node] = {}
        self._optimized = optimized
        ids: dict[str, str] = {}
        for node in [*operators, *parameters, *constants]:
            if not (optimized and node.trains):
                self.nodes[node.name] = node
                ids[node.id] = node.name
        self._connect(ids)
        if optimized:
            self._simplify()
        self._copy_into_scopes(PARAMETER)
        self._aggregate()
        self._lay_parameters_apart()
        self._add_scopes()
        self._copy_into_scopes(CONSTANT)
        self.top: list[Node] = []
        for node in self.nodes.values():
            above = self.nodes.get(node.scope) if node.scope else None
            if above is not None or not node.scope:
                (above.children if above else self.top).append(node)

    def below(self, scope: str) -> list[Node]:
        """What lies in a scope.  Errors: KeyError if there is no such node."""
        return self.nodes[scope].children if scope else self.top

    def leaves(self, scope: str = "") -> list[Node]:
        """All nodes without others in them, depth first.  Errors: KeyError."""
        found, stack = [], self.below(scope)[::-1]
        while stack:
            node = stack.pop()
            if node.children:
                stack += node.children[::-1]
            else:
                found.append(node)
        return found

    def search(self, text: str) -> list[Node]:
        """Nodes with `text` in the last part of their names, or that ends in it, whatever the case."""
        wanted = text.lower()
        if wanted in ("", "/"):
            return []
        found = []
        for name, node in self.nodes.items():
            at = name.lower().rfind(wanted)
            if at >= 0 and name.find("/", at + len(wanted)) < 0:
                found.append(node)
        return found

    def _connect(self, ids: dict[str, str]) -> None:
        for node in self.nodes.values():
            for id, control in node.wants:
                source = self.nodes.get(ids.get(id, ""))
                if source is not None:
                    node.add("inputs", source.name, _edge(source, control))
        if self._optimized:
            self._pass_by("inputs")
        for node in self.nodes.values():
            for name, edge in node.inputs.items():
                if self.nodes[name].type not in (CONSTANT, PARAMETER):
                    self.nodes[name].add("outputs", node.name, edge)
        if self._optimized:
            self._pass_by("outputs")

    def _pass_by(self, which: str) -> None:
        """Put in place of ends that are left out what these have on their other side."""
        for node in self._in_order():
            for name in list(getattr(node, which)):
                end = self.nodes.get(name)
                if end is None or end.type not in _PASSED:
                    continue
                getattr(node, which).pop(name)
                for far, edge in list(getattr(end, which).items()):
                    if far in self.nodes:
                        edge["shape"], edge["data_type"] = self.nodes[far].shapes, self.nodes[far].data_type
                        node.add(which, far, edge)

    def _in_order(self) -> list[Node]:
        found = [node for node in self.nodes.values() if node.type not in (CONSTANT, PARAMETER)]
        return sorted(found, key=lambda node: node.place)

    def _simplify(self) -> None:
        """Leave out what computes or connects nothing; lift nodes out of scopes of one type."""
        self.nodes = {name: node for name, node in self.nodes.items() if node.type not in _PASSED}
        apart = {node.name for node in self._in_order() if not node.inputs and not node.outputs}
        self.nodes = {name: node for name, node in self.nodes.items() if name not in apart}
        in_scope: dict[str, list[Node]] = {}
        for node in self._in_order():
            if "/" in node.scope:
                in_scope.setdefault(node.scope, []).append(node)
        lifted = {
            scope for scope, inside in in_scope.items()
            if len(inside) > 1 and len({one.type for one in inside}) == 1 and inside[0].type in scope
            and not any(other.startswith(scope + "/") for other in in_scope)
        }  # fmt: skip
        for node in [one for one in self._in_order() if one.scope in lifted]:
            self._rename(node, f"{node.scope.rpartition('/')[0]}/{_last(node.name)}")

    def _copy_into_scopes(self, type: str) -> None:
        originals = {name for name, node in self.nodes.items() if node.type == type}
        copies: dict[str, Node] = {}
        for node in self.nodes.values():
            for name in [name for name in node.inputs if name in originals]:
                placed = f"{node.scope}/{name}" if node.scope else name
                if placed not in copies:
                    source = self.nodes[name]
                    copies[placed] = Node(
                        placed,
                        source.type,
                        node.scope,
                        attributes=dict(source.attributes),
                        shapes=source.shapes,
                        data_type=source.data_type,
                        output_i=source.output_i,
                    )
                edge = node.inputs.pop(name)
                copies[placed].add("outputs", node.name, dict(edge))
                node.add("inputs", placed, dict(edge))
        for name in originals - copies.keys():
            del self.nodes[name]
        self.nodes.update(copies)

    def _aggregate(self) -> None:
        alike: dict[tuple[str, str], list[Node]] = {}
        for node in self.nodes.values():
            if node.type not in (CONSTANT, SCOPE):
                alike.setdefault((node.scope, node.type), []).append(node)
        least = AGGREGATED_OPTIMIZED if self._optimized else AGGREGATED
        gathered = []
        for (scope, type), members in alike.items():
            if len(members) < least:
                continue
            label = f"{type}[{len(members)}]_{len(gathered)}"
            one = Node(f"{scope}/{label}" if scope else label, AGGREGATION, scope)
            for node in members:
                self._rename(node, f"{one.name}/{_last(node.name)}")
            self.nodes[one.name] = one
            gathered.append((one, members))
        for one, members in gathered:
            for node in members:
                self._inherit(one, node)

    def _inherit(self, owner: Node, node: Node) -> None:
        """Give a scope the edges of a node in it that lead out."""
        inside = owner.name + "/"
        for which in _MAPS:
            for name, edge in getattr(node, which).items():
                end = self.nodes.get(name)
                if end is not None and end.type != CONSTANT and not name.startswith(inside):
                    owner.add(which, name, edge)

    def _lay_parameters_apart(self) -> None:
        """Aggregations of parameters are drawn beside the rest: stand-ins keep their edges short."""
        apart = {
            name: [] for name, node in self.nodes.items()
            if node.type == AGGREGATION and PARAMETER in _last(name)
        }  # fmt: skip
        for node in self.nodes.values():
            if node.scope in apart:
                apart[node.scope].append(node)
        for name, members in apart.items():
            owner = self.nodes[name]
            for node in (owner, *members):
                node.independent = True
                for end, edge in list(node.outputs.items()):
                    proxy, target = {"edge_type": edge["edge_type"]}, self.nodes.get(end)
                    if target is None:  # an operator that is called a parameter, and was left out
                        continue
                    near = target if target.scope == owner.scope else self.nodes.get(target.scope, target)
                    node.add("proxy_outputs", near.name, proxy)
                    if node is owner:
                        for one in (target, near):
                            one.add("proxy_inputs", name, proxy)
                    elif node.name in target.inputs:
                        target.inputs[node.name]["independent_layout"] = True

    def _add_scopes(self) -> None:
        for name in sorted({above for one in self.nodes for above in _above(one)}):
            taken = self.nodes.get(name)
            if taken is not None and taken.type != AGGREGATION:  # a node that is called like a scope
                label = f"({_last(name)})"
                self._rename(taken, f"{taken.scope}/{label}" if taken.scope else label, taken.scope)
        scopes: dict[str, Node] = {}
        for node in self.nodes.values():
            for name in _above(node.name):
                if name in self.nodes:
                    continue
                if name not in scopes:
                    scopes[name] = Node(name, SCOPE, name.rpartition("/")[0])
                self._inherit(scopes[name], node)
        self.nodes.update(scopes)

    def _rename(self, node: Node, name: str, scope: str | None = None) -> None:
        """Call a node otherwise, in its neighbours' edges too; its scope is what the new name lies in."""
        was, node.name = node.name, name
        node.scope = name.rpartition("/")[0] if scope is None else scope
        del self.nodes[was]
        self.nodes[name] = node
        for end in {end for which in _MAPS for end in getattr(node, which)}:
            neighbour = self.nodes.get(end)
            for which in _MAPS if neighbour is not None else ():
                edges = getattr(neighbour, which)
                if was in edges:
                    edges[name] = edges.pop(was)


def tree(graph: NodeGraph, found: list[Node]) -> list[dict[str, Any]]:
    """Nodes below the scopes that they lie in."""
    roots: dict[str, dict[str, Any]] = {}
    for node in found:
        level = roots
        for above in _above(node.name):
            label = _last(above)
            if label not in level:
                level[label] = _branch(
                    above, graph.nodes[above].type if above in graph.nodes else SCOPE, node
                )
            level = level[label]["nodes"]
        level[_last(node.name)] = _branch(node.name, node.type, node)
    return _listed(roots)


def _branch(name: str, type: str, node: Node) -> dict[str, Any]:
    return {"name": name, "type": type, "is_dynamic_shape_node": node.is_dynamic, "nodes": {}}


def _listed(level: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "nodes": _listed(one["nodes"])} for one in level.values()]


def _edge(source: Node, control: bool) -> dict[str, Any]:
    return {
        "shape": source.shapes,
        "edge_type": "control" if control else "data",
        "independent_layout": False,
        "data_type": source.data_type,
    }


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _above(name: str) -> list[str]:
    """Names of the scopes that a name lies in, the outermost first."""
    at, found = name.find("/"), []
    while at > 0:
        found.append(name[:at])
        at = name.find("/", at + 1)
    return found
