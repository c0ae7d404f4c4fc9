"""Copies from one device's memory to another's, and parts of a graph that a backend compiled as a whole."""

import numpy as np

from mycelia.engine.ir.interpret import evaluate
from mycelia.engine.ops.define import op
from mycelia.engine.ops.infer import same


@op(name="device_copy", infer=same(), elementwise="same")
def device_copy(x, *, device: "str"):
    """`x` in the memory of `device`: "CPU", or the name of a backend with memory of its own.

    The compiler puts it where a backend does not support what comes next. Shapes: x [...] -> same.
    dtypes: any.  Errors: ValueError for an unknown device.
    """
    return np.array(x)


@device_copy.vjp
def device_copy(ct):
    return ct


@device_copy.samples
def device_copy(rand):
    yield rand(2, 3), dict(device="CPU")
    yield rand(0), dict(device="CPU")


device_copy.definition.copies = True


@op(name="subgraph", outputs=None, nondiff=True)
def subgraph(inputs: "tensors", *, graph: "any", backend: "str"):
    """The results of `graph`, which `backend` claimed and compiles as a whole (`Backend.claims`)."""
    raise NotImplementedError("a part of a graph runs on Tensors")


@subgraph.infer
def subgraph(inputs, *, graph, backend):
    return graph.output_types


@subgraph.decompose
def subgraph(inputs, *, graph, backend):
    return tuple(evaluate(graph, inputs))


subgraph.definition.composed = True
__all__: list[str] = []
