"""Products of matrices: bias, factors, transposes, reshapes and tiles around them, and two in a row."""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.registry import node_fusion
from mycelia_lite.converter.optimise.scale import per_channel
from mycelia_lite.converter.optimise.shapes import RESHAPES, is_known, order_of, same_shape
from mycelia_lite.converter.optimise.slices import is_whole, read_slice
from mycelia_lite.format import Table

_LINEAR = ("MatMulFusion", "FullConnection")


def _weight(graph: FileGraph, node: FileNode) -> np.ndarray | None:
    """The constant matrix of a product without activation, as [depth, outputs]."""
    array = graph.float_constant(node.inputs[1])
    if array is None or array.ndim != 2 or node.activation != "NO_ACTIVATION" or not array.size:
        return None
    if node.kind == "FullConnection":
        return array.T
    return None if node.op.transpose_a else (array.T if node.op.transpose_b else array)


def _bias(graph: FileGraph, node: FileNode, outputs: int) -> np.ndarray | None:
    if len(node.inputs) == 2:
        return np.zeros(outputs, np.float32)
    found = graph.float_constant(node.inputs[2])
    return found if found is not None and found.shape == (outputs,) else None


def _with(graph: FileGraph, node: FileNode, weight: np.ndarray, bias: np.ndarray | None) -> list[int]:
    """Inputs of a product like `node` by [depth, outputs] and a bias, None for none."""
    turned = node.kind == "FullConnection" or node.op.transpose_b
    name = graph.tensors[node.inputs[1]].name
    inputs = [node.inputs[0], graph.add_constant(weight.T if turned else weight, name)]
    return inputs if bias is None else [*inputs, graph.add_constant(bias, f"{name}_bias")]


def _biased(node: FileNode) -> Table:
    op = node.op.copy()
    if node.kind == "FullConnection":
        op.has_bias = True
    return op


def _takes_bias(graph: FileGraph, node: FileNode, kind: str) -> bool:
    if node.activation != "NO_ACTIVATION" or not graph.is_float(node.output):
        return False
    for data, other in (node.inputs, node.inputs[::-1]):
        rows = graph.sole_maker(data, "Reshape")  # between them, if it leaves the last axis alone
        product = graph.sole_maker(rows.inputs[0] if rows else data, kind)
        matrix = product and _weight(graph, product)
        if matrix is None or product is None or graph.shape(node.output)[-1:] != matrix.shape[1:]:
            continue
        outputs, added = matrix.shape[1], graph.float_constant(other)
        if added is None or added.shape != (outputs,):
            continue
        inputs = [*product.inputs[:2], other]
        if len(product.inputs) == 3:
            old = _bias(graph, product, outputs)
            if old is None or not np.isfinite(old + added).all():
                continue
            inputs[2] = graph.add_constant(old + added, graph.tensors[product.inputs[2]].name)
        if rows is None:
            graph.replace(node, _biased(product), inputs, [product])
        else:
            made = graph.insert(product, _biased(product), inputs, graph.shape(product.output))
            graph.replace(node, rows.op, [made, *rows.inputs[1:]], [product])
        return True
    return False


@node_fusion("MatMulAddFusion", "BiasAdd", "AddFusion")
def matmul_add(graph: FileGraph, node: FileNode) -> bool:
    """x @ constant + constant of the last axis -> a bias inside"""
    return _takes_bias(graph, node, "MatMulFusion")


@node_fusion("FullconnectedAddFusion", "BiasAdd", "AddFusion")
def full_connection_add(graph: FileGraph, node: FileNode) -> bool:
    return _takes_bias(graph, node, "FullConnection")


@node_fusion("FullConnectedFusion", "MatMulFusion", "FullConnection")
def linear_linear(graph: FileGraph, node: FileNode) -> bool:
    """Two products by constants in a row -> one, where that multiplies no more"""
    first = graph.sole_maker(node.inputs[0], *_LINEAR)
    if first is None or first.kind != node.kind or not graph.is_float(node.output):
        return False
    if node.kind == "FullConnection" and (
        graph.rank(node.output) != 2 or node.op.use_axis or first.op.use_axis
    ):
        return False
    plain = node.op.copy()
    plain.activation_type = "NO_ACTIVATION"
    one = _weight(graph, first)
    two = _weight(graph, FileNode(node.name, plain, node.inputs, node.outputs))
    if one is None or two is None or one.shape[1] != two.shape[0]:
        return False
    if one.shape[0] * two.shape[1] > one.size + two.size:
        return False
    biases = _bias(graph, first, one.shape[1]), _bias(graph, node, two.shape[1])
    if biases[0] is None or biases[1] is None or not np.isfinite(one).all() or not np.isfinite(two).all():
        return False
    with np.errstate(all="ignore"):
        weight = (one.astype(np.float64) @ two).astype(np.float32)
        bias = (biases[0].astype(np.float64) @ two + biases[1]).astype(np.float32)
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        return False
    has_bias = len(first.inputs) == 3 or len(node.inputs) == 3
    inputs = [first.inputs[0], *_with(graph, node, weight, bias if has_bias else None)[1:]]
    graph.replace(node, _biased(node) if has_bias else node.op, inputs, [first])
    return True


@node_fusion("MatMulMulFusion", "MulFusion")
def matmul_mul(graph: FileGraph, node: FileNode) -> bool:
    """(x @ constant) * constant of the last axis -> a product by other weights"""
    if node.activation != "NO_ACTIVATION" or not graph.is_float(node.output):
        return False
    for data, other in (node.inputs, node.inputs[::-1]):
        product = graph.sole_maker(data, *_LINEAR)
        matrix = product and _weight(graph, product)
        factor = None if matrix is None else per_channel(graph, data, other)
        if factor is None or len(factor) != matrix.shape[1]:
            continue
        bias = _bias(graph, product, len(factor))
        with np.errstate(all="ignore"):
            weight, bias = matrix * factor, None if bias is None else bias * factor
        if bias is None or not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            continue
        inputs = _with(graph, product, weight, bias if len(product.inputs) == 3 else None)
        graph.replace(node, product.op, inputs, [product])
        return True
    return False


@node_fusion("TransposeMatMulFusion", "MatMulFusion")
def transpose_matmul(graph: FileGraph, node: FileNode) -> bool:
    """A Transpose of the last two axes before a product -> its flag; if it moves others, too, whole rows"""
    for place, flag in ((0, "transpose_a"), (1, "transpose_b")):
        turn = graph.maker.get(node.inputs[place])
        order = turn and turn.kind == "Transpose" and order_of(graph, turn)
        if not order or len(order) < 2 or order[-2] != len(order) - 1:
            continue
        if place == 0 and graph.constant(node.inputs[1]) is not None:
            continue  # packed weights are for rows as they lie
        op, inputs = node.op.copy(), list(node.inputs)
        setattr(op, flag, not getattr(op, flag))
        rows = [*order[:-2], order[-1], order[-2]]
        if rows != sorted(rows) and graph.uses(turn.output) > 1:
            continue
        if rows == sorted(rows):
            inputs[place] = turn.inputs[0]
        else:
            made = graph.add_constant(np.asarray(rows, np.int32), f"{turn.name}/order")
            shape = [graph.shape(turn.inputs[0])[a] for a in rows]
            inputs[place] = graph.insert(node, Table("Transpose"), [turn.inputs[0], made], shape)
        graph.replace(node, op, inputs, [turn])
        return True
    return False


@node_fusion("TransposeMatMulFusion", "MatMulFusion")
def flattened_matmul(graph: FileGraph, node: FileNode) -> bool:
    """A Transpose of what becomes rows for a product by a constant matrix -> a matrix in the order before"""
    flat = graph.sole_maker(node.inputs[0], "Reshape")
    turn = flat and graph.sole_maker(flat.inputs[0], "Transpose")
    order = turn and order_of(graph, turn)
    matrix = graph.float_constant(node.inputs[1])
    if not order or order[0] != 0 or matrix is None or matrix.ndim != 2 or node.op.transpose_a:
        return False
    sizes, rows = graph.shape(turn.inputs[0])[1:], graph.shape(flat.output)
    target = graph.integers(flat.inputs[1])
    if -1 in sizes or len(rows) != 2 or rows[1] != np.prod(sizes) or target is None or target[-1] == 0:
        return False
    order = np.asarray(order[1:]) - 1
    places = np.arange(rows[1]).reshape([sizes[a] for a in order]).transpose(np.argsort(order)).reshape(-1)
    weight = graph.add_constant(
        matrix[:, places] if node.op.transpose_b else matrix[places], graph.tensors[node.inputs[1]].name
    )
    x = graph.insert(node, flat.op, [turn.inputs[0], *flat.inputs[1:]], rows)
    graph.replace(node, node.op, [x, weight, *node.inputs[2:]], [turn, flat])
    return True


@node_fusion("TileMatMulFusion", "MatMulFusion")
def tile_matmul(graph: FileGraph, node: FileNode) -> bool:
    """Repetitions of a matrix along axes of the batch, which a product broadcasts anyway -> none"""
    tile = graph.sole_maker(node.inputs[1], "TileFusion", "BroadcastTo")
    if tile is None:
        return False
    left, right = graph.shape(node.inputs[0]), graph.shape(node.inputs[1])
    whole = graph.shape(tile.inputs[0])
    if len(left) != len(right) or len(whole) != len(right) or len(right) < 3 or whole[-2:] != right[-2:]:
        return False
    for a, b, w in zip(left[:-2], right[:-2], whole[:-2]):
        if b != w and (w != 1 or a != b or a < 0):
            return False
    graph.replace(node, node.op, [node.inputs[0], tile.inputs[0], *node.inputs[2:]], [tile])
    return True


@node_fusion("TensorDotFusion", "Reshape")
def tensor_dot(graph: FileGraph, node: FileNode) -> bool:
    """Rows put together for a product by a constant matrix, and taken apart again -> the product alone"""
    product = graph.sole_maker(node.inputs[0], "MatMulFusion")
    if product is None or product.op.transpose_a or graph.constant(product.inputs[1]) is None:
        return False
    rows = graph.maker.get(product.inputs[0])
    if rows is None or rows.kind not in RESHAPES or graph.rank(product.inputs[1]) != 2:
        return False
    x, y = graph.shape(rows.inputs[0]), graph.shape(node.output)
    inner, outer = graph.shape(product.inputs[0]), graph.shape(product.output)
    if len(y) < 2 or not is_known(y) or -1 in (inner[-1], outer[-1]) or y[-1] != outer[-1]:
        return False
    wanted = (*y[:-1], inner[-1])
    source = rows.inputs[0]
    if not same_shape(x, wanted):
        shape = graph.add_constant(np.asarray(wanted, np.int32), f"{node.name}/rows")
        source = graph.insert(node, Table("Reshape"), [rows.inputs[0], shape], wanted)
    graph.replace(node, product.op, [source, *product.inputs[1:]], [product])
    return True


@node_fusion("BatchMatMulFusion", "Stack")
def batch_matmul(graph: FileGraph, node: FileNode) -> bool:
    """Slices of a batch, each times a matrix of its own, stacked -> one product of batches"""
    if node.op.axis != 0 or len(node.inputs) < 2 or not graph.is_float(node.output):
        return False
    products = [graph.sole_maker(i, *_LINEAR) for i in node.inputs]
    if any(p is None or len(p.inputs) != 2 for p in products) or len(set(map(id, products))) < len(products):
        return False
    weights = [_weight(graph, p) for p in products]
    parts = [_row_of_batch(graph, p.inputs[0]) for p in products]
    if any(w is None or w.shape != weights[0].shape for w in weights) or any(p is None for p in parts):
        return False
    x = parts[0][0]
    batch = graph.shape(x)
    if any(p[0] != x for p in parts) or [p[1] for p in parts] != list(range(len(parts))):
        return False
    if len(batch) != 3 or batch[0] != len(parts) or batch[2] != weights[0].shape[0]:
        return False
    matrices = graph.add_constant(np.stack(weights), graph.tensors[products[0].inputs[1]].name)
    graph.replace(node, Table("MatMulFusion"), [x, matrices], products)
    return True


@node_fusion("AffineFusion", "MatMulFusion")
def affine(graph: FileGraph, node: FileNode) -> bool:
    """Rows with their neighbours side by side, times a constant matrix -> Affine"""
    splice = graph.sole_maker(node.inputs[0], "Splice")
    matrix = graph.float_constant(node.inputs[1])
    if splice is None or matrix is None or matrix.ndim != 2 or node.op.transpose_a:
        return False
    context, count = list(splice.op.context), graph.shape(splice.inputs[0])[1]
    if count < 0 or not graph.is_float(node.output):
        return False
    inside = range(-min(context), count - max(context))
    if list(splice.op.forward_indexes) != [row + offset for row in inside for offset in context]:
        return False  # rows at the borders are repeated, or some are left out
    op = Table("Affine", context=context, output_dim=splice.op.output_dim, transpose_b=node.op.transpose_b)
    op.activation_type = node.op.activation_type
    graph.replace(node, op, [splice.inputs[0], *node.inputs[1:]], [splice])
    return True


def _row_of_batch(graph: FileGraph, tensor: int) -> tuple[int, int] | None:
    """(x, i) of a tensor that is x[i]"""
    made = graph.maker.get(tensor)
    if made is None:
        return None
    if made.kind == "Gather":
        index, axis = graph.integers(made.inputs[1]), graph.integers(made.inputs[2])
        plain = index is not None and len(index) == 1 and not graph.rank(made.inputs[1]) and axis == [0]
        return (made.inputs[0], index[0]) if plain else None
    if made.kind == "Unstack" and made.op.axis == 0:
        return made.inputs[0], made.outputs.index(tensor)
    if made.kind in ("Reshape", "Squeeze"):
        part = graph.maker.get(made.inputs[0])
        if part is None or graph.shape(made.output) != graph.shape(part.output)[1:]:
            return None
        if part.kind == "Split" and part.op.axis == 0 and graph.shape(part.output)[:1] == (1,):
            return part.inputs[0], part.outputs.index(made.inputs[0])
        cut = read_slice(graph, part)
        if cut is not None and cut[0][2] == 1 and is_whole(cut[1:], graph.shape(part.inputs[0])[1:]):
            return part.inputs[0], cut[0][0]
    return None
