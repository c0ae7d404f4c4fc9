"""Sums over processes that are made beside other work: one op starts them, another gives them.

Both are effects that keep their order among themselves; where the compiler puts the first one is in
`compile/passes/early.py`. They have no gradient: where one is asked for, `all_reduce_sum` has.
"""

from collections.abc import Sequence

import numpy as np

from mycelia.engine import _C
from mycelia.engine.backends import registry
from mycelia.engine.base import dtypes, errors
from mycelia.engine.communication import world
from mycelia.engine.communication.reductions import array_of
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op

__all__: list[str] = []

GROUP = world.WORLDS[0]


@op(effect=True, on_host=True, nondiff=True)
def start_sums(
    x: "tensors", *, divisor: "float" = 1.0, name: "str" = "", scatters: "bool" = False, group: "str" = GROUP
):
    """The number of sums of tensors over all members, which are made from now on, and divided by `divisor`.

    All members start the same sums in the same order; `name` is compared, too. `scatters`: each member gets
    its part of the sum of one tensor, which is as many equal parts as there are members.
    Shapes: x any -> int64 [].  dtypes: one of floating numbers.  Sums are made in the order of the ranks.
    """


@start_sums.infer
def start_sums(x, *, divisor, name, scatters, group):
    dtype = x[0].dtype
    if not dtype.is_floating or any(one.dtype is not dtype for one in x):
        told = ", ".join(str(one.dtype) for one in x)
        raise errors.type_error("all_reduce", f"sums together are of one floating dtype, but got {told}")
    return TensorType(dtypes.int64, ())


@start_sums.on_tensors
def start_sums(x, *, divisor, name, scatters, group):
    communicator, device = world.group("all_reduce", group), registry.target().device
    if device:
        given = [array_of(tensor) for tensor in x]
        number = communicator.start_reduction(given, "sum", divisor, name, scatters)
    else:
        number = communicator.start_sums(x if type(x) is tuple else tuple(x), divisor, name, scatters)
    made = _C.from_array(np.array(number, np.int64), dtypes.int64, False)
    return _C.on_device(made, device) if device else made


@op(outputs=None, effect=True, on_host=True, nondiff=True)
def finish_sums(number, *, dtype: "dtype", shapes: "code", group: "str" = GROUP):
    """The sums that `start_sums` has given this number, once.

    `shapes`: of each result how many axes it has, then their sizes.
    Shapes: number [] -> those of what was summed.
    """


@finish_sums.infer
def finish_sums(number, *, dtype, shapes, group):
    found, at = [], 0
    while at < len(shapes):
        end = at + 1 + shapes[at]
        found.append(TensorType(dtype, tuple(shapes[at + 1 : end])))
        at = end
    return tuple(found)


@finish_sums.on_tensors
def finish_sums(number, *, dtype, shapes, group):
    found = world.group("all_reduce", group).finish_sums(number.item())
    device = registry.target().device
    return tuple([_C.on_device(tensor, device) for tensor in found]) if device else found


def sums(number, dtype, shapes: Sequence, group: str) -> tuple:
    """The sums that `start_sums` has given this number, of this dtype and these shapes."""
    code: list[int] = []
    for shape in shapes:
        code += [len(shape), *shape]
    return finish_sums(number, dtype=dtype, shapes=code, group=group)
