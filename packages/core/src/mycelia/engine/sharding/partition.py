"""The graph of one rank, made of the graph of the whole.

Layouts go from operands to results, node by node: each op works on parts as its rule says, and where
operands lie otherwise than it needs, collectives move them. Layouts that the user wrote (`with_layout`)
hold. Parameters lie as the layout at their use says, states of an optimizer as their Parameter; what nobody
has divided is whole on all ranks. The result is right whatever is divided: layouts decide what is sent and
kept, not what is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.base.origins import GRADIENTS, ROOT
from mycelia.engine.communication.share import GridShare
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ir.walk import all_nodes
from mycelia.engine.ops.communication.layouts import axes_of
from mycelia.engine.sharding import array_rules, image_rules, math_rules, nn_rules  # noqa: F401  (they enter their rules)
from mycelia.engine.sharding.mesh import Atoms, Mesh, Placed, whole
from mycelia.engine.sharding.rewriter import Rewriter
from mycelia.engine.sharding.rules import Axes, Division, Label, Rule, rule_of

Layout = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]  # a grid, and its axes that divide each axis


@dataclass
class Known:
    """What is known of parameters of a graph before it is divided.

    `given`: layouts by value; `updates`: (result, parameter) of values that take the place of others;
    `states`: those of optimizers that are divided among ranks which would all keep the same; `weights`:
    Parameters that are so between the steps; `stored`: how some of these lie there already; `free`: those
    that lie as the operators around them do, where these are asked (`propagation.py`).
    """

    given: dict[Value, Layout]
    updates: Sequence[tuple[Value, Value]] = ()
    states: Sequence[Value] = ()
    weights: Sequence[Value] = ()
    stored: dict[Value, Layout] = field(default_factory=dict)
    free: Sequence[Value] = ()


class Partition:
    """The division of `graph` among `size` ranks, of which this is `rank`.

    Afterwards `placed` has where each value lies, and `stored` where parameters lie between the steps that
    are gathered for their use.
    Errors: NotImplementedError for an op that has no rule for divided operands, or for layouts that no one
    grid has.
    """

    def __init__(self, graph: Graph, size: int, rank: int, known: Known) -> None:
        self.whole, self.updates = graph, list(known.updates)
        self._require_no_loop()
        nodes = [node for _, node in all_nodes(graph)]
        written = [(n.attrs["matrix"], ()) for n in nodes if is_layout(n)]
        layouts = (*written, *known.given.values(), *known.stored.values())
        self.mesh = Mesh(size, rank, [matrix for matrix, _ in layouts])
        self.fixed = {value: self.mesh.placed(*layout) for value, layout in known.given.items()}
        self.free = set(known.free)
        self._fix_parameters()
        self.hints = {n.inputs[0]: self._written(n) for n in nodes if is_layout(n)}
        self.placed: dict[Value, Placed] = {}
        self.divisions: dict[Node, Division | None] = {}
        states = list(known.states)
        while True:
            self._propagate()
            if self._settle() or self._follow_updates():
                continue
            if not states:
                break
            self.fixed.update((value, self._further(value)) for value in states)
            states.clear()
        self.stored = {value: self._further(value) for value in known.weights}
        self.stored.update((v, self.mesh.placed(*layout)) for v, layout in known.stored.items())

    # ---- layouts of all values -----------------------------------------------------------------------------

    def _written(self, node: Node) -> Placed:
        attrs = node.attrs
        return self.mesh.placed(attrs["matrix"], axes_of(attrs["counts"], attrs["axes"]))

    def _require_no_loop(self) -> None:
        for _, node in all_nodes(self.whole):
            if node.regions and not is_branch(node):
                for inner in (n for region in node.regions for _, n in all_nodes(region)):
                    if is_layout(inner):
                        raise errors.error(
                            errors.NotSupportedError, inner.attrs["owner"],
                            f"the layout {inner.attrs['said']} is written in a loop of the graph, which is "
                            "not divided",
                            hint="counts that are Python values leave no loop in the graph",
                        )  # fmt: skip

    def _fix_parameters(self) -> None:
        """Parameters lie as the first layout at their use says, or at the use of what only rearranges
        them.
        """
        parameters = set(self.whole.parameters)
        for node in self.whole.nodes:
            if is_layout(node) and node.inputs[0] in parameters:
                self.fixed.setdefault(node.inputs[0], self._written(node))

    def _propagate(self) -> None:
        self.placed.clear()
        for value in self.whole.parameters:
            self.placed[value] = self.fixed.get(value) or whole(value.type.rank)
        self._place(self.whole)

    def _place(self, graph: Graph) -> None:
        """Where the results of all nodes lie, whose operands are known."""
        for node in graph.nodes:
            if is_branch(node):
                self._place_branch(node)
                continue
            division = self.divisions[node] = None if is_layout(node) else self._divided(node)
            for index, value in enumerate(node.outputs):
                if is_layout(node):
                    self.placed[value] = self._written(node)
                else:
                    self.placed[value] = division.result(index) if division else whole(value.type.rank)

    def _place_branch(self, node: Node) -> None:
        """Both sides get their operands as they lie; results lie as what they take the place of, or as those
        of a side that divides them.
        """
        for region in node.regions:
            for value, given in zip(region.parameters, node.inputs):
                self.placed[value] = self._kept(given)
            self._place(region)
        targets = {result: self.fixed.get(parameter) for result, parameter in self.updates}
        for index, value in enumerate(node.outputs):
            sides = [self._kept(region.outputs[index]) for region in node.regions]
            sides = [placed for placed in sides if not placed.is_whole] or sides
            self.placed[value] = targets.get(value) or sides[0]

    def _follow_updates(self) -> bool:
        """Lets what is overwritten by divided values, and is not divided yet, lie as they do; whether any
        does.
        """
        found = False
        for result, parameter in self.updates:
            now = self.at(result)
            if parameter in self.fixed or now.is_whole or now.partial:
                continue
            self.fixed[parameter], found = now, True
        return found

    def _settle(self) -> bool:
        """Whether layouts were found that values have from now on."""
        return False

    def _further(self, value: Value) -> Placed:
        """A value whose first axis is divided by all of the grid that has not divided it yet, as far as its
        size allows.
        """
        placed, shape = self.placed[value], value.type.shape
        if not shape:
            return placed
        used = {a for dim in placed.dims for a in dim}
        left = tuple(a for a in range(len(self.mesh.sizes)) if a not in used)
        while left and shape[0] % self.mesh.parts(placed.dims[0] + left):
            left = left[:-1]
        return Placed((placed.dims[0] + left, *placed.dims[1:]))

    def at(self, value: Value) -> Placed:
        """Where a value lies; constants are whole."""
        return self.placed.get(value) or whole(value.type.rank)

    def lies(self, value: Value) -> Placed:
        """Where a parameter of the graph lies between the steps."""
        return self.stored.get(value) or self.placed[value]

    def _divided(self, node: Node) -> Division | None:
        """How a node is divided; None if it runs on whole operands, or has none."""
        if all(v is None or self._kept(v).is_whole for v in node.inputs) and not self._hinted(node):
            return None
        rule = rule_of(node) if not node.regions else None
        if rule is None:
            if any(v is not None and not self._kept(v).is_whole for v in node.inputs):
                self._refuse(node)
            return None
        atoms = self._chosen(node, rule)
        return Division(node, rule, self.mesh, atoms) if any(atoms.values()) else None

    def _kept(self, value: Value) -> Placed:
        """Where a value lies after what is left of its reduction."""
        placed = self.at(value)
        return Placed(placed.dims)

    def _hinted(self, node: Node) -> bool:
        return any(value in self.hints and not self.hints[value].is_whole for value in node.outputs)

    def _chosen(self, node: Node, rule: Rule) -> dict[Label, Atoms]:
        """The atoms of each label: those of the largest operand that has it, or of a layout that the user
        wrote for the result. In steps of optimizers the states say more than their Parameter does.
        """
        sizes = dict(rule.sizes)
        wishes: list[tuple[Axes, Placed]] = []
        operands = [
            (axes, v)
            for axes, v in zip(rule.inputs, node.inputs, strict=True)
            if axes is not None and v is not None
        ]
        results = list(zip(rule.outputs, node.outputs, strict=True))
        for axes, value in (*operands, *results):
            for axis, n in zip(axes, value.type.shape, strict=True):
                if len(axis) == 1:
                    sizes.setdefault(axis[0], n)
        updates = bool(node.op.definition.updates)

        def comes_first(pair: tuple[Axes, Value]) -> tuple[int, int]:
            parts = [self.mesh.parts(atoms) for atoms in self._kept(pair[1]).dims] if updates else []
            return -math.prod(pair[1].type.shape), -math.prod(parts)

        operands.sort(key=comes_first)
        wishes += [(axes, self._kept(value)) for axes, value in operands]
        wishes += [(axes, self.hints[value]) for axes, value in results if value in self.hints]
        chosen: dict[Label, Atoms] = {}
        taken: set[int] = set()
        for axes, placed in wishes:
            for axis, atoms in zip(axes, placed.dims):
                self._choose(axis, atoms, sizes, chosen, taken)
        while any([self._close(axis, sizes, chosen) for axes, _ in (*operands, *results) for axis in axes]):
            pass
        return chosen

    def _choose(
        self, axis: tuple, atoms: Atoms, sizes: dict[Label, int], chosen: dict[Label, Atoms], taken: set[int]
    ) -> None:
        """Divides the labels of an axis by `atoms`, the slowest label first, each until it is used up."""
        left = list(atoms)
        for label in axis:
            if label in chosen:
                own = chosen[label]
                if tuple(left[: len(own)]) != own:
                    return
                del left[: len(own)]
            else:
                own = ()
                while left and left[0] not in taken and sizes[label] % self.mesh.parts((*own, left[0])) == 0:
                    own += (left.pop(0),)
                if own:
                    chosen[label] = own
                    taken.update(own)
            if self.mesh.parts(own) != sizes[label]:
                return

    def _close(self, axis: tuple, sizes: dict[Label, int], chosen: dict[Label, Atoms]) -> bool:
        """Parts of an axis of several labels are blocks: behind a label that is not used up none is divided.
        Whether one was.
        """
        for before, label in zip(axis, axis[1:]):
            if chosen.get(label) and self.mesh.parts(chosen.get(before, ())) != sizes[before]:
                chosen[label] = ()
                return True
        return False

    def _refuse(self, node: Node) -> None:
        """Errors: NotImplementedError naming an op without a rule, and which operands are divided."""
        name = node.op.definition.name
        divided = [
            f"operand {i} of shape {list(v.type.shape)} is divided {self.mesh.text(self._kept(v))}"
            for i, v in enumerate(node.inputs)
            if v is not None and not self._kept(v).is_whole
        ]
        where = "" if node.location is None else f", at {node.location}"
        raise errors.error(
            errors.NotSupportedError, name,
            f"no rule says how {name} works on divided tensors, but {'; '.join(divided)}{where}",
            hint="give the op before it a layout of ones, which makes it whole on all ranks",
        )  # fmt: skip

    # ---- what others are told
    # --------------------------------------------------------------------------------

    def share(self, value: Value) -> GridShare:
        """This rank's part of a parameter of the graph, as it lies between the steps."""
        return self.share_of(self.lies(value), value)

    def share_of(self, placed: Placed, value: Value) -> GridShare:
        """This rank's part of a value that lies so, on a grid of as few axes as it needs."""
        dims, mesh = placed.dims, self.mesh
        groups = [[0]]
        for atom in range(1, len(mesh.sizes)):
            pairs = [pair for dim in dims for pair in zip(dim, dim[1:])]
            used = {a for dim in dims for a in dim}
            if (atom - 1, atom) in pairs or not used & {atom - 1, atom}:
                groups[-1].append(atom)
            else:
                groups.append([atom])
        matrix = tuple(mesh.parts(tuple(group)) for group in groups)
        first = {group[0]: axis for axis, group in enumerate(groups)}
        axes = tuple(tuple(first[a] for a in dim if a in first) for dim in dims)
        return GridShare(mesh.rank, matrix, axes, tuple(value.type.shape))

    def operators(self) -> dict[str, list[list[int]]]:
        """Into how many parts the axes of the tensors are cut that operators with a strategy get, by the
        name of the operator.
        """
        found: dict[str, list[list[int]]] = {}
        last, name = None, ""
        for node in self.whole.nodes:
            if not is_layout(node):
                continue
            scope = getattr(node.location, "scope", ROOT)
            if scope.startswith(GRADIENTS):
                continue
            owner = scope, node.attrs["owner"]
            if owner != last:
                last, name = owner, f"{scope}/{node.attrs['owner']}-op{len(found)}"
                found[name] = []
            found[name].append([self.mesh.parts(atoms) for atoms in self._written(node).dims])
        return found

    # ---- the graph of this rank ----------------------------------------------------------------------------

    def rewritten(self, results: Sequence[Placed]) -> Graph:
        """The graph of this rank, whose first results lie as `results` say, the others as what they take the
        place of.
        """
        places = [*results, *(self.lies(parameter) for _, parameter in self.updates)]
        return self._written_out(self.whole, places)

    def _written_out(self, graph: Graph, places: Sequence[Placed]) -> Graph:
        """What stands for a graph on this rank; its results lie as `places` say."""
        made = Graph(graph.name)
        rewriter = Rewriter(made, self.mesh)
        values: dict[Value, Value] = {}
        for value in graph.parameters:
            shape = self.mesh.shape(value.type.shape, self.lies(value))
            values[value] = made.add_parameter(TensorType(value.type.dtype, shape), value.name)
            values[value].is_number = value.is_number

        def operand(value: Value, then: Placed) -> Value:
            now = self.stored.get(value) or self.at(value)
            return rewriter.moved(values.get(value, value), now, then)

        for node in graph.nodes:
            rewriter.builder.location = node.location
            found = self._emitted(node, rewriter, operand)
            for value, new in zip(node.outputs, found, strict=True):
                self._require(node, value, new)
                values[value] = new
        rewriter.builder.location = None
        made.outputs = [operand(value, then) for value, then in zip(graph.outputs, places, strict=True)]
        return made

    def _emitted(self, node: Node, rewriter: Rewriter, operand: Any) -> Sequence[Value]:
        if is_layout(node):
            return [operand(node.inputs[0], self._written(node))]
        if is_branch(node):
            return self._branch(node, rewriter, operand)
        division = self.divisions[node]
        if division is None:
            operands = [None if v is None else operand(v, whole(v.type.rank)) for v in node.inputs]
            return rewriter.builder.emit(node.op, operands, node.attrs, [v.type for v in node.outputs])
        rule = division.rule
        operands = [
            None if v is None or axes is None else operand(v, division.placed(axes))
            for v, axes in zip(node.inputs, rule.inputs)
        ]
        if rule.emit is not None:
            return rule.emit(rewriter, division, operands)
        attrs = node.attrs if rule.attrs is None else {**node.attrs, **rule.attrs(division)}
        return rewriter.emit(node.op, operands, **attrs)

    def _branch(self, node: Node, rewriter: Rewriter, operand: Any) -> Sequence[Value]:
        """All ranks take the same side, since the condition is whole."""
        *given, condition = node.inputs
        operands = [operand(v, self._kept(v)) for v in given]
        places = [self.placed[value] for value in node.outputs]
        then, otherwise = (self._written_out(node.attrs[side], places) for side in ("then", "otherwise"))
        test = operand(condition, whole(condition.type.rank))
        return rewriter.emit(node.op, [*operands, test], then=then, otherwise=otherwise)

    def _require(self, node: Node, value: Value, new: Value) -> None:
        """RuntimeError if a rule is wrong: a part must have the sizes that its layout says."""
        shape = self.mesh.shape(value.type.shape, self.placed[value])
        if tuple(new.type.shape) != shape or new.type.dtype is not value.type.dtype:
            raise errors.runtime_error(
                node.op.definition.name,
                f"its rule of layouts gives {new.type} for a part of {value.type} divided "
                f"{self.mesh.text(self.placed[value])}: this is a fault of Mycelia",
            )


def is_layout(node: Node) -> bool:
    """Whether it is a layout that the user wrote."""
    return bool(node.op.definition.name == "with_layout")


def is_branch(node: Node) -> bool:
    """Whether it takes one of two graphs."""
    return bool(node.op.definition.name == "cond")
