"""Copies from one device's memory to another's, and parts of a graph that a backend compiled as a whole."""

import numpy as np

from mycelia.engine.backends import registry
from mycelia.engine.base import config, dtypes, errors
from mycelia.engine.ir.interpret import evaluate
from mycelia.engine.ir.types import TensorType
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


def memory_of(owner: str, name: str) -> int:
    """The number of the memory of the device called `name`. `owner`: for messages.

    Errors: ValueError for what is no device, RuntimeError for one that no backend with memory of its own
    serves.
    """
    kinds = ("CPU", "GPU", "Ascend", *sorted(registry.available()))
    kind = name.partition(":")[0].lower() if isinstance(name, str) else name
    if kind not in map(str.lower, kinds):
        raise errors.one_of(name, kinds, subject=owner, what="the device")
    served = kind == registry.HOST or config.DEVICE_ALIASES.get(kind, kind) in registry.available()
    number = registry.device_number(name) if served else 0
    if kind != registry.HOST and number == 0:
        raise errors.error(
            errors.MyceliaRuntimeError, owner, f"there is no backend here whose memory is that of {name}"
        )
    return number


def on_device(owner: str, tensor, name: str):
    """A copy of `tensor` on the device called `name`; gradients flow back. Errors: see `memory_of`."""
    memory_of(owner, name)
    return device_copy(tensor, device=name)


@op(name="overflow_status", nondiff=True, effect=True, infer=lambda after: TensorType(dtypes.bool_, ()))
def overflow_status(after: "tensors"):
    """Whether the overflow status of the device is set, when `after` are computed; it is cleared.

    False on devices that have none. Shapes: any -> [].  dtypes: any -> bool.
    """
    return np.zeros((), np.bool_)


@overflow_status.samples
def overflow_status(rand):
    yield [rand(2, 3), rand(4)], dict(_value=False)  # what a device says depends on what it did before


@op(name="subgraph", outputs=None, nondiff=True)
def subgraph(inputs: "tensors", *, graph: "any", backend: "str"):
    """The results of `graph`, which `backend` claimed and compiles as a whole (`Backend.claims`)."""


@subgraph.infer
def subgraph(inputs, *, graph, backend):
    return graph.output_types


@subgraph.on_tensors
def subgraph(inputs, *, graph, backend):
    return tuple(evaluate(graph, inputs))


__all__: list[str] = []
