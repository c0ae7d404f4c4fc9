"""Import paths: public ones mean the module where it lies, deep ones of MindSpore work below `mycelia`."""

import importlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import mycelia as ms
from mycelia import public_names as names
from mycelia.faces import compat
from mycelia.faces.compat import paths


@pytest.mark.parametrize("path", sorted(names.MODULES))
def test_a_public_path_is_the_module_itself(path):
    alias = importlib.import_module(f"mycelia.{path}")
    real = importlib.import_module(f"mycelia.{names.MODULES[path]}")
    assert alias is real and real.__name__ == real.__spec__.name == f"mycelia.{names.MODULES[path]}"


def own_modules() -> list[str]:
    """The modules of the core by their paths below it, as they lie."""
    root = Path(ms.__file__).parent
    files = [path.relative_to(root).with_suffix("") for path in root.rglob("*.py")]
    return sorted(".".join(f.parts[:-1] if f.name == "__init__" else f.parts) for f in files)


def test_files_that_are_folders_in_mindspore_are_listed():
    root = Path(ms.__file__).parent
    above = {path.rpartition(".")[0] for path in paths.KNOWN}
    files = {
        names.public(p)
        for p in own_modules()
        if p and not (root / p.replace(".", "/") / "__init__.py").exists()
    } | {"nn.probability.bijector", "nn.probability.distribution"}
    assert files & above == names.FOLDERS_TOO


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("Parameter", "mycelia.tensor.Parameter"),
        ("errors.ShapeError", "mycelia.errors.ShapeError"),
        ("mint.optim.AdamW", "mycelia.mint.optim.adam.AdamW"),
        ("experimental.optim.Adam", "mycelia.experimental.optim.adam.Adam"),
        ("nn.Dense", "mycelia.nn.dense.Dense"),
    ],
)
def test_classes_say_their_public_path(value, shown):
    found = ms
    for name in value.split("."):
        found = getattr(found, name)
    assert repr(found) == f"<class '{shown}'>" and pickle.loads(pickle.dumps(found)) is found
    assert inspect.getsource(found).startswith(("class ", "@"))


@pytest.mark.parametrize(
    "path", ["mint", "mint.nn", "numpy", "scipy", "hal", "compile", "errors", "nn", "ops"]
)
def test_messages_name_the_public_path(path):
    module = importlib.import_module(f"mycelia.{path}")
    with pytest.raises(AttributeError, match=f"^module 'mycelia.{path}' has no attribute 'Fuu'") as caught:
        module.Fuu  # noqa: B018
    assert caught.value.name == "Fuu"


def test_no_class_of_a_module_with_a_public_path_shows_where_it_lies():
    hidden = set()
    for path in own_modules():
        if names.public(path) != path and path.startswith(("engine.", "faces.")):
            module = importlib.import_module(f"mycelia.{path}")
            hidden |= {v for v in vars(module).values() if getattr(v, "__module__", "") == module.__name__}
    assert {v for v in hidden if isinstance(v, type)} == set()


def test_modules_below_an_alias_are_not_loaded_twice():
    code = """
import mycelia.engine.ir.types, mycelia.ir.types, mycelia.mint.nn.functional, mycelia.ops.operations.math_ops
import sys
files = {}
for name, module in sys.modules.items():
    if name.startswith("mycelia.") and getattr(module, "__file__", None):
        files.setdefault(module.__file__, set()).add(id(module))
assert all(len(found) == 1 for found in files.values()), files
assert mycelia.ir.types is mycelia.engine.ir.types
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("path", "names_in_it"),
    [
        ("common.tensor", "Tensor"),
        ("common.dtype", "float32 int64"),
        ("common.api", "jit ms_function"),
        ("common.initializer", "initializer Normal"),
        ("train.callback", "LossMonitor"),
        ("train.serialization", "load_checkpoint save_checkpoint"),
        ("train.metrics.topk", "Top1CategoricalAccuracy"),
        ("ops.function", "add"),
        ("ops.function.math_func", "add tanh"),
        ("ops.operations.math_ops", "Add MatMul"),
        ("ops.functional", "depend"),
        ("nn.optim", "ASGD Adam"),
        ("nn.layer.basic", "Dense"),
        ("nn.wrap.cell_wrapper", "TrainOneStepCell"),
        ("dataset.vision.utils", "Inter"),
        ("dataset.vision.c_transforms", "Resize"),
    ],
)
def test_deep_paths_of_mindspore(path, names_in_it):
    code = f"""
from mycelia.{path} import {names_in_it.replace(" ", ", ")}
import sys
assert "mindspore" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_found_is_ours():
    from mycelia.common.tensor import Tensor
    from mycelia.nn.layer.basic import Dense

    assert Tensor is ms.Tensor and Dense is ms.nn.Dense and ms.nn.layer.basic.Dense is Dense


RENAMED = {target for family in paths.RENAMED.values() for target in family.values() if ":" in target}


@pytest.mark.parametrize("target", sorted(RENAMED))
def test_what_replaced_a_name_is_there(target):
    where, _, name = target.partition(":")
    own = "mycelia" if where == "." else f"mycelia.{where}"
    assert hasattr(importlib.import_module(where if where in ("builtins", "operator") else own), name)


def test_fronts_of_the_other_name_are_forgotten():
    with compat.active():
        importlib.import_module("mindspore.nn.layer.basic")
    assert ms.nn.layer.__name__ == "mycelia.nn.layer" and ms.nn.layer.basic.Dense is ms.nn.Dense


def test_what_nobody_has_is_said_with_the_path_that_was_asked_for():
    with pytest.raises(ModuleNotFoundError, match="mycelia.nothing"):
        importlib.import_module("mycelia.nothing")
    with pytest.raises(AttributeError, match="module 'mycelia.common.tensor' has no attribute 'Tenser'"):
        importlib.import_module("mycelia.common.tensor").Tenser  # noqa: B018
    with pytest.raises(AttributeError, match="'mycelia.nn' has no attribute 'Dence'"):
        ms.nn.Dence  # noqa: B018
