"""What is known of an op stands in its block: others name ops only where they look for a pattern of them."""

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from mycelia.ops.define import find, registry

ROOT = Path(__file__).parents[1] / "packages" / "core" / "src" / "mycelia"
LONG = 5  # strings that make a list
MOST = 5  # files that name an op: its own, the rules of two formats, two more

#: Folders whose tables are their public names, or the formats' (a name of an operator and what it becomes).
FACES = ("faces", "ops/functional.py", "ops/hybrid.py", "nn/activation.py", "nn/class_losses.py", "names.py")
#: Texts that are choices of an attribute or names of methods far more often than names of ops.
WORDS = frozenset(
    "all any ceil where sum mean prod real round log linear conj split unique inverse stack".split()
)
#: Ops that passes of the compiler, tracing and the formats look for, and why.
EXCEPTIONS = {
    "arithmetic and shapes: patterns that simplification, attention and fusion look for, Python's operators":
        "add sub mul div neg abs pow maximum minimum equal not_equal less less_equal greater greater_equal "
        "bitwise_and bitwise_or square reshape transpose broadcast_to tanh relu relu6 clip cast sum_to",
    "products and convolutions: the compiler gives them forms of their own":
        "conv conv_input_grad conv_weight_grad conv_last conv_pack dense batch_matmul attention",
    "control flow: each pass goes into its regions": "cond",
    "two operators of MindIR; fused, computed again and divided by rules of its own": "batch_norm_train",
}  # fmt: skip
#: Files with a list of ops, and why it is no fact of an op.
LISTS = {
    "engine/capture/numbers.py": "operators of Python that give numbers of numbers",
    "engine/tensors/tensor.py": "what Tensor's operators call",
    "engine/compile/passes/recompute.py": "ops that are cheaper than memory",
    "engine/compile/passes/simplify.py": "ops that change nothing when they are done twice",
    "engine/compile/executable.py": "ops that run a program",
    "engine/ops/lowered/fused_steps.py": "steps of fused programs, and which are light",
    "engine/ops/lowered/packed.py": "activations that kernels of products have",
    "engine/ops/linalg/sparse.py": "functions that MindSpore has for sparse tensors, too",
    "engine/ops/methods/numeric.py": "methods of Tensor whose signature is not that of the op",
    "engine/ops/methods/shape.py": "methods of Tensor whose signature is not that of the op",
    "engine/ops/methods/overloads.py": "methods of Tensor whose signature is not that of the op",
    "engine/ops/type_names.py": "MindSpore's names of operators whose arguments differ from the op's",
    "debug/conditions/check.py": "types of operators that MindSpore's debugger takes for activations",
    "debug/conditions/overflow.py": "types of operators whose integers wrap around, with exact results",
    "io/mindir/operators/math.py": "operators of MindSpore whose name is not that of an op",
}


class Source(NamedTuple):
    """What a module says of ops, in a form that is kept: trees of all modules would take hundreds of MB."""

    texts: list[str]  # string constants: no docstrings, annotations, exported names or parts of messages
    collections: list[tuple[int, list[str]]]  # lines of literals and texts, with their strings
    exported: set[int]  # lines of __all__


def _read(text: str) -> Source:
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    skipped, exported = set(), set()
    for node in nodes:
        parts: list = []
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            first = node.body[0] if node.body else None
            parts = [first] if isinstance(first, ast.Expr) else []
        elif isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            parts = [node]
            exported |= {n.lineno for n in ast.walk(node) if hasattr(n, "lineno")}
        elif isinstance(node, ast.arg) and node.annotation is not None:
            parts = [node.annotation]
        elif isinstance(node, ast.JoinedStr):
            parts = [node]
        skipped.update(id(n) for part in parts for n in ast.walk(part))
    texts, collections = [], []
    for node in nodes:
        words: list[str] = []
        if isinstance(node, (ast.Set, ast.List, ast.Tuple)):
            words = _strings(node.elts)
        elif isinstance(node, ast.Dict):
            words = _strings(node.keys)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split() if not re.search(r"[.:,;()%{]", node.value) else []
            if id(node) not in skipped:
                texts.append(node.value)
        if len(words) >= LONG:
            collections.append((node.lineno, words))
    return Source(texts, collections, exported)


def _strings(nodes) -> list[str]:
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def _named(source: Source, names: set[str]):
    for text in source.texts:
        if text in names:
            yield text
        elif len(text.split()) > 3 and not re.search(r"[.:,;()%{]", text):
            yield from (word for word in text.split() if word in names)


@functools.cache
def _sources() -> dict[str, Source]:
    names = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
    return {
        name: _read(path.read_text())
        for name, path in names.items()
        if not name.startswith(FACES) and not name.endswith("_pb2.py")
    }


def _names() -> set[str]:
    find("add")  # all families are loaded
    return {n for n, op in registry.items() if op.definition.module.startswith("mycelia.")} - WORDS


def count(sources: dict[str, Source]) -> dict[str, set[str]]:
    """The files that name each op. Families of ops count as one: steps of fused programs, choices of
    attributes and the bodies of neighbours have the same names.
    """
    found: dict[str, set[str]] = defaultdict(set)
    names = _names()
    for file, source in sources.items():
        place = "engine/ops" if file.startswith("engine/ops/") else file
        if file.startswith(("engine/", "io/", "nn/precision.py", "train/amp.py", "profiler/", "ops/")):
            for name in _named(source, names):
                found[name].add(place)
    return found


def test_few_files_name_an_op():
    excepted = {name for names in EXCEPTIONS.values() for name in names.split()}
    many = {n: sorted(files) for n, files in count(_sources()).items() if len(files | {"engine/ops"}) > MOST}
    assert {n: files for n, files in many.items() if n not in excepted} == {}


def test_the_exceptions_are_ops():
    assert {n for names in EXCEPTIONS.values() for n in names.split()} <= set(registry)


def test_mish_and_layer_norm_stand_in_one_block():
    found = count(_sources())
    assert found["mish"] == {"engine/ops"}
    rules = {"io/mindir/rules/normalization.py", "io/onnx/rules/layers.py"}
    assert found["layer_norm"] <= {"engine/ops", *rules}


def _lists(source: Source, names: set[str]) -> set[int]:
    """Lines of collections that are mostly names of ops, and not exported."""
    known = ((line, len(words), sum(w in names for w in words)) for line, words in source.collections)
    return {line for line, all_of_it, ops in known if ops >= LONG and 2 * ops > all_of_it} - source.exported


def test_no_list_of_ops_beside_the_blocks():
    names = _names()
    found = {
        f"{file}:{line}"
        for file, source in _sources().items()
        if file not in LISTS
        for line in _lists(source, names)
    }
    assert found == set()


def _operators() -> set[str]:
    """What the operators of ops are called in files."""
    find("add")  # all families are loaded
    return {op.definition.mindir for op in registry.values() if op.definition.mindir}


def test_no_list_of_operators_in_what_reads_and_writes_files():
    names = _operators()
    found = {
        file: sorted(_lists(source, names))
        for file, source in _sources().items()
        if file.startswith(("io/", "engine/")) and file != "io/onnx/types.py"  # of ONNX's own operators
    }
    assert {file: lines for file, lines in found.items() if lines} == {}
    assert _lists(_read("STYLE = ('LRN', 'Mish', 'SeLU', 'Tril', 'Stack')"), names) == {1}


def test_a_list_of_ops_is_found():
    moves = _read("_MOVES = frozenset('reshape flip tile roll transpose'.split())")
    assert _lists(moves, _names()) == {1}
    costs = _read("_COST = {'mish': 8, 'gelu': 8, 'silu': 4, 'tanh': 3, 'relu': 1}")
    assert _lists(costs, _names()) == {1}
    assert count({"engine/a.py": costs})["mish"] == {"engine/a.py"}


def test_families_say_what_they_export():
    text = (ROOT / "engine/ops/__init__.py").read_text()
    modules = re.findall(r"^from mycelia\.(\S+) import \*", text, re.MULTILINE)
    assert modules
    for module in modules:
        source = _read((ROOT / f"{module.replace('.', '/')}.py").read_text())
        assert source.exported, f"{module} has no __all__: its imports would be public functions"
