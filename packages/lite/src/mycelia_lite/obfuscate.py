"""Models whose structure is hidden: no names, operators of false types, nodes and edges too many.

The runtime undoes it when it loads the model. It hides, it does not protect: who has the runtime can find out
what the model computes. Weights stay as they are; encryption hides those.
"""

from __future__ import annotations

import hashlib
import random
import string

from mycelia_lite.format import FormatError, Table, decode, encode

_FORMAT = b"MYCOBF1\0"
_MASK = 2**64 - 1


def obfuscate(model: Table, degree: float = 0.2) -> Table:
    """An obfuscated copy of a `MetaGraph`; the same for the same model and degree.

    `degree`: the share of operators whose types are hidden, and of nodes that are added, in (0, 1].
    Errors: ValueError for another degree, a model that is obfuscated already.
    """
    if isinstance(degree, bool) or not isinstance(degree, int | float):
        raise TypeError(f"degree must be a number, but got {type(degree).__name__}")
    if not 0 < degree <= 1:
        raise ValueError(f"degree must be above 0 and at most 1, but got {degree}")
    if model.obfuscate:
        raise ValueError("the model is obfuscated already")
    seed = hashlib.sha256(encode(Table("MetaGraph", nodes=model.nodes))).digest()[:8]
    return _Obfuscation(model.copy(), degree, seed).run()


def operators(model: Table) -> set[str]:
    """Kinds of operators of a `MetaGraph`, also of those that `obfuscate` has hidden.

    Errors: `FormatError` for one that others obfuscated.
    """
    hidden: dict[int, Table] = {}
    if model.obfuscate:
        meta = bytes(model.obfMetaData)
        if not meta.startswith(_FORMAT):
            raise FormatError("the model is obfuscated in a way that is not known")
        seed, masked = meta[len(_FORMAT) : 16], meta[16:]
        nodes = decode(_masked(masked, int.from_bytes(seed, "little"))).nodes
        hidden = {int(node.inputIndex[0]): node for node in nodes}
    real = (hidden.get(i, node).primitive for i, node in enumerate(model.nodes))
    return {primitive.kind for primitive in real if primitive is not None}


class _Obfuscation:
    def __init__(self, model: Table, degree: float, seed: bytes) -> None:
        self.model, self.degree, self.seed = model, degree, seed
        self.random = random.Random(seed)
        self.hidden: dict[int, tuple[Table | None, int]] = {}  # node -> its primitive and number of inputs

    def run(self) -> Table:
        model = self.model
        if not model.subGraph:
            model.subGraph = [
                Table(
                    "SubGraph",
                    inputIndices=list(model.inputIndex),
                    outputIndices=list(model.outputIndex),
                    nodeIndices=list(range(len(model.nodes))),
                )
            ]
        self._rename()
        count = max(1, round(self.degree * len(model.nodes)))
        self._hide(count)
        self._add(count)
        self._shuffle()
        for number in self.hidden:
            model.nodes[number].primitive = self._false_primitive()
        model.obfuscate = True
        model.obfMetaData = self._meta()
        return model

    def _rename(self) -> None:
        """Borders keep their names: they are the interface."""
        model = self.model
        borders = {int(i) for i in (*model.inputIndex, *model.outputIndex)}
        for i, tensor in enumerate(model.allTensors):
            if i not in borders:
                tensor.name = f"t{i}"
        for i, node in enumerate(model.nodes):
            node.name = f"n{i}"
        for i, graph in enumerate(model.subGraph):
            graph.name = f"g{i}"
        if model.fixedBy:
            model.fixedBy = "one of its nodes"

    def _hide(self, count: int) -> None:
        numbers = [i for i, node in enumerate(self.model.nodes) if node.primitive is not None]
        for i in self.random.sample(numbers, min(count, len(numbers))):
            node = self.model.nodes[i]
            self.hidden[i] = (node.primitive, len(node.inputIndex))

    def _add(self, count: int) -> None:
        """Nodes that compute nothing, and edges from them to hidden nodes behind them."""
        model = self.model
        for _ in range(count):
            graph = self.random.choice(model.subGraph)
            order = list(map(int, graph.nodeIndices))
            place = self.random.randint(0, len(order))
            known = [int(i) for i in graph.inputIndices]
            known += [int(o) for n in order[:place] for o in model.nodes[n].outputIndex]
            if not known:
                continue
            like = model.allTensors[self.random.choice(known)]
            made = Table("Tensor", nodeType=2, dataType=int(like.dataType), dims=list(like.dims))
            made.name = f"t{len(model.allTensors)}"
            model.allTensors.append(made)
            tensor, number = len(model.allTensors) - 1, len(model.nodes)
            inputs = [self.random.choice(known) for _ in range(self.random.randint(1, 2))]
            model.nodes.append(Table("CNode", name=f"n{number}", inputIndex=inputs, outputIndex=[tensor]))
            self.hidden[number] = (None, len(inputs))
            graph.nodeIndices = [*order[:place], number, *order[place:]]
            if len(graph.tensorIndices):
                graph.tensorIndices = [*map(int, graph.tensorIndices), tensor]
            behind = [n for n in order[place:] if n in self.hidden]
            if behind:
                reader = model.nodes[self.random.choice(behind)]
                reader.inputIndex = [*map(int, reader.inputIndex), tensor]

    def _shuffle(self) -> None:
        """The order in which nodes stand in the file; the subgraphs have that of execution."""
        model = self.model
        order = list(range(len(model.nodes)))
        self.random.shuffle(order)
        place = {old: new for new, old in enumerate(order)}
        model.nodes = [model.nodes[old] for old in order]
        self.hidden = {place[number]: what for number, what in self.hidden.items()}
        for graph in model.subGraph:
            graph.nodeIndices = [place[int(i)] for i in graph.nodeIndices]

    def _false_primitive(self) -> Table:
        name = "".join(self.random.choices(string.ascii_letters, k=8))
        noise = Table("Attribute", name=name[:2], data=self.random.randbytes(self.random.randint(4, 32)))
        return Table("Custom", type=name, attr=[noise])

    def _meta(self) -> bytes:
        nodes = [
            Table("CNode", primitive=primitive, inputIndex=[number, inputs])
            for number, (primitive, inputs) in sorted(self.hidden.items())
        ]
        plain = encode(Table("MetaGraph", nodes=nodes))
        return _FORMAT + self.seed + _masked(plain, int.from_bytes(self.seed, "little"))


def _masked(data: bytes, seed: int) -> bytes:
    """`data` ^ the numbers of splitmix64, 8 bytes each."""
    stream = bytearray()
    while len(stream) < len(data):
        seed = (seed + 0x9E3779B97F4A7C15) & _MASK
        x = seed
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
        stream += (x ^ (x >> 31)).to_bytes(8, "little")
    return bytes(a ^ b for a, b in zip(data, stream))
