"""The backend class: which nodes it claims, and how it compiles them.

It has no kernels: eager calls run on the host. In a graph it takes the nodes it knows, as many as can run
together, and PyTorch compiles each such part to a TorchScript function.
"""

from __future__ import annotations

import warnings
from collections import defaultdict

import torch

from mycelia.backends import Backend
from torch_backend.translation import FUNCTIONS, can_run


class TorchBackend(Backend):
    """Parts of graphs on tensors of float32 run in PyTorch, on the host's memory, without copies."""

    name = "torch"

    def claims(self, graph):
        """Nodes between the same two layers of nodes that run elsewhere belong together.

        The layer of a node is the number of times that a way to it leaves this backend, at most. So what a
        group needs lies in its layer or below, and what needs the group lies in its layer or above.
        """
        layer = {}
        groups = defaultdict(list)
        for node in graph.nodes:
            mine = can_run(node)
            before = [v.producer for v in node.inputs if v is not None and v.producer is not None]
            layer[node] = max((layer[p] + (mine and not can_run(p)) for p in before), default=0)
            if mine:
                groups[layer[node]].append(node)
        return list(groups.values())

    def compile(self, graph):
        """The nodes as calls of PyTorch, traced on tensors of their sizes."""

        def run(*tensors):
            values = dict(zip(graph.parameters, tensors))
            for node in graph.nodes:
                given = [v if v is None else values.get(v, constants.get(v)) for v in node.inputs]
                made = FUNCTIONS[node.op.name](*given, **node.attrs)
                values.update(zip(node.outputs, made if isinstance(made, tuple) else (made,)))
            return tuple(values.get(v, constants.get(v)) for v in graph.outputs)

        constants = {
            v: torch.from_numpy(v.constant.asnumpy().copy())
            for node in graph.nodes for v in node.inputs if v is not None and v.is_constant
        }  # fmt: skip
        examples = tuple(torch.zeros(v.type.shape) for v in graph.parameters)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sizes become constants: they are; TorchScript is no longer new
            traced = torch.jit.trace(run, examples, check_trace=False) if examples else run

        def call(*arrays):
            with torch.no_grad():
                return tuple(t.numpy() for t in traced(*map(torch.from_numpy, arrays)))

        return call
