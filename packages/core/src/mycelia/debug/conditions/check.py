"""Whether a tensor hits a watch condition.

Comparisons are strict but for `_ge`; ranges include both ends. Several parameters are alternatives. Numbers
are taken over the whole tensor: where it has NaN or infinities, every condition but those about them tells an
error instead of a hit; so where values are missing that a condition compares with.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from mycelia.debug.conditions.around import Around
from mycelia.debug.conditions.beyond import MEASURES
from mycelia.debug.conditions.catalogue import Condition
from mycelia.debug.conditions.expression import parse
from mycelia.debug.conditions.found import Hit, ParameterHit
from mycelia.debug.conditions.overflow import NOT_FINITE, overflow_of
from mycelia.engine.observing.observers import OPTIMIZER_STATE

IS_NAN, IS_INF, NO_PREVIOUS, OUT_OF_MEMORY, NO_HISTORY, NO_VALUE = 1, 2, 4, 8, 16, 32  # error bits
NO_INPUTS, NO_RANKS = 64, 128  # beyond MindSpore's

_TEXTS = {
    IS_NAN: "the tensor has NaN",
    IS_INF: "the tensor has infinities",
    NO_PREVIOUS: "there is no value of the step before",
    OUT_OF_MEMORY: "the memory limit is reached",
    NO_HISTORY: "the graph has no history",
    NO_VALUE: "there is no value",
    NO_INPUTS: "what the operator read is not there",
    NO_RANKS: "no other rank has a value",
}
_OVERFLOWS = ("tensor_overflow", "weight_overflow", "gradient_exploding")
_NOTHING = Around()
NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})  # of the attributes of a node
_ACTIVATIONS = frozenset(
    """elu fastgelu gelu hsigmoid hswish leakyrelu logsigmoid logsoftmax prelu relu relu6 reluv2 sigmoid
    softmax tanh""".split()
)


def error_texts(code: int) -> list[str]:
    """What the bits of an error code say."""
    return [text for bit, text in _TEXTS.items() if code & bit]


def check(
    condition: Condition,
    given: Mapping[str, Any],
    array: np.ndarray | None,
    around: Around = _NOTHING,
    step: int = 0,
) -> Hit:
    """Whether `array` hits `condition` with the parameters `given`.

    `around`: values of steps before, what the operator read, values of other ranks, for conditions about
    these; `step`: from 0, for conditions about initial values.
    Errors: ValueError, TypeError for parameters that do not fit.
    """
    values = condition.values(given)
    if array is None:
        return Hit(False, NO_VALUE)
    if condition.first_step_only and step:
        return Hit(False)
    error = _error_of(array)
    if condition.id in _OVERFLOWS:
        return Hit(error != 0)
    if condition.id == "operator_overflow":
        reason = overflow_of(array, around.kind, around.inputs)
        return Hit(bool(reason), reason="" if reason == NOT_FINITE else reason)
    if condition.id == "nan_born":
        return _born(error, around)
    if condition.id == "expression":
        return _expressed(values["expression"], error, array, around)
    if condition.id == "loss_not_decreasing" and array.size != 1:
        return Hit(False)  # what a loss is made of
    error |= _missing(condition, values, array, around)
    if error or not array.size:
        return Hit(False, error)
    measure = MEASURES.get(condition.id)
    if measure is not None:
        found = tuple(measure(values, array, around))
    else:
        actual = _measured(condition, values, array, around.earlier[0] if around.earlier else None)
        found = tuple(ParameterHit(n, values[n], a, _is_hit(n, a, values[n])) for n, a in actual.items())
    return Hit(any(p.hit for p in found), 0, found)


def _missing(condition: Condition, values: Mapping[str, Any], array: np.ndarray, around: Around) -> int:
    """The error bits of what is looked at beside the tensor."""
    if condition.compares_ranks:
        return _errors_of(around.others) if around.others else NO_RANKS
    if condition.id == "dead_relu":  # over the steps that are there
        return 0
    depth = condition.depth(values)
    if len(around.earlier) < depth:
        return NO_PREVIOUS
    if condition.needs_previous and around.earlier[0].shape != array.shape:  # as of a smaller last batch
        return NO_PREVIOUS
    return _errors_of(around.earlier[:depth])


def _born(error: int, around: Around) -> Hit:
    if not error:
        return Hit(False)
    if around.inputs is None:
        return Hit(False, NO_INPUTS)
    is_born = not _errors_of(around.inputs)
    return Hit(is_born, reason="NaN or infinities of finite inputs" if is_born else "")


def _expressed(text: str, error: int, array: np.ndarray, around: Around) -> Hit:
    wanted = parse(text)
    previous = around.earlier[0] if around.earlier else None
    if wanted.needs_previous:
        error |= NO_PREVIOUS if previous is None else _error_of(previous)
    if wanted.counts_not_finite:
        error &= NO_PREVIOUS
    if error or not array.size:
        return Hit(False, error)
    measured = wanted.measured(array, previous)
    is_hit = wanted.holds(measured)
    told = ", ".join(f"{name} = {value:g}" for name, value in measured.items())
    return Hit(is_hit, 0, (ParameterHit("expression", text, float(is_hit), is_hit),), told)


def _errors_of(arrays: Sequence[np.ndarray]) -> int:
    return functools.reduce(operator.or_, map(_error_of, arrays), 0)


def _error_of(array: np.ndarray) -> int:
    if array.dtype.kind not in "fc":
        return 0
    return (IS_NAN if np.isnan(array).any() else 0) | (IS_INF if np.isinf(array).any() else 0)


def _is_hit(name: str, actual: float, bound: float | bool) -> bool:
    if name == "rtol":  # of the elements, that all are within it
        return actual == 1.0
    if name.endswith("_ge"):
        return actual >= bound
    return actual > bound if name.endswith("_gt") else actual < bound


def _measured(
    condition: Condition, values: Mapping[str, Any], array: np.ndarray, previous: np.ndarray | None
) -> dict[str, float]:
    """What each parameter in force, but for hidden and supporting ones, is compared with."""
    x = array.astype(np.float64) if array.dtype.kind != "c" else np.abs(array)
    if condition.id == "weight_not_changed":
        return {"rtol": float(_unchanged(x, np.asarray(previous, np.float64), values))}
    ways = {
        "max": lambda: x.max(),
        "min": lambda: x.min(),
        "mean": lambda: x.mean(),
        "abs_mean": lambda: np.abs(x).mean(),
        "zero_percentage": lambda: 100.0 * np.count_nonzero(x == 0) / x.size,
        "max_min": lambda: x.max() - x.min(),
        "range_percentage": lambda: _share(x, values),
        "abs_mean_update_ratio": lambda: _update_ratio(
            x, np.asarray(previous, np.float64), values["epsilon"]
        ),
    }
    hidden = {p.name for p in condition.parameters if p.hidden or p.support}
    return {name: float(ways[name.rpartition("_")[0]]()) for name in values if name not in hidden}


def _unchanged(x: np.ndarray, before: np.ndarray, values: Mapping[str, Any]) -> bool:
    return bool((np.abs(x - before) <= values["atol"] + values["rtol"] * np.abs(before)).all())


def _update_ratio(x: np.ndarray, before: np.ndarray, epsilon: float) -> float:
    return np.abs(x - before).mean() / (np.abs(before).mean() + epsilon)


def _share(x: np.ndarray, values: Mapping[str, Any]) -> float:
    inside = (x >= values["range_start_inclusive"]) & (x <= values["range_end_inclusive"])
    return 100.0 * np.count_nonzero(inside) / x.size


ROLE = "role"  # the attribute of a Parameter's node that says what it is to the training
#: States that optimizers keep of a weight by a prefix to its name, but for prefixes that layers may be called
#: by, for dumps that do not say what a Parameter is. MindSpore's debugger takes states for weights, and warns
#: of each Momentum that begins as zeros.
_STATES = re.compile(
    r"((moments?[12]?|accum(_update)?|mean_(grad|square)|(max_)?exp_avg(_sq)?|vhat|step_size|(adam|lamb)_[mv]"
    r"|stat|exp_inf|momentum_buf|ax_?)\..+|exp_avg_sq_((row|col)_)?.+)\."
)

#: The last parts of names of weights: those that MindSpore's debugger knows, and those of recurrent layers,
#: attention and embeddings, of which it knows none.
_WEIGHT = re.compile(r"(\w+_)?(weight|bias)(_[ih]h(_l\d+)?(_reverse)?)?|embedding_table")


def is_weight(kind: str, name: str, attributes: Mapping[str, str] = NOTHING_KNOWN) -> bool:
    """Whether a node is a weight, by its type and full name, and what its attributes say of its role."""
    lower = name.lower()
    role = attributes.get(ROLE)
    is_state = bool(_STATES.match(lower)) if role is None else role == OPTIMIZER_STATE
    _, dot, last = lower.rpartition(".")
    is_named = bool(dot and _WEIGHT.fullmatch(last)) and not is_state
    return kind == "Parameter" and is_named and "optimizer-" not in lower and "gradients/" not in lower


def is_shared(kind: str, name: str, attributes: Mapping[str, str] = NOTHING_KNOWN) -> bool:
    """Whether a node has what all ranks of a data-parallel training have alike: a weight, or the result of a
    collective that gives all of them the same.
    """
    return is_weight(kind, name, attributes) or kind.lower() in ("allreduce", "allgather", "broadcast")


def is_gradient(kind: str, name: str, attributes: Mapping[str, str] = NOTHING_KNOWN) -> bool:
    """Whether a node computes a gradient."""
    return kind not in ("Parameter", "Const") and name.lower().startswith("gradients/")


def is_activation(kind: str, name: str, attributes: Mapping[str, str] = NOTHING_KNOWN) -> bool:
    """Whether a node is an activation function of the forward pass."""
    return kind.lower() in _ACTIVATIONS and "gradients/" not in name.lower()


def is_loss(kind: str, name: str, attributes: Mapping[str, str] = NOTHING_KNOWN) -> bool:
    """Whether a node belongs to a loss: a scope has `loss` in its name, that around the network aside."""
    lower = name.lower()
    return (
        kind not in ("Parameter", "Const")
        and "gradients/" not in lower
        and "loss" in lower.replace("withloss", "")
    )
