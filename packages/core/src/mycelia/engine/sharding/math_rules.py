"""Rules of products and reductions."""

from __future__ import annotations

from mycelia.engine.ir.graph import Node
from mycelia.engine.sharding.rules import Rule, axes_of, numbered, rule, shapes

# ---- products ----------------------------------------------------------------------------------------------


def _matrix(first, second, turned):
    return ((second,), (first,)) if turned else ((first,), (second,))


@rule("mat_mul", "batch_matmul")
def _product(node: Node) -> Rule:
    x, y = shapes(node)
    sizes = node.outputs[0].type.shape
    lead = len(sizes) - 2

    def batch(shape):
        first = lead - (len(shape) - 2)
        return tuple((first + i,) if n == sizes[first + i] else () for i, n in enumerate(shape[:-2]))

    return Rule(
        [
            (*batch(x), *_matrix("m", "k", node.attrs["transpose_a"])),
            (*batch(y), *_matrix("k", "n", node.attrs["transpose_b"])),
        ],
        [(*numbered(lead), ("m",), ("n",))],
    )


@rule("dense")
def _dense(node: Node) -> Rule:
    lead = numbered(node.inputs[0].type.rank - 1)
    bias = None if node.inputs[2] is None else (("n",),)

    def emit(rewriter, division, operands):
        x, w, b = operands
        if division.mesh.index(division.atoms("k")):
            b = None  # it is added once
        return rewriter.emit(node.op, [x, w, b])

    return Rule([(*lead, ("k",)), (("n",), ("k",)), bias], [(*lead, ("n",))], emit=emit)


@rule("bias_add")
def _bias_add(node: Node) -> Rule:
    rank = node.inputs[0].type.rank
    channel = rank - 1 if node.attrs["data_format"] == "NHWC" else 1
    return Rule([numbered(rank), ((channel,),)], [numbered(rank)])


# ---- reductions --------------------------------------------------------------------------------------------


def _reduced(rank: int, gone, keeps: bool):
    return tuple(() if i in gone else (i,) for i in range(rank) if keeps or i not in gone)


def _reduction(axis: str, keeps: str, how: str, is_mean: bool = False):
    def made(node: Node) -> Rule:
        rank = node.inputs[0].type.rank
        gone = axes_of(node.attrs[axis], rank)

        def emit(rewriter, division, operands):
            found = rewriter.one(node.op, operands, **node.attrs)
            parts = division.parts(*gone)
            if is_mean and parts > 1:
                found = rewriter.one("mul", [found, rewriter.number(1 / parts, found.type.dtype)])
            return [found]

        whole = is_mean and not node.outputs[0].type.dtype.is_floating  # a mean of integers is cut once
        axes = numbered(rank, gone if whole else ())
        return Rule([axes], [_reduced(rank, gone, node.attrs[keeps])], how=how, emit=emit)

    return made


rule("sum")(_reduction("dim", "keepdim", "sum"))
rule("mean")(_reduction("axis", "keep_dims", "sum", is_mean=True))
rule("reduce_max")(_reduction("axis", "keepdims", "max"))
rule("reduce_min")(_reduction("axis", "keepdims", "min"))
rule("prod")(_reduction("axis", "keep_dims", "prod"))
rule("all")(_reduction("axis", "keep_dims", "min"))
rule("any")(_reduction("axis", "keep_dims", "max"))
