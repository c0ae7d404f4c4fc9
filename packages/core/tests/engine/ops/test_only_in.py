"""Ops that something else computes: core has them in graphs."""

import pytest

import mycelia as ms
from mycelia import ops
from mycelia.capture.trace import Trace
from mycelia.ir import TensorType
from mycelia.ops.define import op


@op(name="elsewhere_only", dynamic=True, nondiff=True, only_in="another program")
def _elsewhere(x):
    """What another program makes of x."""


@_elsewhere.infer
def _elsewhere(x):
    return TensorType(x.dtype, (-1,))


def test_an_eager_call_says_what_computes_it():
    with pytest.raises(NotImplementedError, match="elsewhere_only.*it is computed in another program only"):
        _elsewhere(ms.Tensor([1.0]))


def test_a_graph_has_it_with_its_type():
    trace = Trace("main")
    with trace:
        x = trace.parameter(TensorType(ms.float32, (3,)))
        trace.graph.outputs = [trace.value_of(ops.relu(_elsewhere(x)))]
    assert [node.op.name for node in trace.graph.nodes] == ["elsewhere_only", "relu"]
    assert trace.graph.output_types == (TensorType(ms.float32, (-1,)),)
    trace.close()
