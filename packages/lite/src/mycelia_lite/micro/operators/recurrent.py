"""Recurrent layers."""

from __future__ import annotations

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.program import Step

_SCRATCH = {"lstm_layer": 4, "gru_layer": 6, "gru_before": 3, "rnn_layer": 1}  # floats for each unit


@lowers(*_SCRATCH)
def recurrent(b: Builder, step: Step) -> None:
    """A layer over a sequence; what it saves for gradients is not made."""
    b.floats(step)
    steps, batch, inputs = b.shape(step.inputs[0])
    hidden = b.shape(step.outputs[0])[-1]
    name = step.op.removesuffix("_layer")
    fields = {
        "steps": steps, "batch": batch, "inputs": inputs, "hidden": hidden,
        "is_relu": step.attributes.get("nonlinearity", 0),
    }  # fmt: skip
    outputs = step.outputs[: 3 if name == "lstm" else 2]
    scratch = 4 * hidden * _SCRATCH[step.op]
    b.call(step, f"micro_{name}_f32", "micro_recurrent", fields, outputs=outputs, scratch=scratch)
