"""Rules of ops that rearrange, join and pick."""

from __future__ import annotations

from mycelia.engine.ir.graph import Node
from mycelia.engine.sharding.rules import Rule, aligned, axes_of, broadcast, numbered, regrouped, rule

rule("masked_fill")(broadcast)


@rule("transpose")
def _transpose(node: Node) -> Rule:
    order = axes_of(node.attrs["dims"], node.inputs[0].type.rank) if node.attrs["dims"] else ()
    return Rule([numbered(len(order))], [tuple((d,) for d in order)])


@rule("reshape", "squeeze", "expand_dims")
def _reshape(node: Node) -> Rule:
    before, after, sizes = regrouped(node.inputs[0].type.shape, node.outputs[0].type.shape)

    def emit(rewriter, division, operands):
        return rewriter.emit("reshape", operands[:1], shape=division.shape())

    return Rule([before], [after], sizes=sizes, emit=emit)


@rule("broadcast_to")
def _broadcast_to(node: Node) -> Rule:
    sizes = node.outputs[0].type.shape
    axes = aligned(node.inputs[0].type.shape, len(sizes), sizes)
    return Rule([axes], [numbered(len(sizes))], attrs=lambda division: dict(shape=division.shape()))


@rule("sum_to")
def _sum_to(node: Node) -> Rule:
    given, shape = node.inputs[0].type.shape, node.outputs[0].type.shape
    axes = aligned(shape, len(given), given)
    return Rule([numbered(len(given))], [axes], attrs=lambda division: dict(shape=division.shape()))


@rule("concat")
def _concat(node: Node) -> Rule:
    axes = numbered(node.outputs[0].type.rank, axes_of(node.attrs["axis"], node.outputs[0].type.rank))
    return Rule([axes] * len(node.inputs), [axes])


@rule("split")
def _split(node: Node) -> Rule:
    axes = numbered(node.inputs[0].type.rank, axes_of(node.attrs["axis"], node.inputs[0].type.rank))
    return Rule([axes], [axes] * len(node.outputs))


@rule("stack")
def _stack(node: Node) -> Rule:
    rank = node.outputs[0].type.rank
    at = node.attrs["axis"] % rank
    axes = numbered(rank - 1)
    return Rule([axes] * len(node.inputs), [(*axes[:at], (), *axes[at:])])


@rule("unstack")
def _unstack(node: Node) -> Rule:
    rank = node.inputs[0].type.rank
    at = node.attrs["axis"] % rank
    axes = numbered(rank, (at,))
    return Rule([axes], [axes[:at] + axes[at + 1 :]] * len(node.outputs))


@rule("tile")
def _tile(node: Node) -> Rule:
    given, made = node.inputs[0].type.shape, node.outputs[0].type.shape
    axes = aligned(given, len(made), made)
    repeated = {i for i, n in enumerate(made) if i < len(made) - len(given) or n != given[i - len(made)]}
    return Rule([axes], [numbered(len(made), repeated)])


@rule("flip", "roll")
def _flip(node: Node) -> Rule:
    rank = node.inputs[0].type.rank
    axes = numbered(rank, axes_of(node.attrs["dims"], rank))
    return Rule([axes], [axes])


@rule("pad_constant")
def _pad_constant(node: Node) -> Rule:
    pads = node.attrs["pads"]
    axes = numbered(
        node.inputs[0].type.rank, [i for i in range(len(pads) // 2) if pads[2 * i] or pads[2 * i + 1]]
    )
    return Rule([axes], [axes])


@rule("tril", "triu")
def _triangle(node: Node) -> Rule:
    rank = node.inputs[0].type.rank
    axes = numbered(rank, (rank - 2, rank - 1))
    return Rule([axes], [axes])


@rule("one_hot")
def _one_hot(node: Node) -> Rule:
    rank = node.outputs[0].type.rank
    at = node.attrs["axis"] % rank
    axes = numbered(rank - 1)
    return Rule([axes, (), ()], [(*axes[:at], (), *axes[at:])])


# ---- picked by positions -----------------------------------------------------------------------------------


def _picked(node: Node, table: tuple[int, ...], ids: tuple[int, ...], axis: int, batch: int):
    """Labels of a table, of positions along its axis, and of what they pick."""
    first = tuple((f"b{i}",) for i in range(batch))
    before = (*first, *((f"t{i}",) for i in range(batch, axis)))
    rest = tuple((f"t{i}",) for i in range(axis + 1, len(table)))
    places = tuple((f"i{i}",) for i in range(batch, len(ids)))
    row: tuple = () if batch else ("rows",)  # the table is cut along it
    return (*before, row, *rest), (*first, *places), (*before, *places, *rest)


def _own_rows(rewriter, division, ids, count):
    """Positions in this rank's rows of a table of `count` rows, and which are there. One that the whole
    table does not have is left as it is, for the op to complain of.
    """
    kind = ids.type.dtype
    rows = count // division.parts("rows")

    def number(value):
        return rewriter.number(value, kind)

    at = rewriter.one(
        "where", [rewriter.one("less", [ids, number(0)]), rewriter.one("add", [ids, number(count)]), ids]
    )
    own = rewriter.one("sub", [at, number(rows * division.mesh.index(division.atoms("rows")))])
    here = rewriter.one(
        "logical_and",
        [rewriter.one("greater_equal", [own, number(0)]), rewriter.one("less", [own, number(rows)])],
    )
    known = rewriter.one(
        "logical_and",
        [rewriter.one("greater_equal", [at, number(0)]), rewriter.one("less", [at, number(count)])],
    )
    safe = rewriter.one("where", [known, number(0), ids])
    return rewriter.one("where", [here, own, safe]), here


def _only(rewriter, here, rows, axis, rank):
    """`rows` where they are this rank's, else zeros; `here` are axes from `axis` on."""
    shape = (1,) * axis + here.type.shape + (1,) * (rank - axis - here.type.rank)
    here = rewriter.one("reshape", [here], shape=shape)
    return rewriter.one("where", [here, rows, rewriter.number(0, rows.type.dtype)])


@rule("gather", "embedding")
def _gather(node: Node) -> Rule:
    """Rows of a table that is cut along them are picked where they are; elsewhere they are zeros, and all
    are added.
    """
    is_gather = node.op.definition.name == "gather"
    table, ids = (0, 1) if is_gather else (1, 0)
    shape, positions = node.inputs[table].type.shape, node.inputs[ids].type.shape
    axis = node.attrs["axis"] % len(shape) if is_gather else 0
    batch = node.attrs["batch_dims"] % (len(positions) + 1) if is_gather else 0
    of_table, of_ids, made = _picked(node, shape, positions, axis, batch)

    def emit(rewriter, division, operands):
        own, here = (
            _own_rows(rewriter, division, operands[ids], shape[axis])
            if cut(division)
            else (operands[ids], None)
        )
        given = [operands[table], own] if is_gather else [own, operands[table]]
        attrs = dict(node.attrs) if is_gather or here is None else {}
        found = rewriter.one(node.op, given, **attrs)
        return [found if here is None else _only(rewriter, here, found, axis, len(made))]

    def cut(division):
        return division.parts("rows") > 1

    return Rule([of_table, of_ids] if is_gather else [of_ids, of_table], [made], emit=emit)


@rule("gather_grad")
def _gather_grad(node: Node) -> Rule:
    shape, positions = node.outputs[0].type.shape, node.inputs[1].type.shape
    axis = node.attrs["axis"] % len(shape)
    batch = node.attrs["batch_dims"] % (len(positions) + 1)
    of_table, of_ids, picked = _picked(node, shape, positions, axis, batch)

    def emit(rewriter, division, operands):
        rows, ids = operands
        if division.parts("rows") > 1:
            ids, here = _own_rows(rewriter, division, ids, shape[axis])
            rows = _only(rewriter, here, rows, axis, len(picked))
        return rewriter.emit(node.op, [rows, ids], **{**node.attrs, "shape": division.shape()})

    return Rule([picked, of_ids], [of_table], emit=emit)
