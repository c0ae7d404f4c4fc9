"""Strategies and layouts as users write them, as axes of grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mycelia.engine.base import errors

Shape = Sequence[int]
Counts = Sequence[int]


class Written(NamedTuple):
    """A layout: axis i of a tensor is divided by the axes ``axes[i]`` of the grid `matrix`; `said`: in
    words.
    """

    matrix: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    said: str


def is_layout(part: Any) -> bool:
    """Whether it is a `mycelia.Layout`, which stands above the engine."""
    return hasattr(part, "to_dict") and not isinstance(part, tuple)


def of_layout(owner: str, layout: Any, size: int) -> Written:
    """A `Layout` of `size` ranks.

    Errors: ValueError if it is of another number of ranks or no tensor's; NotImplementedError for
    interleaved ones and for ranks in another order.
    """
    told = layout.to_dict()
    matrix, names = tuple(told["device_matrix"]), told["alias_name"]
    axes = []
    for place in told["tensor_map"]:
        places = place if isinstance(place, tuple) else (place,)
        axes.append(tuple(len(matrix) - 1 - p for p in places if p != -1))
    grid = ", ".join(f"{name}={n}" for name, n in zip(names, matrix))
    shown = [(names[a[0]] if len(a) == 1 else tuple(names[i] for i in a)) if a else "None" for a in axes]
    said = f"{tuple(shown)} on the grid ({grid})"
    if told["interleaved_parallel"]:
        raise errors.error(
            errors.NotSupportedError, owner, f"the layout {said} is interleaved, which computes parts by "
            f"turns",
            hint="leave 'interleaved_parallel' away",
        )  # fmt: skip
    if math.prod(matrix) != size:
        raise errors.value_error(
            owner, f"the layout {said} is of {math.prod(matrix)} ranks, but {size} train together"
        )
    if list(told["rank_list"]) != list(range(size)):
        raise errors.error(
            errors.NotSupportedError,
            owner,
            f"the layout {said} has the ranks {told['rank_list']} in another order",
        )
    return Written(matrix, tuple(axes), said)


def of_counts(owner: str, counts: Counts, size: int) -> Written:
    """A tensor whose axes are cut into so many parts, those of the first axis farthest apart."""
    check_counts(owner, "in_strategy", counts)
    matrix, axes = _grid(owner, [(i, n) for i, n in enumerate(counts)], size)
    return Written(
        matrix, tuple((axes[i],) if n > 1 else () for i, n in enumerate(counts)), str(tuple(counts))
    )


def require_divisible(owner: str, written: Written, shape: Shape) -> None:
    """Errors: ShapeError naming the axis, if there is no such number of equal parts or of axes."""
    if len(written.axes) != len(shape):
        raise errors.shape_error(
            owner, f"the layout {written.said} is of {len(written.axes)} axes, but the shape is {list(shape)}"
        )
    for axis, (n, axes) in enumerate(zip(shape, written.axes)):
        parts = math.prod(written.matrix[a] for a in axes)
        if n % parts:
            raise errors.shape_error(
                owner, f"axis {axis} of {n} cannot be cut into {parts} equal parts, as the layout "
                f"{written.said} of the "
                f"shape {list(shape)} says",
            )  # fmt: skip


def check_counts(owner: str, name: str, counts: Any) -> None:
    """Errors: TypeError, ValueError unless they are numbers of parts."""
    if not isinstance(counts, tuple) or not all(type(n) is int for n in counts):
        raise errors.type_error(owner, f"the parts of {name} must be tuples of int, but got {counts!r}")
    if any(n < 1 for n in counts):
        raise errors.value_error(owner, f"{name} must have positive numbers of parts, but got {counts}")


def _grid(owner: str, counts: Sequence[tuple[Any, int]], size: int) -> tuple[tuple[int, ...], dict[Any, int]]:
    """A grid with an axis of that size for each label, and its axis by label; what is left repeats the work,
    by neighbouring ranks.
    """
    matrix = tuple(n for _, n in counts)
    used = math.prod(matrix)
    if size % used:
        raise errors.value_error(
            owner, f"the strategy needs {used} ranks ({' x '.join(map(str, matrix))}), which do not divide "
            f"the {size} "
            "that train together",
        )  # fmt: skip
    places = {label: i for i, (label, _) in enumerate(counts)}
    return (*matrix, size // used), places


# ---- operators ---------------------------------------------------------------------------------------------


def _matrices(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    x, y = shapes[:2]
    rank = max(len(x), len(y))
    left = ("k", "m") if attrs.get("transpose_a") else ("m", "k")
    right = ("n", "k") if attrs.get("transpose_b") else ("k", "n")
    batch = [(*range(rank - len(s), rank - 2),) for s in (x, y)]
    made = [(*batch[0], *left), (*batch[1], *right)]
    return made, [*range(rank - 2), "m", "k", "n"]


def _dense(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    lead = tuple(range(len(shapes[0]) - 1))
    return [(*lead, "k"), ("n", "k"), ("n",)][: len(shapes)], [*lead, "k", "n"]


def _bias(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    rank = len(shapes[0])
    channel = rank - 1 if attrs.get("data_format") == "NHWC" else 1
    return [tuple(range(rank)), (channel,)], None


def _table(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    table, ids = shapes[:2]
    return [tuple(f"t{i}" for i in range(len(table))), tuple(f"i{i}" for i in range(len(ids)))], None


def _classes(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    return [("n", "c"), ("n", "c")[: len(shapes[1])]], None


def _first(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    return [
        tuple(range(len(shapes[0]))),
        *((("o", j, i) for i in range(len(s))) for j, s in enumerate(shapes[1:])),
    ], None


def _joined(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    return [tuple(range(len(s))) for s in shapes], None


def _images(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    spatial = tuple(("spatial", i) for i in range(len(shapes[0]) - 2))
    images = ("n", *spatial, "c") if attrs.get("data_format") == "NHWC" else ("n", "c", *spatial)
    return [images, *[("c",)] * (len(shapes) - 1)], None


def _vectors(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    (images, *rest), _ = _images(attrs, shapes)
    return [tuple(label if type(label) is str else label[1] for label in images), *rest], None


def _convolved(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    spatial = tuple(("spatial", i) for i in range(len(shapes[0]) - 2))
    taps = tuple(("spatial", "of the kernel", i) for i in range(len(spatial)))
    outputs, channels = ("c", ("spatial", "of a group")) if attrs.get("group", 1) > 1 else ("o", "c")
    return [("n", "c", *spatial), (outputs, channels, *taps), (outputs,)][: len(shapes)], None


def _require_no_spatial(name: str, i: int, own: Sequence[Any], given: Counts, shape: Shape) -> None:
    axes = [axis for axis, (label, n) in enumerate(zip(own, given)) if type(label) is tuple and n > 1]
    if axes and own[axes[0]][0] == "spatial":
        raise errors.error(
            errors.NotSupportedError, name, f"in_strategy {tuple(given)} cuts the axes {axes} of tensor {i} "
            f"of shape {list(shape)}, over which windows reach from one part into the next",
            hint="batch and channels may be cut",
        )  # fmt: skip


_LABELS = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "MatMulExt", "BatchMatMulExt"), _matrices), "Dense": _dense,
    "BiasAdd": _bias, **dict.fromkeys(("Gather", "GatherV2", "EmbeddingLookup"), _table), "OneHot": _first,
    **dict.fromkeys(("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"), _classes),
    **dict.fromkeys(("Concat", "Stack"), _joined), **dict.fromkeys(("Conv2D", "Conv3D"), _convolved),
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "AdaptiveAvgPool2D"), _images),
    "BatchNorm": _vectors,
}  # fmt: skip


def _aligned(attrs: dict, shapes: Sequence[Shape]) -> tuple[list, list | None]:
    rank = max((len(s) for s in shapes), default=0)
    return [tuple(range(rank - len(s), rank)) for s in shapes], None


def check_number(name: str, given: Sequence[Any], shapes: Sequence[Sequence[int]]) -> None:
    """Errors: ValueError unless there is a strategy for each of an operator's tensors, of `shapes`."""
    if len(given) != len(shapes):
        raise errors.value_error(
            name, f"in_strategy {tuple(given)} is for {len(given)} tensors, but {len(shapes)} were given, "
            f"of the shapes {[list(shape) for shape in shapes]}",
        )  # fmt: skip


def of_operator(
    name: str, attrs: dict, counts: Sequence[Counts], shapes: Sequence[Shape], size: int
) -> tuple[list[Written], Any]:
    """The layouts of an operator's tensors, of `shapes`, for a strategy: how many parts each axis has. Axes
    that operands share are divided alike. The second result is for `of_result`.

    Errors: TypeError, ValueError naming the operator, the axis and the strategy.
    """
    check_number(name, counts, shapes)
    labels, order = _LABELS.get(name, _aligned)(attrs, shapes)
    parts: dict[Any, int] = dict.fromkeys(order or (), 1)
    seen: set[Any] = set()
    for i, (own, given, shape) in enumerate(zip(labels, counts, shapes)):
        check_counts(name, "in_strategy", given)
        if len(given) != len(shape):
            raise errors.value_error(
                name, f"in_strategy {given} of tensor {i} must have a number for each of its {len(shape)} "
                f"axes, shape "
                f"{list(shape)}",
            )  # fmt: skip
        _require_no_spatial(name, i, own, given, shape)
        for axis, (label, n, length) in enumerate(zip(own, given, shape)):
            if type(length) is int and length >= 0 and length % n:
                raise errors.shape_error(
                    name, f"axis {axis} of tensor {i} has {length} elements, which cannot be cut into {n} "
                    f"equal parts: "
                    f"in_strategy {given}, shape {list(shape)}",
                )  # fmt: skip
            if length == 1:  # broadcast
                parts.setdefault(label, 1)
            elif label in seen and parts[label] != n:
                raise errors.value_error(
                    name, f"in_strategy {tuple(counts)} cuts axis {axis} of tensor {i} into {n} parts, but "
                    f"the same axis "
                    f"of another tensor into {parts[label]}, shapes {[list(s) for s in shapes]}",
                )  # fmt: skip
            else:
                parts[label] = n
                seen.add(label)
    matrix, places = _grid(name, list(parts.items()), size)
    said = str(tuple(counts))
    made = [
        Written(matrix, tuple((places[label],) if n > 1 else () for label, n in zip(own, given)), said)
        for own, given in zip(labels, counts)
    ]
    return made, (matrix, places, parts, order)


def of_result(name: str, found: Any, counts: Counts) -> Written:
    """The layout of an operator's result for an out_strategy of numbers: of products, whose inner axis may
    divide the rows of the result besides.

    Errors: TypeError, ValueError; NotImplementedError for other operators.
    """
    matrix, places, parts, order = found
    check_counts(name, "out_strategy", counts)
    if order is None:
        raise errors.error(
            errors.NotSupportedError, name, f"out_strategy {counts}: numbers of parts are for products of "
            f"matrices",
            hint="Layouts say for every operator where its result lies",
        )  # fmt: skip
    rows = [label for label in order if label != "k"]
    if len(rows) != len(counts):
        raise errors.value_error(
            name, f"out_strategy {counts} must have a number for each of {len(rows)} axes"
        )
    axes = []
    for label, n in zip(rows, counts):
        if n == parts[label]:
            axes.append((places[label],) if n > 1 else ())
        elif label != "n" and n == parts[label] * parts["k"]:
            axes.append((places[label], places["k"]))
        else:
            raise errors.value_error(
                name, f"out_strategy {counts}: {n} parts are not those of in_strategy, {parts[label]}, "
                f"with or without "
                f"the {parts['k']} of the inner axis",
            )  # fmt: skip
    return Written(matrix, tuple(axes), f"{counts} of the result")
