"""Checks that read the script: interfaces (api.01), clipping (mp.03), gradient penalty (mp.04)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from mycelia.train.checks.facts import Facts
from mycelia.train.checks.mixed import is_mixed
from mycelia.train.checks.results import FOUND, NEEDS_YOU, NOT_FOUND, Said, check, listed

_CLIPS = ("clip_by_norm", "clip_by_global_norm", "clip_by_value", "clip_grad_norm")
_UNSCALES = ("unscale", "grad_scale", "unscale_")
_GRADIENTS = ("grad", "value_and_grad", "GradOperation")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Keyword arguments whose values mean something else than in PyTorch, and how one sees it.
_OTHERWISE = {
    ("BatchNorm", "momentum"): (lambda v: v < 0.5, "is the share kept of the old mean: 1 - PyTorch's"),
    ("Dropout", "keep_prob"): (lambda v: v < 0.5, "is the share that stays: 1 - PyTorch's p"),
}


@check("api.01", "differences of interfaces", trains=False)
def interfaces(facts: Facts, reference: Any) -> Said:
    found = list(facts.missing_names)
    for call in (n for n in ast.walk(_tree(facts)) if isinstance(n, ast.Call)):
        for keyword in call.keywords:
            for (kind, name), (is_odd, text) in _OTHERWISE.items():
                value = keyword.value
                if _name(call).startswith(kind) and keyword.arg == name and isinstance(value, ast.Constant):
                    if isinstance(value.value, (int, float)) and is_odd(value.value):
                        found.append(f"line {call.lineno}: {name}={value.value} of {_name(call)} {text}")
    return (FOUND if found else NOT_FOUND), listed(found) or "all names are here, and mean what they say"


@check("mp.03", "order of clipping and loss scale", trains=False)
def clip_order(facts: Facts, reference: Any) -> Said:
    clips = 0
    for function in _functions(facts):
        calls = {name: [c.lineno for c in _calls(function, names)] for name, names in
                 (("clip", _CLIPS), ("unscale", _UNSCALES))}  # fmt: skip
        clips += len(calls["clip"])
        if calls["clip"] and calls["unscale"] and min(calls["clip"]) < min(calls["unscale"]):
            return (
                FOUND,
                f"{function.name} clips in line {min(calls['clip'])}, unscales in {min(calls['unscale'])}",
            )
        if calls["clip"] and not calls["unscale"] and is_mixed(facts):
            line = min(calls["clip"])
            return NEEDS_YOU, f"{function.name} clips in line {line}; see that gradients are unscaled before"
    return NOT_FOUND, f"{clips} calls that clip, none before the gradients are unscaled"


@check("mp.04", "gradient penalty and loss scale", trains=False)
def gradient_penalty(facts: Facts, reference: Any) -> Said:
    differentiated = {
        argument.id
        for call in ast.walk(_tree(facts)) if isinstance(call, ast.Call) and _name(call) in _GRADIENTS
        for argument in call.args[:1] if isinstance(argument, ast.Name)
    }  # fmt: skip
    for function in _functions(facts):
        inner = _calls(function, _GRADIENTS)
        if not inner or function.name not in differentiated | {"construct"}:
            continue
        where = f"{function.name} takes a gradient in line {inner[0].lineno} and is differentiated itself"
        if not _calls(function, ("scale",)):
            return NOT_FOUND, f"{where}; its inner loss is not scaled"
        unscaled = bool(_calls(function, _UNSCALES))
        return (
            NOT_FOUND if unscaled else FOUND
        ), f"{where}; the inner gradient is {'un' if unscaled else ''}scaled"
    return NOT_FOUND, "no gradient of a gradient is taken"


def _tree(facts: Facts) -> ast.Module:
    if facts.source is None:
        return ast.Module([], [])
    try:
        return ast.parse(facts.source.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, OSError):
        return ast.Module([], [])  # the script did not run either


def _functions(facts: Facts) -> Iterator[_Function]:
    return (n for n in ast.walk(_tree(facts)) if isinstance(n, _Function))


def _calls(function: _Function, names: tuple[str, ...]) -> list[ast.Call]:
    return [n for n in ast.walk(function) if isinstance(n, ast.Call) and _name(n) in names]


def _name(call: ast.Call) -> str:
    """The last part of what is called."""
    target = call.func
    return (
        target.attr
        if isinstance(target, ast.Attribute)
        else target.id
        if isinstance(target, ast.Name)
        else ""
    )
