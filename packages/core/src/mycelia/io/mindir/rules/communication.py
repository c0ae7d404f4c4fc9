"""Rules of collectives. Their groups and ranks are those of the program that loads the file."""

from __future__ import annotations

from mycelia.engine.communication import world
from mycelia.io.mindir.rules.table import Unsupported, result_type, rule


def _reduction(node) -> str:
    """Errors: Unsupported for an average, which MindSpore's operators have not."""
    reduction = node.attrs["reduction"]
    if reduction == "avg":
        raise Unsupported(f"{node.op.name} of an average: reduce the sum, and divide it")
    return reduction


@rule("all_reduce_sum", "all_reduce_pick")
def _all_reduce(w, node, inputs):
    given = {"op": _reduction(node), "group": node.attrs["group"]}
    return w.primitive("AllReduce", *inputs, out=result_type(node), **given)


@rule("reduce_scatter_sum")
def _reduce_scatter(w, node, inputs):
    given = {"op": _reduction(node), "group": node.attrs["group"], "rank_size": node.attrs["size"]}
    return w.primitive("ReduceScatter", *inputs, out=result_type(node), **given)


@rule("gather_all")
def _all_gather(w, node, inputs):
    given = {"group": node.attrs["group"], "rank_size": node.attrs["size"]}
    return w.primitive("AllGather", *inputs, out=result_type(node), **given)


@rule("broadcast_from")
def _broadcast(w, node, inputs):
    group, out = node.attrs["group"], result_type(node)
    root = world.ranks_of("Broadcast", group)[node.attrs["root"]]
    sent = w.primitive("Broadcast", w.tuple(inputs), out=(out,), root_rank=root, group=group)
    return w.item(sent, 0, out)
