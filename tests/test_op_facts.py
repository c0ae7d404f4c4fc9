"""What is known of an op stands in its block: others name ops only where they look for a pattern of them."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from mycelia.ops.define import find, registry

ROOT = Path(__file__).parents[1] / "packages" / "core" / "src" / "mycelia"
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


def _texts(tree: ast.Module):
    """String constants with their lines: no docstrings, annotations, exported names or parts of messages."""
    skipped = set()
    for node in ast.walk(tree):
        parts: list = []
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            first = node.body[0] if node.body else None
            parts = [first] if isinstance(first, ast.Expr) else []
        elif isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            parts = [node]
        elif isinstance(node, ast.arg) and node.annotation is not None:
            parts = [node.annotation]
        elif isinstance(node, ast.JoinedStr):
            parts = [node]
        skipped.update(id(n) for part in parts for n in ast.walk(part))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def _named(tree: ast.Module, names: set[str]):
    for text in _texts(tree):
        if text in names:
            yield text
        elif len(text.split()) > 3 and not re.search(r"[.:,;()%{]", text):
            yield from (word for word in text.split() if word in names)


def _sources():
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(FACES) and not name.endswith("_pb2.py"):
            yield name, ast.parse(path.read_text())


def _names() -> set[str]:
    find("add")  # all families are loaded
    return {n for n, op in registry.items() if op.definition.module.startswith("mycelia.")} - WORDS


def count(sources) -> dict[str, set[str]]:
    """The files that name each op. Families of ops count as one: steps of fused programs, choices of
    attributes and the bodies of neighbours have the same names.
    """
    found: dict[str, set[str]] = defaultdict(set)
    names = _names()
    for file, tree in sources:
        place = "engine/ops" if file.startswith("engine/ops/") else file
        if file.startswith(("engine/", "io/", "nn/precision.py", "train/amp.py", "profiler/", "ops/")):
            for name in _named(tree, names):
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


def _lists(tree: ast.Module, names: set[str]):
    """Lines of collections that are mostly names of ops."""
    for node in ast.walk(tree):
        words: list[str] = []
        if isinstance(node, (ast.Set, ast.List, ast.Tuple)):
            words = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        elif isinstance(node, ast.Dict):
            words = [k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split() if not re.search(r"[.:,;()%{]", node.value) else []
        known = [w for w in words if w in names]
        if len(known) >= 5 and 2 * len(known) > len(words):
            yield node.lineno


def _exported(tree: ast.Module) -> set[int]:
    return {
        n.lineno
        for node in tree.body
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets)
        for n in ast.walk(node)
        if hasattr(n, "lineno")
    }


def test_no_list_of_ops_beside_the_blocks():
    names = _names()
    found = {
        f"{file}:{line}"
        for file, tree in _sources()
        if file not in LISTS
        for line in set(_lists(tree, names)) - _exported(tree)
    }
    assert found == set()


def _operators() -> set[str]:
    """What the operators of ops are called in files."""
    find("add")  # all families are loaded
    return {op.definition.mindir for op in registry.values() if op.definition.mindir}


def test_no_list_of_operators_in_what_reads_and_writes_files():
    names = _operators()
    found = {
        file: sorted(set(_lists(tree, names)) - _exported(tree))
        for file, tree in _sources()
        if file.startswith(("io/", "engine/")) and file != "io/onnx/types.py"  # of ONNX's own operators
    }
    assert {file: lines for file, lines in found.items() if lines} == {}
    assert list(_lists(ast.parse("STYLE = ('LRN', 'Mish', 'SeLU', 'Tril', 'Stack')"), names)) == [1]


def test_a_list_of_ops_is_found():
    tree = ast.parse("_MOVES = frozenset('reshape flip tile roll transpose'.split())")
    assert list(_lists(tree, _names())) == [1]
    tree = ast.parse("_COST = {'mish': 8, 'gelu': 8, 'silu': 4, 'tanh': 3, 'relu': 1}")
    assert list(_lists(tree, _names())) == [1]
    assert count([("engine/a.py", tree)])["mish"] == {"engine/a.py"}


def test_families_say_what_they_export():
    text = (ROOT / "engine/ops/__init__.py").read_text()
    modules = re.findall(r"^from mycelia\.(\S+) import \*", text, re.MULTILINE)
    assert modules
    for module in modules:
        tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
        assert _exported(tree), f"{module} has no __all__: its imports would be public functions"
