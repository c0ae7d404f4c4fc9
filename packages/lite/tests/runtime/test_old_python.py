"""The runtime's modules serve every Python from 3.9 on and need nothing but NumPy."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mycelia_lite
from mycelia_lite import runtime

PACKAGE = Path(mycelia_lite.__file__).parent
FIXTURES = Path(__file__).parents[1] / "fixtures"
# The environment of a test of Serving, which is made where Python 3.9 is installed.
OLD_PYTHON = Path(__file__).parents[4] / ".venv-serving-client" / "bin" / "python"
TYPES = {"bool", "bytes", "dict", "float", "int", "list", "str", "tuple"}
NEWER_ARGUMENTS = {"slots", "kw_only", "match_args", "strict"}  # of dataclass and zip, since 3.10

RUN = """
import sys
for name in ("mycelia", "rich", "typer"):
    sys.modules[name] = None  # an import of it fails
import numpy as np
import mycelia_lite as mslite
import mycelia_lite.benchmark
context = mslite.Context()
context.target = ["cpu"]
context.cpu.thread_num = 1
model = mslite.Model()
model.build_from_file(sys.argv[1], mslite.ModelType.MINDIR_LITE, context)
held = np.load(sys.argv[2])
inputs = model.get_inputs()
for tensor in inputs:
    tensor.set_data_from_numpy(held[tensor.name])
outputs = model.predict(inputs)
np.testing.assert_allclose(outputs[0].get_data_to_numpy(), held["y"], rtol=1e-4, atol=1e-5)
try:
    mslite.Converter
except ImportError as error:
    print(error)
print(*sorted(name for name in sys.modules if name.startswith("mycelia_lite")))
"""


def ran(python: str, folder: Path) -> list[str]:
    """Lines of `RUN` by a Python that finds the package in `folder`."""
    (folder / "mycelia_lite").mkdir()
    for file in PACKAGE.glob("*.py"):
        (folder / "mycelia_lite" / file.name).symlink_to(file)
    (folder / "mycelia_lite" / "_runtime").symlink_to(runtime.folder())
    files = [str(FIXTURES / "convnet.ms"), str(FIXTURES / "convnet_answer.npz")]
    done = subprocess.run(
        [python, "-c", RUN, *files],
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_runtime_needs_neither_core_nor_new_python(tmp_path):
    *_, modules = ran(sys.executable, tmp_path)
    assert {"mycelia_lite.model", "mycelia_lite.runner", "mycelia_lite.benchmark"} <= set(modules.split())
    for name in modules.split():
        file = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
        file = file if file.is_file() else PACKAGE / "__init__.py"
        newer = newer_than_39(file.read_text())
        assert newer == [], (file, newer)


def newer_than_39(source: str) -> list[int]:
    """Lines that Python 3.9 cannot parse or, where they are not annotations, cannot evaluate."""
    tree = ast.parse(source, feature_version=(3, 9))
    unevaluated = {id(n) for n in ast.walk(tree) for a in _annotations(n) for n in ast.walk(a)}
    found = []
    for node in ast.walk(tree):
        if id(node) in unevaluated:
            continue
        if isinstance(node, ast.Match):
            found.append(node.lineno)
        if isinstance(node, ast.Call):
            found += [node.lineno for k in node.keywords if k.arg in NEWER_ARGUMENTS]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = (node.left, node.right)
            if any(isinstance(s, ast.Name) and s.id in TYPES for s in sides) or any(
                isinstance(s, ast.Constant) and s.value is None for s in sides
            ):
                found.append(node.lineno)
    return found


def _annotations(node: ast.AST) -> list[ast.AST]:
    return [a for a in (getattr(node, "annotation", None), getattr(node, "returns", None)) if a is not None]


@pytest.mark.parametrize(
    "source, lines",
    [
        ("def f(x: int | None) -> str | None: ...", []),
        ("Text = str | None", [1]),
        ("isinstance(x, int | float)", [1]),
        ("a = b | c", []),
        ("dict(x) | dict(y)", []),
        ("zip(a, b, strict=True)", [1]),
    ],
)
def test_the_search_finds_what_is_newer(source, lines):
    assert newer_than_39(source) == lines


def test_a_real_old_python_runs_a_model(tmp_path):
    if not OLD_PYTHON.exists():
        pytest.skip("run: hatch env create serving-client")
    told, _ = ran(str(OLD_PYTHON), tmp_path)
    assert told.startswith("mycelia_lite.Converter needs Python 3.11 or newer")
