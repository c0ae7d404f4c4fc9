"""Tensors of a synchronous dump as they lie in a device, in its own layouts: ``"trans_flag": false``."""

from __future__ import annotations

from mycelia.debug.dump.files import PLAIN
from mycelia.debug.dump.groups import Group
from mycelia.engine.backends import Buffer, registry
from mycelia.engine.base import dtypes
from mycelia.engine.tensors.tensor import Tensor


def laid_out(group: Group) -> list[Group]:
    """`group`, or a group for each of its tensors if one of them lies in a layout of the device's own."""
    found = [_device_form(t) for t in group.inputs], [_device_form(t) for t in group.outputs]
    if all(form is None for forms in found for form in forms):
        return [group]
    parts: list[Group] = []
    for place, (tensors, forms) in enumerate(zip((group.inputs, group.outputs), found)):
        for slot, (tensor, form) in enumerate(zip(tensors, forms)):
            if tensor is None:
                continue
            layout, shown = form or (PLAIN, tensor)
            alone: list[Tensor | None] = [*[None] * slot, shown]
            inputs, outputs = ([], alone) if place else (alone, [])
            stamp = group.stamp + len(parts)
            parts.append(Group(group.kind, group.name, stamp, inputs, outputs, layout=layout))
    return parts


def _device_form(tensor: Tensor | None) -> tuple[str, Tensor] | None:
    """The layout of a tensor and a tensor of what lies there; None if that is the plain one."""
    backend = registry.target().backend
    if tensor is None or not tensor._device or tensor._device != backend.device:
        return None
    layout, data = backend.contents(Buffer(tensor.data_ptr(), tensor.dtype, tensor.shape))
    if layout == PLAIN:
        return None
    if tensor.dtype is dtypes.bfloat16:
        return layout, Tensor(dtypes.from_bfloat16_bits(data), dtype=dtypes.bfloat16)
    return layout, Tensor(data)
