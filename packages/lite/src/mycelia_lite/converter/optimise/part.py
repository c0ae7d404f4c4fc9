"""Some nodes of a file, computed by the runtime while the file is made."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

import numpy as np

from mycelia_lite import format as ms_format
from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.format import Table


class Part:
    """Some nodes of a graph in the runtime: ``run(values of inputs) -> values of outputs``.

    Errors: RuntimeError if the outputs need more than these inputs and constants, or nodes are refused.
    """

    def __init__(self, graph: FileGraph, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self._graph, self._inputs, self._outputs = graph, list(inputs), list(outputs)
        self._model = None

    def __call__(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        if self._model is None:
            self._build()
        for tensor, place in self._given:
            tensor.set_data_from_numpy(np.ascontiguousarray(values[place]))
        made = [t.get_data_to_numpy() for t in self._model.predict(self._model.get_inputs())]
        found = dict(zip(self._computed, made, strict=True))
        there = dict(zip(self._inputs, values, strict=True))
        return [
            found[o] if o in found else there[o] if o in there else self._graph.constant(o)
            for o in self._outputs
        ]

    def _build(self) -> None:
        from mycelia_lite.model import Model

        graph = self._graph
        nodes = self._needed()
        self._computed = list(dict.fromkeys(o for o in self._outputs if o in graph.maker))
        if any(
            o not in graph.maker and o not in self._inputs and graph.constant(o) is None
            for o in self._outputs
        ):
            raise RuntimeError("it depends on more than the inputs given")
        numbers = sorted({i for n in nodes for i in (*n.inputs, *n.outputs)})
        place = {old: new for new, old in enumerate(numbers)}
        read = [i for i in self._inputs if i in place]
        cnodes = [
            Table(
                "CNode",
                name=str(k),
                primitive=n.op,
                inputIndex=[place[i] for i in n.inputs],
                outputIndex=[place[o] for o in n.outputs],
            )
            for k, n in enumerate(nodes)
        ]
        inputs, outputs = [place[i] for i in read], [place[o] for o in self._computed]
        sub = Table("SubGraph", inputIndices=inputs, outputIndices=outputs)
        sub.nodeIndices = list(range(len(cnodes)))
        root = Table("MetaGraph", inputIndex=inputs, outputIndex=outputs, nodes=cnodes, subGraph=[sub])
        root.allTensors = [graph.tensors[i] for i in numbers]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "part.ms")
            ms_format.write(path, root)
            self._model = Model()
            self._model.build_from_file(path)
        places = [self._inputs.index(i) for i in read]
        self._given = list(zip(self._model.get_inputs(), places, strict=True))

    def _needed(self) -> list[FileNode]:
        """The nodes that the outputs follow from, in order."""
        work, found = list(self._outputs), set()
        while work:
            tensor = work.pop()
            made = self._graph.maker.get(tensor)
            if made is None:
                if tensor not in self._inputs and self._graph.constant(tensor) is None:
                    raise RuntimeError("it depends on more than the inputs given")
            elif id(made) not in found:
                found.add(id(made))
                work += made.inputs
        return [n for n in self._graph.nodes if id(n) in found]
