"""A subgraph of a `.ms` file as rules change it: who makes and who reads each tensor is kept up to date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import TABLES, Table

Shape = tuple[int, ...]  # -1: open
FLOAT32 = DataType.FLOAT32
_CONSTANT, _VARIABLE = 0, 2  # Tensor.nodeType
_SMALL = 1 << 12  # bytes of constants that are compared
_NUMBERS = {d: d.numpy for d in DataType if d.name.startswith(("BOOL", "INT", "UINT", "FLOAT"))}

#: Parts of the names of kinds in which more may happen than that results are made.
_EFFECTS = ("Assign", "Variable", "Assert", "Custom", "Call", "TensorArray", "TensorList")


class FileNode:
    """A node of the file. `op` is the table of its operator; `parts` names the nodes fused into it."""

    __slots__ = ("name", "op", "inputs", "outputs", "parts", "table")

    def __init__(
        self,
        name: str,
        op: Table,
        inputs: Sequence[int],
        outputs: Sequence[int],
        parts: Iterable[str] = (),
        table: Table | None = None,
    ) -> None:
        self.name, self.op = name, op
        self.inputs, self.outputs = [int(i) for i in inputs], [int(i) for i in outputs]
        self.parts = tuple(parts)
        self.table = table

    @property
    def kind(self) -> str:
        return self.op.kind

    @property
    def output(self) -> int:
        """Its first result."""
        return self.outputs[0]

    @property
    def activation(self) -> str:
        """The activation that it ends in, `NO_ACTIVATION` if it has none."""
        there = "activation_type" in TABLES[self.kind].fields
        return self.op.activation_type.name if there else "NO_ACTIVATION"

    def written(self) -> Table:
        table = self.table or Table("CNode")
        table.name, table.primitive = self.name, self.op
        table.inputIndex, table.outputIndex = self.inputs, self.outputs
        return table


class FileGraph:
    """The nodes of one subgraph in order, and the tensors of the file. Tensors are numbers.

    `pinned`: tensors that something outside of the nodes reads: outputs, and what other subgraphs name.
    `siblings`: all subgraphs by their numbers; `framework`: fmkType of the file; `released`: numbers of
    subgraphs that nodes of this one called, and call no more.
    """

    def __init__(
        self, tensors: list[Table], nodes: Iterable[Table], inputs: Iterable[int], pinned: Iterable[int]
    ) -> None:
        self.tensors = tensors
        self.name = ""
        self.parameters: list[int] = []  # in order, and so the results
        self.results: list[int] = []
        self.siblings: list[FileGraph] = [self]
        self.framework = 0
        self.released: set[int] = set()
        self.inputs = {int(i) for i in inputs}
        self.pinned = {int(i) for i in pinned}
        self.nodes: list[FileNode] = []
        self.maker: dict[int, FileNode] = {}
        self.readers: dict[int, list[FileNode]] = {}
        self._arrays: dict[int, np.ndarray | None] = {}
        for n in nodes:
            self._enter(FileNode(n.name, n.primitive, n.inputIndex, n.outputIndex, table=n), len(self.nodes))

    # ---- what is there

    def shape(self, tensor: int) -> Shape:
        return tuple(int(n) for n in self.tensors[tensor].dims)

    def rank(self, tensor: int) -> int:
        return len(self.tensors[tensor].dims)

    def dtype(self, tensor: int) -> int:
        return int(self.tensors[tensor].dataType)

    def is_float(self, *tensors: int) -> bool:
        """Whether all are float32, and none stands for quantized numbers."""
        return all(
            self.tensors[t].dataType == FLOAT32 and not len(self.tensors[t].quantParams) for t in tensors
        )

    def uses(self, tensor: int) -> int:
        """How often it is read."""
        return len(self.readers.get(tensor, ())) + (tensor in self.pinned)

    def sole_maker(self, tensor: int, *kinds: str) -> FileNode | None:
        """The node of these kinds whose only result it is, if a single node reads it."""
        made = self.maker.get(tensor)
        if made is None or made.kind not in kinds or len(made.outputs) != 1 or self.uses(tensor) != 1:
            return None
        return made

    def sole_reader(self, tensor: int) -> FileNode | None:
        """The node that reads it, if there is one only, and nothing else does."""
        return self.readers[tensor][0] if self.uses(tensor) == 1 and tensor not in self.pinned else None

    def constant(self, tensor: int) -> np.ndarray | None:
        """The elements of a constant, None for other tensors and packed ones."""
        if tensor not in self._arrays:
            table = self.tensors[tensor]
            plain = table.nodeType == _CONSTANT and not table.weightQuantCompressType and len(table.data)
            dtype = _NUMBERS.get(table.dataType) if plain else None
            array = None
            if dtype is not None and tensor not in self.maker and tensor not in self.inputs:
                array = np.frombuffer(table.data, dtype)
                shape = self.shape(tensor)
                array = array.reshape(shape) if array.size == np.prod(shape, dtype=np.int64) else None
            self._arrays[tensor] = array
        return self._arrays[tensor]

    def float_constant(self, tensor: int) -> np.ndarray | None:
        """The same for float32 alone."""
        return self.constant(tensor) if self.is_float(tensor) else None

    def number(self, tensor: int) -> float | None:
        """The number that all elements of a constant are."""
        array = self.constant(tensor)
        if array is None or not array.size or not (array == array.reshape(-1)[0]).all():
            return None
        return array.reshape(-1)[0].item()

    def integers(self, tensor: int) -> list[int] | None:
        """The elements of a constant of axes, sizes and the like."""
        array = self.constant(tensor)
        if array is None or array.dtype not in (np.int32, np.int64):
            return None
        return [int(n) for n in array.reshape(-1)]

    def content(self, tensor: int) -> object:
        """What is equal for equal tensors: small constants are compared by their elements."""
        array = self.constant(tensor)
        if array is None or array.nbytes > _SMALL:
            return tensor
        return array.dtype.str, array.shape, array.tobytes()

    def same(self, one: int, two: int) -> bool:
        return one == two or self.content(one) == self.content(two)

    def keeps_shape(self, tensor: int, other: int) -> bool:
        """Whether the shape of `tensor` stays when it is broadcast against the constant `other`."""
        shape, added = self.shape(tensor), self.shape(other)
        return len(added) <= len(shape) and all(
            n in (1, m) and n >= 0 for m, n in zip(reversed(shape), reversed(added))
        )

    # ---- changes

    def add_constant(self, array: np.ndarray, name: str) -> int:
        """A new constant; its number."""
        array = np.asarray(array, order="C")
        table = Table("Tensor", nodeType=_CONSTANT, dataType=int(DataType.of(array.dtype)), format="NHWC")
        table.dims, table.name = list(array.shape), name
        table.data = memoryview(array.reshape(-1)).cast("B") if array.size else b""
        self.tensors.append(table)
        return len(self.tensors) - 1

    def add_tensor(self, name: str, like: int, shape: Sequence[int]) -> int:
        """A new tensor that a node is to make, with dtype and format of another; its number."""
        old = self.tensors[like]
        table = Table("Tensor", nodeType=_VARIABLE, dataType=old.dataType, format=old.format, name=name)
        table.dims = [int(n) for n in shape]
        self.tensors.append(table)
        return len(self.tensors) - 1

    def replace(
        self, root: FileNode, op: Table, inputs: Sequence[int], parts: Iterable[FileNode] = ()
    ) -> FileNode:
        """A node that makes the results of `root` in its place; what then nobody reads goes.

        It keeps the name of `root`, the last of the nodes that it stands for; `parts` are the others.
        """
        at = self.nodes.index(root)
        names = dict.fromkeys(n for p in (*parts, root) for n in (p.parts or (p.name,)))
        made = FileNode(root.name, op, inputs, root.outputs, names if len(names) > 1 else (), root.table)
        before = self._leave(root)
        self._enter(made, at)
        self._drop(before)
        return made

    def insert(self, before: FileNode, op: Table, inputs: Sequence[int], shape: Sequence[int]) -> int:
        """A node in front of another, whose result has the dtype of its first input; its tensor."""
        name = f"{before.name}/{op.kind}"
        made = self.add_tensor(name, inputs[0], shape)
        self._enter(FileNode(name, op, inputs, [made]), self.nodes.index(before))
        return made

    def rebuild(self, node: FileNode, op: Table, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """A node in the place of another, with results of its own."""
        at = self.nodes.index(node)
        before = self._leave(node)
        self._enter(FileNode(node.name, op, inputs, outputs, node.parts, node.table), at)
        self._drop(before)

    def make(self, tensor: int, op: Table, inputs: Sequence[int], after: int) -> None:
        """A node that makes a tensor that has no maker, behind the maker of another."""
        made = FileNode(f"{self.maker[after].name}/{op.kind}", op, inputs, [tensor])
        self._enter(made, self.nodes.index(self.maker[after]) + 1)

    def bypass(self, node: FileNode, tensor: int, output: int | None = None) -> bool:
        """Let who reads the result of `node` read `tensor` instead. False if that cannot be: what leaves the
        graph has a tensor of its own.
        """
        out = node.output if output is None else output
        if out in self.pinned:
            maker = self.maker.get(tensor)
            if maker is None or tensor in self.pinned or tensor in self.inputs:
                return False
            if self.nodes.index(maker) > self.nodes.index(node):
                return False
            before = self._leave(node)
            maker.outputs[maker.outputs.index(tensor)] = out
            self.maker[out] = maker
            del self.maker[tensor]
            self._read_instead(tensor, out)
            self._drop(before)
            return True
        self._read_instead(out, tensor)
        if len(node.outputs) == 1:
            self._drop(self._leave(node))
        return True

    def _read_instead(self, old: int, new: int) -> None:
        for reader in self.readers.pop(old, ()):
            reader.inputs = [new if i == old else i for i in reader.inputs]
            self.readers.setdefault(new, []).append(reader)

    def reread(self, node: FileNode, inputs: Sequence[int]) -> None:
        """Gives `node` other inputs; what then nobody reads goes."""
        before = list(node.inputs)
        for i in before:
            self.readers[i].remove(node)
        node.inputs = [int(i) for i in inputs]
        for i in node.inputs:
            self.readers.setdefault(i, []).append(node)
        self._drop(before)

    def _enter(self, node: FileNode, at: int) -> None:
        self.nodes.insert(at, node)
        for o in node.outputs:
            self.maker[o] = node
        for i in node.inputs:
            self.readers.setdefault(i, []).append(node)

    def outline(self, name: str, nodes: Sequence[FileNode], inputs: Sequence[int], output: int) -> None:
        """Moves nodes, in their order, to a subgraph of their own, which is called in the place of the last.

        `inputs`: what they read that is made elsewhere and no constant; `output`: all that is read of them.
        """
        at = self.nodes.index(nodes[-1]) - len(nodes) + 1
        parts = [n for node in nodes for n in (node.parts or (node.name,))]
        own = {i: self.add_tensor(f"{name}/{self.tensors[i].name}", i, self.shape(i)) for i in inputs}
        result = self.add_tensor(f"{name}/result", output, self.shape(output))
        inner = FileGraph(self.tensors, [], own.values(), [result])
        inner.name, inner.parameters, inner.results = name, list(own.values()), [result]
        inner.siblings, inner.framework = self.siblings, self.framework
        for node in nodes:
            self._leave(node)
            node.inputs = [own.get(i, i) for i in node.inputs]
            node.outputs = [result if o == output else o for o in node.outputs]
            inner._enter(node, len(inner.nodes))
        self.siblings.append(inner)
        called = self.add_tensor(f"{name}/PartialFusion", output, [])
        self.tensors[called].dataType = int(DataType.INT32)
        partial = Table("PartialFusion", sub_graph_index=len(self.siblings) - 1)
        self._enter(FileNode(f"{name}/PartialFusion", partial, inputs, [called]), at)
        self._enter(FileNode(name, Table("Call", is_tail_call=False), [called], [output], parts), at + 1)

    def remove(self, node: FileNode) -> None:
        """Take a node out whose results nobody reads, whatever it does; what then nobody reads goes, too."""
        self._drop(self._leave(node))

    def _leave(self, node: FileNode) -> list[int]:
        self.nodes.remove(node)
        for o in node.outputs:
            if self.maker.get(o) is node:
                del self.maker[o]
        for i in node.inputs:
            self.readers[i].remove(node)
        return node.inputs

    def _drop(self, tensors: Iterable[int]) -> None:
        """Take out the makers of these tensors if nobody reads any of their results, and so on."""
        work = list(tensors)
        while work:
            made = self.maker.get(work.pop())
            if made is not None and not self._is_needed(made):
                work += self._leave(made)

    def drop_unused(self) -> None:
        for node in reversed(list(self.nodes)):
            if not self._is_needed(node):
                self._leave(node)

    def _is_needed(self, node: FileNode) -> bool:
        """Whether a result of a node is read, or something else may happen in it."""
        return any(map(self.uses, node.outputs)) or any(word in node.kind for word in _EFFECTS)
