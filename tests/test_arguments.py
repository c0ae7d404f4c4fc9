"""No public function has an argument that its code does not mention.

An argument that nothing follows is named by `ignored.arguments`, which warns of it; one whose promise holds
whatever it says is deleted, with the reason beside it.
"""

from __future__ import annotations

import ast
import functools
import gzip
import importlib
import inspect
import textwrap
from pathlib import Path

import pytest

import mycelia as ms
from mycelia.engine.base import ignored
from mycelia.parallel.auto_parallel import AutoParallel

SURFACE = Path(__file__).resolve().parent.parent / "docs" / "api-surface.tsv.gz"


def _public_objects():
    """What mycelia has of MindSpore's public names, each once."""
    found = {}
    with gzip.open(SURFACE, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            parts = line.split("\t")[0].replace("mindspore", "mycelia", 1).split(".")
            thing = _resolved(parts)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found[id(thing)] = thing
    return list(found.values())


def _resolved(parts: list[str]):
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for name in parts[cut:]:
            thing = getattr(thing, name, None)
        return thing
    return None


def _own(thing) -> bool:
    return (getattr(thing, "__module__", None) or "").startswith("mycelia")


def _functions():
    """Public functions, and public methods that stand for no method of a base or a subclass."""
    for thing in _public_objects():
        if not _own(thing):
            continue
        if inspect.isfunction(thing):
            if "." not in thing.__qualname__.replace("<locals>.", ""):
                yield thing
            continue
        relatives = [*thing.__mro__[1:], *_below(thing)]
        for name, member in vars(thing).items():
            member = getattr(member, "__func__", member)
            if not inspect.isfunction(member) or (name.startswith("_") and name != "__init__"):
                continue
            if name == "__init__" or not any(name in vars(other) for other in relatives):
                yield member


def _below(kind: type) -> set[type]:
    found = set()
    for child in type.__subclasses__(kind):
        found |= {child} | _below(child)
    return found


def _unmentioned(function) -> list[str]:
    told = set()
    while True:
        told |= set(getattr(function, "ignored", ()))
        if not hasattr(function, "__wrapped__"):
            break
        function = function.__wrapped__
    try:
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndentationError):
        return []  # made by exec
    if not isinstance(definition, ast.FunctionDef) or isinstance(definition.body[-1], ast.Raise):
        return []  # what always raises follows nothing
    if _is_empty(definition) and definition.name in _attributes_that_are_read():
        return []  # a hook: subclasses give it a body, and something calls it
    marks = {n.id for d in definition.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
    if marks & {"prim_attr_register", "abstractmethod", "overload"}:
        return []
    arguments = definition.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
    used = {n.id for part in definition.body for n in ast.walk(part) if isinstance(n, ast.Name)}
    if "locals" in used:
        return []
    return [n for n in names if n not in used | told and n not in ("self", "cls") and n[0] != "_"]


def _is_empty(definition: ast.FunctionDef) -> bool:
    """Whether it has a docstring, and at most returns a constant."""
    rest = [s for s in definition.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return all(isinstance(s, ast.Return) and isinstance(s.value, (ast.Constant, type(None))) for s in rest)


@functools.cache
def _attributes_that_are_read() -> set[str]:
    trees = (ast.parse(p.read_text(encoding="utf-8")) for p in Path(ms.__file__).parent.rglob("*.py"))
    nodes = [node for tree in trees for node in ast.walk(tree)]
    by_name = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}  # getattr
    return by_name | {n.attr for n in nodes if isinstance(n, ast.Attribute)}


def test_every_argument_is_mentioned():
    found = {}
    count = 0
    for function in _functions():
        count += 1
        names = _unmentioned(function)
        if names:
            found[f"{function.__module__}.{function.__qualname__}"] = names
    assert count > 2000
    assert found == {}


# ---- what the decorator does -------------------------------------------------------------------------------


@ignored.arguments(b="b is left out", c="c is left out", options="there is no such option")
def _example(a, b=1, *, c=None, **options):
    return a


def test_an_argument_that_there_is_not_is_refused():
    with pytest.raises(TypeError, match=r"has no arguments \['c'\]"):
        ignored.arguments(c="c is left out")(lambda a, *b: a)


def test_defaults_are_not_warned_of(warned):
    assert _example(3) == _example(3, 1) == _example(a=3, b=1, c=None) == 3
    assert not warned


@pytest.mark.parametrize(
    ("args", "named", "words"),
    [
        ((3, 2), {}, "b=2 has no effect: b is left out"), ((3,), {"b": 2}, "b=2 has no effect"),
        ((3, True), {}, "b=True"), ((3,), {"c": 0}, "c=0 has no effect: c is left out"),
        ((3,), {"d": "x" * 200}, "there is no such option"),
    ],
)  # fmt: skip
def test_other_values_are_warned_of_once(args, named, words, warned):
    assert _example(*args, **named) == _example(*args, **named) == 3
    (text,) = warned
    assert words in text and text.startswith("_example: ") and len(text) < 200


def _numbers():
    return ms.dataset.NumpySlicesDataset([1, 2, 3], ["x"])


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: ms.nn.Dense(2, 2).set_data_parallel(), "no other process takes part"),
        (lambda: ms.nn.Dense(2, 2).offload(), "values stay where they are"),
        (lambda: ms.nn.Dense(2, 2).recompute(mp_comm_recompute=False), "nothing is communicated"),
        (lambda: ms.Model(ms.nn.Dense(2, 2), boost_level="O1"), "boost.GradientFreeze"),
        (lambda: ms.Profiler(start_profile=False, l2_cache=True), "measured on the host"),
        (lambda: ms.nn.Adam(ms.nn.Dense(2, 2).trainable_params(), use_lazy=True), "gradients are dense"),
        (lambda: ms.runtime.set_memory(init_size="4GB"), "taken as it is needed"),
        (lambda: AutoParallel(ms.nn.Dense(2, 2)).hsdp(), "one process computes all"),
        (lambda: ms.nn.DistributedGradReducer([], degree=8), "not added"),
        (lambda: ms.ops.Add().set_device("GPU"), "device target runs the op"),
        (lambda: ms.nn.SyncBatchNorm(2, process_groups=[[0]]), "no other process takes part"),
        (lambda: _numbers().map(abs, offload=True), "run on the host"),
        (lambda: ms.ops.Add().set_stage(1), "not cut into stages"),
        (lambda: ms.ops.Add().place("MS_WORKER", 1), "no other process"),
        (lambda: ms.ops.Add().recompute(), "results are kept"),
        (lambda: ms.ops.Add().shard(((2,), (2,))), "no other process"),
    ],
)  # fmt: skip
def test_what_nothing_follows_is_warned_of(use, words, warned):
    use()
    use()
    (text,) = warned
    assert words in text


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (lambda: ms.nn.Dense(2, 2).recompute(foo=1), ValueError, "mp_comm_recompute"),
        (lambda: ms.nn.Dense(2, 2).recompute(mp_comm_recompute=3), TypeError, "must be a bool"),
        (lambda: ms.Model(ms.nn.Dense(2, 2), boost_level="O9"), ValueError, "boost_level must be one of"),
    ],
)  # fmt: skip
def test_bad_values_of_such_arguments_are_refused(use, error, words):
    with pytest.raises(error, match=words):
        use()


def test_a_network_of_several_stages_does_not_run_alone():
    net = AutoParallel(ms.nn.Dense(2, 2))
    net.pipeline(stages=2)
    with pytest.raises(RuntimeError, match="2 stages need as many processes"):
        net(ms.ops.ones((1, 2)))
