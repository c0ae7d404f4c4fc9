"""Collectives of a group of one: each process gets what it gives.

Tensors are written in place, as by those of many processes. With `async_op` the result is a handle to wait
for; here all is done before it is returned.
"""

from __future__ import annotations

import copy

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.mint.distributed.groups import check_group, check_rank
from mycelia.faces.stand_ins.communication.handle import done

_REDUCTIONS = ("sum", "prod", "max", "min", "avg")


def check_tensor(owner: str, name: str, value) -> None:
    if not is_tensor(value):
        raise errors.type_error(owner, f"{name} must be a Tensor, but got {type(value).__name__}")


def _begin(owner: str, group, async_op=False, **tensors) -> None:
    """Check the group and the tensors of one operation."""
    for name, value in tensors.items():
        check_tensor(owner, name, value)
    if not isinstance(async_op, bool):
        raise errors.type_error(owner, f"async_op must be a bool, but got {async_op!r}")
    check_group(owner, group)


def _only(owner: str, name: str, values):
    """The one entry of a list that has an entry for each process."""
    if not isinstance(values, (list, tuple)) or len(values) != 1:
        raise errors.type_error(
            owner, f"{name} must be a list of 1 entry, one a process, but got {values!r:.60}"
        )
    return values[0]


def _check_reduction(owner: str, op) -> None:
    if op not in _REDUCTIONS:
        raise errors.type_error(owner, f"op must be one of {list(_REDUCTIONS)}, but got {op!r}")


def _write(owner: str, target, source) -> None:
    """The elements of `source` into `target`, which has as many of the same dtype."""
    if target.size != source.size or target.dtype is not source.dtype:
        raise errors.value_error(
            owner,
            f"the output is {target.dtype} {list(target.shape)}, but the input is {source.dtype} "
            f"{list(source.shape)}",
        )
    target.assign_value(ops.reshape(source, target.shape))


# ---------------------------------------------------------------------------------------------------- tensors


def barrier(group=None, async_op=False, device_ids=None):
    """Wait until all processes of the group are here."""
    del device_ids  # one process, one device
    _begin("barrier", group, async_op)
    return done(async_op)


def broadcast(tensor, src, group=None, async_op=False):
    """The tensor of process `src` to all."""
    _begin("broadcast", group, async_op, tensor=tensor)
    check_rank("broadcast", "src", src)
    return done(async_op)


def all_reduce(tensor, op="sum", group=None, async_op=False):
    """Sum (or 'prod', 'max', 'min', 'avg') of the tensors of all processes, in place."""
    _check_reduction("all_reduce", op)
    _begin("all_reduce", group, async_op, tensor=tensor)
    return done(async_op)


def reduce(tensor, dst, op="sum", group=None, async_op=False):
    """`all_reduce` whose result only process `dst` gets."""
    _check_reduction("reduce", op)
    _begin("reduce", group, async_op, tensor=tensor)
    check_rank("reduce", "dst", dst)
    return done(async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """The tensors of all processes, into `tensor_list`."""
    _begin("all_gather", group, async_op, tensor=tensor)
    _write("all_gather", _only("all_gather", "tensor_list", tensor_list), tensor)
    return done(async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The tensors of all processes one after the other, into `output_tensor`."""
    owner = "all_gather_into_tensor"
    _begin(owner, group, async_op, output_tensor=output_tensor, input_tensor=input_tensor)
    _write(owner, output_tensor, input_tensor)
    return done(async_op)


def all_gather_into_tensor_uneven(output, input, output_split_sizes=None, group=None, async_op=False):
    """`all_gather_into_tensor` of tensors of different lengths `output_split_sizes`."""
    owner = "all_gather_into_tensor_uneven"
    _begin(owner, group, async_op, output=output, input=input)
    _check_splits(owner, "output_split_sizes", output_split_sizes, output)
    _write(owner, output, input)
    return done(async_op)


def _check_splits(owner: str, name: str, sizes, tensor) -> None:
    if sizes is not None and _only(owner, name, sizes) != tensor.shape[0]:
        raise errors.value_error(owner, f"{name} must be [{tensor.shape[0]}], but is {sizes}")


def gather(tensor, gather_list, dst=0, group=None, async_op=False):
    """The tensors of all processes, into `gather_list` of process `dst`."""
    _begin("gather", group, async_op, tensor=tensor)
    check_rank("gather", "dst", dst)
    _write("gather", _only("gather", "gather_list", gather_list), tensor)
    return done(async_op)


def scatter(tensor, scatter_list, src=0, group=None, async_op=False):
    """Entry i of `scatter_list` of process `src` to process i."""
    _begin("scatter", group, async_op, tensor=tensor)
    check_rank("scatter", "src", src)
    _write("scatter", tensor, _only("scatter", "scatter_list", scatter_list))
    return done(async_op)


def reduce_scatter(output, input_list, op="sum", group=None, async_op=False):
    """Sum over the processes of the lists; process i gets entry i."""
    _check_reduction("reduce_scatter", op)
    _begin("reduce_scatter", group, async_op, output=output)
    _write("reduce_scatter", output, _only("reduce_scatter", "input_list", input_list))
    return done(async_op)


def reduce_scatter_tensor(output, input, op="sum", group=None, async_op=False):
    """Sum over the processes of `input`; process i gets its i-th part."""
    _check_reduction("reduce_scatter_tensor", op)
    _begin("reduce_scatter_tensor", group, async_op, output=output, input=input)
    _write("reduce_scatter_tensor", output, input)
    return done(async_op)


def reduce_scatter_tensor_uneven(output, input, input_split_sizes=None, op="sum", group=None, async_op=False):
    """`reduce_scatter_tensor` with parts of the lengths `input_split_sizes`."""
    owner = "reduce_scatter_tensor_uneven"
    _check_reduction(owner, op)
    _begin(owner, group, async_op, output=output, input=input)
    _check_splits(owner, "input_split_sizes", input_split_sizes, input)
    _write(owner, output, input)
    return done(async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Entry i of the list of process j becomes entry j of the list of process i."""
    _begin("all_to_all", group, async_op)
    given = _only("all_to_all", "input_tensor_list", input_tensor_list)
    _write("all_to_all", _only("all_to_all", "output_tensor_list", output_tensor_list), given)
    return done(async_op)


def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """`all_to_all` of the parts of one tensor."""
    owner = "all_to_all_single"
    _begin(owner, group, async_op, output=output, input=input)
    _check_splits(owner, "output_split_sizes", output_split_sizes, output)
    _check_splits(owner, "input_split_sizes", input_split_sizes, input)
    _write(owner, output, input)
    return done(async_op)


# ---------------------------------------------------------------------------------------------------- objects


def all_gather_object(object_list, obj, group=None):
    """The objects of all processes, into `object_list`."""
    check_group("all_gather_object", group)
    _only("all_gather_object", "object_list", object_list)
    object_list[0] = copy.deepcopy(obj)


def broadcast_object_list(object_list, src=0, group=None, device=None):
    """The objects of process `src` to all, in place."""
    del object_list, device  # this process has the objects
    check_group("broadcast_object_list", group)
    check_rank("broadcast_object_list", "src", src)


def gather_object(obj, object_gather_list=None, dst=0, group=None):
    """The objects of all processes, into `object_gather_list` of process `dst`."""
    check_group("gather_object", group)
    check_rank("gather_object", "dst", dst)
    _only("gather_object", "object_gather_list", object_gather_list)
    object_gather_list[0] = copy.deepcopy(obj)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list, src=0, group=None):
    """Entry i of the list of process `src` becomes the first of the output list of process i."""
    owner = "scatter_object_list"
    check_group(owner, group)
    check_rank(owner, "src", src)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise errors.type_error(owner, "scatter_object_output_list must be a list that is not empty")
    given = _only(owner, "scatter_object_input_list", scatter_object_input_list)
    scatter_object_output_list[0] = copy.deepcopy(given)


def set_comm_ops_inplace(is_enable: bool, func_list: list | None = None) -> None:
    """Whether collectives of `mycelia.ops` write into the tensors they are given: those of one process do.

    Errors: TypeError unless a bool and a list of names or None.
    """
    if not isinstance(is_enable, bool):
        raise errors.type_error("set_comm_ops_inplace", f"is_enable must be a bool, but got {is_enable!r}")
    if func_list is not None and not isinstance(func_list, list):
        raise errors.type_error("set_comm_ops_inplace", f"func_list must be a list, but got {func_list!r}")
