"""Reads the source of a method that is written with `call_preprocess`, `call_servable`, `call_postprocess`.

These calls do not say how many results they have: the assignment does, `x1, x2 = call_preprocess(f, x)`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable

CALLS = (
    "call_preprocess",
    "call_preprocess_pipeline",
    "call_servable",
    "call_postprocess",
    "call_postprocess_pipeline",
)


def result_counts(function: Callable, outputs: int) -> dict[str, int]:
    """How many results each of these calls has in the source of `function`, a method with so many outputs.

    Errors: RuntimeError for statements other than plain assignments, and if the model is never called.
    """
    name = function.__name__
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:
        raise RuntimeError(f"The source of method '{name}' cannot be read: {error}; use add_stage") from error
    body = tree.body[0].body
    counts: dict[str, int] = {}
    for statement in body:
        call = _called(statement.value) if isinstance(statement, ast.Assign | ast.Return) else ""
        if call in CALLS:
            counts[call] = outputs if isinstance(statement, ast.Return) else _targets(statement, name)
            if _mentions(statement) != [call]:
                raise _too_complex(name, function, statement)
        elif not _is_plain(statement):
            raise _too_complex(name, function, statement)
    if "call_servable" not in counts:
        raise RuntimeError(
            f"The method '{name}' has no call_servable; use add_stage for methods without a model"
        )
    return counts


def _called(value: ast.expr | None) -> str:
    """The last name of what is called: `register.call_servable(...)` is `call_servable`."""
    if not isinstance(value, ast.Call):
        return ""
    if isinstance(value.func, ast.Attribute):
        return value.func.attr
    return value.func.id if isinstance(value.func, ast.Name) else ""


def _mentions(node: ast.AST) -> list[str]:
    return [name for part in ast.walk(node) if (name := _called(part)) in CALLS]


def _targets(statement: ast.Assign, method: str) -> int:
    target = statement.targets[0]
    if len(statement.targets) == 1 and isinstance(target, ast.Name):
        return 1
    if len(statement.targets) == 1 and isinstance(target, ast.Tuple | ast.List):
        if not any(isinstance(part, ast.Starred) for part in target.elts):
            return len(target.elts)
    raise RuntimeError(
        f"The method '{method}' should assign the results of {_called(statement.value)} to names: "
        f"{ast.unparse(statement)}"
    )


def _is_plain(statement: ast.stmt) -> bool:
    """Whether it may stand beside these calls: a docstring, `return x, y`, `x = y`."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if not isinstance(statement, ast.Assign | ast.Return):
        return False
    return not any(isinstance(part, ast.Call | ast.IfExp) for part in ast.walk(statement))


def _too_complex(method: str, function: Callable, statement: ast.stmt) -> RuntimeError:
    line = function.__code__.co_firstlineno + statement.lineno - 1
    first = ast.unparse(statement).splitlines()[0]
    return RuntimeError(
        f"The method '{method}' uses call_preprocess, call_servable or call_postprocess; beside these only "
        f"plain assignments are understood, no conditions, loops or other calls: use add_stage instead. "
        f"Line {line}: {first}"
    )
