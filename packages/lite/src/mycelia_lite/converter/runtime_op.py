"""Ops of core's IR for operators of a file whose results have sizes that only the running model knows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia.capture.trace import active
from mycelia.ir import TensorType, evaluate
from mycelia.ops.define import op
from mycelia_lite.converter import meanings

OPEN = -1  # a size that shows when the model runs


@op(name="file_operator", outputs=None, dynamic=True, nondiff=True, on_host=True)
def file_operator(inputs: "tensors", *, kind: "any", fields: "any", types: "any", unlike: "str" = ""):
    """The operator `kind` of MindSpore Lite on inputs in the order of the file.

    `fields`: its attributes, (name, value) each; `types` of its results have -1 for what is not known.
    `unlike`: those with other texts are others, though all else is equal.
    """
    return meanings.computed(kind, dict(fields), inputs)


@file_operator.infer
def file_operator(inputs, *, kind, fields, types, unlike=""):
    return types


def at_run_time(
    kind: str,
    inputs: Sequence[Any],
    types: Sequence[tuple[Any, Sequence[int]]],
    unlike: str = "",
    **fields: Any,
) -> Any:
    """The results of an operator of the file, each a new tensor of (dtype, sizes); one alone if it is one.

    Sizes that are no numbers become open: the runtime finds them. `unlike`: see `file_operator`.
    """
    described = tuple(
        TensorType(dtype, tuple(n if type(n) is int else OPEN for n in shape)) for dtype, shape in types
    )
    trace = active()
    if trace is not None and all(t.traced is None for t in inputs):  # constants alone would be computed here
        inputs = [trace.tensor(trace.constant(t)) for t in inputs]
    named = tuple(sorted(fields.items()))
    made = file_operator(tuple(inputs), kind=kind, fields=named, types=described, unlike=unlike)
    return made[0] if len(made) == 1 else made


def custom(
    name: str, inputs: Sequence[Any], types: Sequence[tuple[Any, Sequence[Any]]], /, **attributes: Any
) -> Any:
    """The same of a Custom node, whose attributes are numbers or lists of them."""
    attr = tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in attributes.items()))
    return at_run_time("Custom", inputs, types, type=name, attr=attr)


@op(name="conv_transpose", dynamic=True, nondiff=True, on_host=True)
def conv_transpose(
    x,
    weight,
    *,
    stride: "ints",
    pad: "ints",
    dilation: "ints",
    extra: "ints",
    group: "int" = 1,
):
    """The transposed convolution of images of open sizes [N, C, H, W] by weights [C, O / group, kh, kw].

    `pad`: begins, then ends; `extra` rows and columns at the end of the result.
    """
    return meanings.images.transposed_convolution(
        x, weight, stride=stride, pad=pad, dilation=dilation, extra=extra, group=group
    )


@conv_transpose.infer
def conv_transpose(x, weight, *, stride, pad, dilation, extra, group):
    return TensorType(x.dtype, (x.shape[0], weight.shape[1] * group, OPEN, OPEN))


@op(name="file_loop", outputs=None, dynamic=True, nondiff=True, on_host=True)
def file_loop(inputs: "tensors", *, body: "any", carried: "int", types: "any"):
    """Runs ``going, *values, *rows = body(number of the run, going, *values, *rest)`` again and again.

    inputs: how often at most (int64), whether at all (bool), the `carried` values, the rest, which stays.
    Results: the values after the last run, and the rows of all runs, stacked. `types`: theirs.
    """
    most, going, *rest = inputs
    values, rest = rest[:carried], rest[carried:]
    rows: list[list[np.ndarray]] = [[] for _ in types[carried:]]
    number = 0
    while number < most and going:
        given = [ms.Tensor(np.asarray(a)) for a in (np.int64(number), going, *values, *rest)]
        going, *made = (t.asnumpy() for t in evaluate(body, given))
        values = made[:carried]
        for each, row in zip(rows, made[carried:], strict=True):
            each.append(row)
        number += 1
    empty = [np.zeros([0, *(max(n, 0) for n in t.shape[1:])], t.dtype.np) for t in types[carried:]]
    return (*values, *(np.stack(each) if each else none for each, none in zip(rows, empty)))


@file_loop.infer
def file_loop(inputs, *, body, carried, types):
    return types
