"""Operators of ONNX-ML that skl2onnx writes: trees, linear models, and what stands before and behind them."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import Call, cast, operator, shape_of
from mycelia_lite.converter.tree_ops import COMPARISONS, NAN, trees

_DOMAIN = "ai.onnx.ml."
_KNOWN = ("NONE", "SOFTMAX", "LOGISTIC")


def learned(name: str) -> Any:
    """Decorator: the function imports this operator of ONNX-ML."""
    return operator(_DOMAIN + name)


def _numbers(call: Call, x: Any) -> Any:
    """Data as float32. Errors: ConversionError for float64, whose thresholds would be others."""
    if x.dtype == ms.float64:
        raise call.fail("data of float64: convert the model with float32 inputs")
    return cast(x, ms.float32)


def _row(call: Call, name: str) -> ms.Tensor:
    return ms.Tensor(np.asarray(call.need(name), np.float32))


def _transformed(call: Call, scores: Any) -> Any:
    how = call.choice("post_transform", "NONE", _KNOWN)
    if how == "SOFTMAX":
        return ops.softmax(scores, -1)
    return ops.sigmoid(scores) if how == "LOGISTIC" else scores


def _classes(call: Call, names: tuple[str, str]) -> np.ndarray:
    """The labels. Errors: ConversionError for text, which no tensor of this runtime holds."""
    numbers, texts = names
    if call.get(texts) and call.wants(0):
        raise call.fail(f"labels that are text ('{texts}'): ask for the scores alone, or for number labels")
    return np.asarray(call.get(numbers) or range(len(call.get(texts) or ())), np.int64)


def _labels(scores: Any, classes: np.ndarray) -> Any:
    """The label of the largest score, of equal ones the first."""
    place = ops.argmax(scores, -1)
    if np.array_equal(classes, np.arange(len(classes))):
        return cast(place, ms.int64)
    return ops.gather(ms.Tensor(classes), place, 0)


# ---- trees


def _forest(call: Call, leaf: str, count: int) -> tuple[np.ndarray, ...]:
    """(nodes, thresholds, roots, leaves [L, count]) of `trees`; `leaf`: how attributes of leaves begin."""
    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    tree, own, feature, yes, no = (np.asarray(call.need(f"nodes_{n}"), np.int64) for n in names)
    modes = [m.decode() if isinstance(m, bytes) else m for m in call.need("nodes_modes")]
    values = np.asarray(call.need("nodes_values"), np.float32)
    missing = call.get("nodes_missing_value_tracks_true") or [0] * len(tree)
    call.get("nodes_hitrates")
    if len({len(a) for a in (tree, own, feature, yes, no, modes, values, missing)}) != 1:
        raise call.misfit("attributes of nodes of several lengths")
    number = {key: i for i, key in enumerate(zip(tree.tolist(), own.tolist()))}
    children: list[tuple[int, int] | None] = []
    for i, mode in enumerate(modes):
        if mode == "LEAF":
            children.append(None)
            continue
        if mode not in COMPARISONS:
            raise call.fail(f"nodes with the mode '{mode}'")
        pair = tuple(number.get((int(tree[i]), int(n[i])), -1) for n in (yes, no))
        if min(pair) < 0:
            raise call.misfit(f"node {own[i]} of tree {tree[i]} leads to a node that is not there")
        children.append(pair)
    inner = {c for pair in children if pair for c in pair}
    roots = [i for i in range(len(modes)) if i not in inner]
    order, place = [], {}
    for root in roots:  # parents in front of their nodes
        work = [root]
        while work:
            i = work.pop()
            if i in place:
                raise call.misfit(f"node {own[i]} of tree {tree[i]} is reached in two ways")
            place[i] = len(order)
            order.append(i)
            work += reversed(children[i] or ())
    if len(order) != len(modes) or len(roots) != len(set(tree.tolist())):
        raise call.misfit("trees that have no root, or several")
    rows = {i: k for k, i in enumerate(i for i in order if children[i] is None)}
    leaves = np.zeros((len(rows), count), np.float32)
    weights = [call.need(f"{leaf}_{n}") for n in ("treeids", "nodeids", "ids", "weights")]
    for t, n, k, w in zip(*weights, strict=True):
        i = number.get((t, n), -1)
        if i not in rows or not 0 <= k < count:
            raise call.misfit(f"a weight of node {n} of tree {t}, target {k}")
        leaves[rows[i], k] += np.float32(w)
    nodes = np.zeros((len(order), 4), np.int32)
    for i in order:
        pair = children[i]
        nodes[place[i]] = (
            (-1, rows[i], 0, 0)
            if pair is None
            else (
                feature[i],
                place[pair[0]],
                place[pair[1]],
                COMPARISONS.index(modes[i]) + NAN * bool(missing[i]),
            )
        )
    return nodes, values[order], np.asarray([place[r] for r in roots], np.int32), leaves


def _grown(call: Call, x: Any, forest: tuple[np.ndarray, ...], how: str = "sum") -> Any:
    return trees(_numbers(call, x), *map(ms.Tensor, forest), how=how)


@learned("TreeEnsembleRegressor")
def _tree_regressor(call, x):
    how = call.choice("aggregate_function", "SUM", ("SUM", "AVERAGE", "MIN", "MAX")).lower()
    count = call.get("n_targets", 1)
    if count > 1 and how in ("min", "max"):
        raise call.fail(f"aggregate_function '{how.upper()}' of {count} targets")
    y = _grown(call, x, _forest(call, "target", count), how)
    if base := call.get("base_values"):
        y = y + ms.Tensor(np.asarray(base, np.float32))
    return _transformed(call, y)


@learned("TreeEnsembleClassifier")
def _tree_classifier(call, x):
    """Labels and scores. Two classes may have scores of the second one alone."""
    classes = _classes(call, ("classlabels_int64s", "classlabels_strings"))
    forest = _forest(call, "class", len(classes))
    ids, weights = set(call.need("class_ids")), np.asarray(call.need("class_weights"))
    base = np.asarray(call.get("base_values") or [], np.float32)
    if len(classes) > 2 or len(ids) > 1:
        y = _grown(call, x, forest)
        y = y + ms.Tensor(base) if base.size else y
        return _labels(y, classes), _transformed(call, y)
    (only,) = ids
    y = _grown(call, x, (*forest[:3], np.ascontiguousarray(forest[3][:, only : only + 1])))
    if base.size:
        y = y + float(base[-1])
    if (weights >= 0).all():  # probabilities
        place = cast(y > 0.5, ms.int64)
        both = ops.concat((1 - y, y), -1)
    else:
        place = cast(y > 0, ms.int64)
        both = ops.concat((-y, y), -1)
    how = call.choice("post_transform", "NONE", _KNOWN)
    both = ops.softmax(both, -1) if how == "SOFTMAX" else ops.sigmoid(both) if how == "LOGISTIC" else both
    return ops.gather(ms.Tensor(classes), ops.reshape(place, (-1,)), 0), both


# ---- linear models


def _product(call: Call, x: Any, count: int) -> Any:
    weights = np.asarray(call.need("coefficients"), np.float32)
    features = shape_of(x)[-1]
    if weights.size != count * features:
        raise call.misfit(f"{weights.size} coefficients for {features} features of {count} targets")
    y = ops.matmul(_numbers(call, x), ms.Tensor(np.ascontiguousarray(weights.reshape(count, -1).T)))
    intercepts = call.get("intercepts")
    return y + ms.Tensor(np.asarray(intercepts, np.float32)) if intercepts else y


@learned("LinearRegressor")
def _linear_regressor(call, x):
    return _transformed(call, _product(call, x, call.get("targets", 1)))


@learned("LinearClassifier")
def _linear_classifier(call, x):
    classes = _classes(call, ("classlabels_ints", "classlabels_strings"))
    call.get("multi_class")
    count = len(call.need("coefficients")) // shape_of(x)[-1]
    if count != len(classes):
        raise call.fail(f"{len(classes)} classes with the scores of {count}")
    y = _product(call, x, count)
    return _labels(y, classes), _transformed(call, y)


# ---- before and behind


@learned("Scaler")
def _scaler(call, x):
    return (_numbers(call, x) - _row(call, "offset")) * _row(call, "scale")


@learned("Normalizer")
def _normalizer(call, x):
    """Rows by their norm; those of zeros stay."""
    x, how = _numbers(call, x), call.choice("norm", "MAX", ("L1", "L2", "MAX"))
    if how == "L1":
        size = ops.sum(ops.abs(x), -1, True)
    elif how == "L2":
        size = ops.sqrt(ops.sum(x * x, -1, True))
    else:
        size = ops.amax(x, -1, True)
    return x / ops.where(size == 0, ms.Tensor(np.float32(1)), size)


@learned("Binarizer")
def _binarizer(call, x):
    return cast(_numbers(call, x) > call.get("threshold", 0.0), ms.float32)


@learned("Imputer")
def _imputer(call, x):
    x, gone = _numbers(call, x), call.get("replaced_value_float", 0.0)
    missing = ops.isnan(x) if gone != gone else x == gone
    return ops.where(missing, _row(call, "imputed_value_floats"), x)


@learned("ArrayFeatureExtractor")
def _array_feature_extractor(call, x, places):
    return ops.gather(x, ops.reshape(places, (-1,)), x.ndim - 1)


@learned("FeatureVectorizer")
def _feature_vectorizer(call, *inputs):
    call.get("inputdimensions")
    return ops.concat(tuple(_numbers(call, x) for x in inputs), -1)


@learned("ZipMap")
def _zip_map(call, x):
    raise call.fail("its result is a sequence of maps: let skl2onnx write the model with zipmap=False")
