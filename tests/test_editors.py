"""Types for editors in the editable environment: stubs are current, complete and right."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms

ROOT = Path(__file__).resolve().parent.parent
for folder in (ROOT / "tools", ROOT / "tests"):
    sys.path.insert(0, str(folder))
try:
    import editor_tools
    import public_paths
    import return_types
    from editor_expectations import *  # noqa: F403
finally:
    del sys.path[:2]


def test_stubs_are_current():
    command = [sys.executable, str(ROOT / "tools" / "gen_stubs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}run: hatch run stubs"


MODULES = """
    nn ops mint mint.nn mint.nn.functional mint.optim numpy scipy.linalg dataset dataset.vision dataset.text
    dataset.audio train amp io experimental.optim parallel runtime hal mindrecord rewrite boost profiler
""".split()


def test_every_public_name_has_a_type(tmp_path):
    lines = ["import mycelia as ms", *(f"reveal_type(ms.{name})" for name in ms.__all__)]
    for path in MODULES:
        module = importlib.import_module(f"mycelia.{path}")
        public = [name for name in module.__all__ if not isinstance(getattr(module, name), types.ModuleType)]
        lines += [f"reveal_type(ms.{path}.{name})" for name in public]
    own = vars(ms.dataset.Dataset).items()
    methods = [name for name, value in own if isinstance(value, types.FunctionType) and name[0] != "_"]
    lines += [f"reveal_type(ms.dataset.Dataset.{name})" for name in methods]
    (tmp_path / "names.py").write_text("\n".join(lines))
    wrong = []
    for found in editor_tools.check(tmp_path, "names.py"):
        if found["severity"] == "error" or found["message"].endswith('is "Unknown"'):
            wrong.append(lines[found["range"]["start"]["line"]] + ": " + found["message"])
    assert wrong == []
    assert len(lines) > 2500


@pytest.mark.parametrize("path", ["ops", "mint", "mint.nn.functional", "numpy", "Tensor"])
def test_what_stubs_say_about_results_is_so(path):
    """Calls with one tensor, of those functions that take one: a result is of the type that the stub says."""
    owner = ms.Tensor if path == "Tensor" else importlib.import_module(f"mycelia.{path}")
    kinds = {"Tensor": ms.Tensor, "int": int, "float": float, "bool": bool, "str": str}
    kinds["None"] = type(None)
    checked, wrong = 0, []
    for name in public_paths.public_names(owner) if owner is not ms.Tensor else dir(owner):
        function = getattr(owner, name, None)
        if name.startswith("_") or not isinstance(function, (types.FunctionType, type(ms.ops.add))):
            continue
        said = return_types.of_method(name) if path == "Tensor" else return_types.of(function)
        if said is None:
            continue
        try:
            result = function(ms.Tensor(np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)))
        except Exception:
            continue  # it takes other arguments
        kind = tuple if said.startswith("tuple") else list if said.startswith("list") else kinds[said]
        checked += 1
        if not isinstance(result, kind):
            wrong.append((name, said, type(result)))
    assert wrong == [] and checked >= 20


def test_the_examples_pass_the_checker():
    done = subprocess.run(
        [str(Path(sys.executable).parent / "basedpyright")], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
