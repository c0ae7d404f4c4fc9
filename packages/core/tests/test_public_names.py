"""`import mycelia` is light, and every public name it promises exists."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import mycelia as ms


def loaded_after(statement: str) -> set[str]:
    """The modules in a fresh process after one statement."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_import_loads_neither_numpy_nor_plugins_nor_anything_heavy():
    loaded = loaded_after("import mycelia")
    assert not loaded & {
        "numpy",
        "pluggy",
        "google.protobuf",
        "typer",
        "rich",
        "importlib.metadata",
        "logging",
    }
    assert {m for m in loaded if m.startswith("mycelia")} == {"mycelia", "mycelia.public_names"}


@pytest.mark.parametrize("module", ["errors", "config", "log", "hookspecs", "plugins"])
def test_lowest_modules_need_no_numpy(module):
    assert "numpy" not in loaded_after(f"import mycelia.{module}")


def test_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert ms.__version__ == version("mycelia-core")


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(AttributeError, match="has no attribute 'set_contxt'; did you mean set_context"):
        ms.set_contxt  # noqa: B018


@pytest.mark.parametrize("name", sorted(set(ms.__all__)))
def test_public_name_exists(name):
    assert getattr(ms, name) is not None


def test_modes_are_mindspores_numbers():
    assert (ms.GRAPH_MODE, ms.PYNATIVE_MODE) == (0, 1)
    assert ms.context.GRAPH_MODE == ms.GRAPH_MODE


def test_names_that_ops_looks_up_late_are_there():
    from mycelia import ops

    missing = [n for n, module in ops._LATE.items() if not hasattr(importlib.import_module(module), n)]
    assert missing == []


def test_ops_lists_the_same_names_whatever_was_looked_up():
    code = "from mycelia import ops; a = set(ops.__all__); ops.csr_add, ops.vjp; assert a == set(ops.__all__)"
    subprocess.run([sys.executable, "-c", code], check=True)
