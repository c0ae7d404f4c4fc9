"""Collectives by the names of mint: results are written into tensors that are given.

With `async_op` the result is a handle to wait for; all is done before it is returned. Ranks are those of the
world. What only one process gets is not written by the others.
"""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.communication import as_bytes, from_bytes, world
from mycelia.engine.ops.communication import collectives
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.mint.distributed.groups import check_group, place_of
from mycelia.faces.stand_ins.communication.handle import done
from mycelia.ops import transfers

_REDUCTIONS = ("sum", "prod", "max", "min", "avg")


def check_tensor(owner: str, name: str, value) -> None:
    if not is_tensor(value):
        raise errors.type_error(owner, f"{name} must be a Tensor, but got {type(value).__name__}")


def _begin(owner: str, group, async_op=False, **tensors) -> str:
    """Check the tensors of one operation; the name of its group."""
    for name, value in tensors.items():
        check_tensor(owner, name, value)
    if not isinstance(async_op, bool):
        raise errors.type_error(owner, f"async_op must be a bool, but got {async_op!r}")
    return check_group(owner, group)


def _each(owner: str, name: str, values, group: str) -> list:
    """A list that has an entry for each process."""
    size = world.size(owner, group)
    if not isinstance(values, (list, tuple)) or len(values) != size:
        raise errors.type_error(
            owner, f"{name} must be a list of {size} entries, one a process, but got {values!r:.60}"
        )
    return list(values)


def _check_reduction(owner: str, op) -> None:
    if op not in _REDUCTIONS:
        raise errors.type_error(owner, f"op must be one of {list(_REDUCTIONS)}, but got {op!r}")


def _write(owner: str, target, source) -> None:
    """The elements of `source` into `target`, which has as many of the same dtype."""
    _fits(owner, target, source.size, source)
    target.assign_value(ops.reshape(source, target.shape))


def _fits(owner: str, target, size: int, source) -> None:
    """Errors: ValueError unless `target` takes `size` elements of the dtype of `source`."""
    if target.size != size or target.dtype is not source.dtype:
        raise errors.value_error(
            owner,
            f"the output is {target.dtype} {list(target.shape)}, but {size} elements of {source.dtype} come",
        )


def _is(owner: str, place: int, group: str) -> bool:
    return world.group(owner, group).rank == place


def _joined(tensors):
    """Tensors of one shape, one after the other along the first axis; numbers as vectors of one."""
    return ops.cat([t.reshape((1,)) if t.ndim == 0 else t for t in tensors])


# ---------------------------------------------------------------------------------------------------- tensors


def barrier(group=None, async_op=False, device_ids=None):
    """Wait until all processes of the group are here."""
    del device_ids  # a process has one device
    collectives.barrier(_begin("barrier", group, async_op))
    return done(async_op)


def broadcast(tensor, src, group=None, async_op=False):
    """The tensor of process `src` to all."""
    group = _begin("broadcast", group, async_op, tensor=tensor)
    root = place_of("broadcast", "src", src, group)
    tensor.assign_value(collectives.broadcast_from(tensor, root=root, group=group))
    return done(async_op)


def all_reduce(tensor, op="sum", group=None, async_op=False):
    """Sum (or 'prod', 'max', 'min', 'avg') of the tensors of all processes, in place."""
    _check_reduction("all_reduce", op)
    group = _begin("all_reduce", group, async_op, tensor=tensor)
    tensor.assign_value(collectives.all_reduce(tensor, op, group))
    return done(async_op)


def reduce(tensor, dst, op="sum", group=None, async_op=False):
    """`all_reduce` whose result only process `dst` gets."""
    _check_reduction("reduce", op)
    group = _begin("reduce", group, async_op, tensor=tensor)
    place = place_of("reduce", "dst", dst, group)
    found = collectives.reduce(tensor, place, op, group)
    if _is("reduce", place, group):
        tensor.assign_value(found)
    return done(async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """The tensors of all processes, into `tensor_list`."""
    owner = "all_gather"
    group = _begin(owner, group, async_op, tensor=tensor)
    targets = _each(owner, "tensor_list", tensor_list, group)
    for target in targets:
        _fits(owner, target, tensor.size, tensor)
    found = collectives.all_gather(tensor.reshape((1, *tensor.shape)), group)
    for i, target in enumerate(targets):
        _write(owner, target, found[i])
    return done(async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The tensors of all processes one after the other, into `output_tensor`."""
    owner = "all_gather_into_tensor"
    group = _begin(owner, group, async_op, output_tensor=output_tensor, input_tensor=input_tensor)
    _fits(owner, output_tensor, input_tensor.size * world.size(owner, group), input_tensor)
    _write(owner, output_tensor, collectives.all_gather(_joined([input_tensor]), group))
    return done(async_op)


def all_gather_into_tensor_uneven(output, input, output_split_sizes=None, group=None, async_op=False):
    """`all_gather_into_tensor` of tensors of different lengths `output_split_sizes`."""
    owner = "all_gather_into_tensor_uneven"
    group = _begin(owner, group, async_op, output=output, input=input)
    if output_split_sizes is None:
        return all_gather_into_tensor(output, input, group, async_op)
    if sum(output_split_sizes) != output.shape[0]:
        raise errors.value_error(
            owner, f"output_split_sizes {list(output_split_sizes)} do not make up {output.shape[0]} rows"
        )
    _write(owner, output, transfers.gather_uneven(owner, input, output_split_sizes, group))
    return done(async_op)


def gather(tensor, gather_list, dst=0, group=None, async_op=False):
    """The tensors of all processes, into `gather_list` of process `dst`."""
    group = _begin("gather", group, async_op, tensor=tensor)
    place, size = place_of("gather", "dst", dst, group), world.size("gather", group)
    mine = _is("gather", place, group)
    targets = _each("gather", "gather_list", gather_list, group) if mine else []
    for target in targets:
        _fits("gather", target, tensor.size, tensor)
    rows = tensor.reshape((1, *tensor.shape))
    found = collectives.gather_to(rows, root=place, size=size, group=group)
    for i, target in enumerate(targets):
        _write("gather", target, found[i])
    return done(async_op)


def scatter(tensor, scatter_list, src=0, group=None, async_op=False):
    """Entry i of `scatter_list` of process `src` to process i."""
    group = _begin("scatter", group, async_op, tensor=tensor)
    root, size = place_of("scatter", "src", src, group), world.size("scatter", group)
    if _is("scatter", root, group):
        given = _each("scatter", "scatter_list", scatter_list, group)
        for one in given:
            check_tensor("scatter", "scatter_list", one)
            _fits("scatter", tensor, one.size, one)
        rows = ops.stack([one.reshape(tensor.shape) for one in given])
    else:
        rows = ops.zeros((size, *tensor.shape), tensor.dtype)
    _write("scatter", tensor, collectives.scatter_from(rows, root=root, size=size, group=group))
    return done(async_op)


def reduce_scatter(output, input_list, op="sum", group=None, async_op=False):
    """Sum over the processes of the lists; process i gets entry i."""
    owner = "reduce_scatter"
    _check_reduction(owner, op)
    group = _begin(owner, group, async_op, output=output)
    given = _each(owner, "input_list", input_list, group)
    for one in given:
        check_tensor(owner, "input_list", one)
        _fits(owner, output, one.size, one)
    _write(owner, output, collectives.reduce_scatter(ops.stack(given), op, group))
    return done(async_op)


def reduce_scatter_tensor(output, input, op="sum", group=None, async_op=False):
    """Sum over the processes of `input`; process i gets its i-th part."""
    owner = "reduce_scatter_tensor"
    _check_reduction(owner, op)
    group = _begin(owner, group, async_op, output=output, input=input)
    _fits(owner, output, input.size // world.size(owner, group), input)
    _write(owner, output, collectives.reduce_scatter(input, op, group))
    return done(async_op)


def reduce_scatter_tensor_uneven(output, input, input_split_sizes=None, op="sum", group=None, async_op=False):
    """`reduce_scatter_tensor` with parts of the lengths `input_split_sizes`."""
    owner = "reduce_scatter_tensor_uneven"
    _check_reduction(owner, op)
    group = _begin(owner, group, async_op, output=output, input=input)
    if input_split_sizes is None:
        return reduce_scatter_tensor(output, input, op, group, async_op)
    _write(owner, output, transfers.reduce_scatter_uneven(owner, input, input_split_sizes, op, group))
    return done(async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Entry i of the list of process j becomes entry j of the list of process i."""
    owner = "all_to_all"
    group = _begin(owner, group, async_op)
    given = _each(owner, "input_tensor_list", input_tensor_list, group)
    targets = _each(owner, "output_tensor_list", output_tensor_list, group)
    for name, values in (("input_tensor_list", given), ("output_tensor_list", targets)):
        for one in values:
            check_tensor(owner, name, one)
    for target, found in zip(
        targets, transfers.exchange_lists(owner, given, [t.shape for t in targets], group)
    ):
        _write(owner, target, found)
    return done(async_op)


def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """`all_to_all` of the parts of one tensor."""
    owner = "all_to_all_single"
    group = _begin(owner, group, async_op, output=output, input=input)
    found = transfers.exchange_rows(
        owner, input, output.shape[0], output_split_sizes, input_split_sizes, group
    )
    _write(owner, output, found)
    return done(async_op)


# ---------------------------------------------------------------------------------------------------- objects


def all_gather_object(object_list, obj, group=None):
    """The objects of all processes, into `object_list`."""
    owner = "all_gather_object"
    group = check_group(owner, group)
    _each(owner, "object_list", object_list, group)
    object_list[:] = world.group(owner, group).all_gather_object(obj)


def broadcast_object_list(object_list, src=0, group=None, device=None):
    """The objects of process `src` to all, in place; the lists are of one length."""
    del device  # objects lie in the host's memory
    owner = "broadcast_object_list"
    group = check_group(owner, group)
    root = place_of(owner, "src", src, group)
    communicator = world.group(owner, group)
    mine = communicator.rank == root
    found = communicator.scatter([as_bytes(object_list)] * communicator.size if mine else None, root)
    values = from_bytes(found)
    if len(values) != len(object_list):
        raise errors.value_error(
            owner, f"the list has {len(object_list)} entries, but {len(values)} were sent"
        )
    if not mine:
        object_list[:] = values


def gather_object(obj, object_gather_list=None, dst=0, group=None):
    """The objects of all processes, into `object_gather_list` of process `dst`."""
    owner = "gather_object"
    group = check_group(owner, group)
    place = place_of(owner, "dst", dst, group)
    communicator = world.group(owner, group)
    if communicator.rank == place:
        _each(owner, "object_gather_list", object_gather_list, group)
    found = communicator.gather(as_bytes(obj), place, uneven=True)
    if found is not None:
        object_gather_list[:] = map(from_bytes, found)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list, src=0, group=None):
    """Entry i of the list of process `src` becomes the first of the output list of process i."""
    owner = "scatter_object_list"
    group = check_group(owner, group)
    root = place_of(owner, "src", src, group)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise errors.type_error(owner, "scatter_object_output_list must be a list that is not empty")
    communicator = world.group(owner, group)
    given = None
    if communicator.rank == root:
        values = _each(owner, "scatter_object_input_list", scatter_object_input_list, group)
        given = [as_bytes(value) for value in values]
    scatter_object_output_list[0] = from_bytes(communicator.scatter(given, root))


def set_comm_ops_inplace(is_enable: bool, func_list: list | None = None) -> None:
    """Whether collectives of `mycelia.ops` write into the tensors they are given: they do.

    Errors: TypeError unless a bool and a list of names or None.
    """
    if not isinstance(is_enable, bool):
        raise errors.type_error("set_comm_ops_inplace", f"is_enable must be a bool, but got {is_enable!r}")
    if func_list is not None and not isinstance(func_list, list):
        raise errors.type_error("set_comm_ops_inplace", f"func_list must be a list, but got {func_list!r}")
