"""Plugins: found by entry point, loaded at the first hook call, left out with a message when they fail.

Each case runs in a process of its own, with distributions made on the spot.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = """
from mycelia.hookspecs import hookimpl
print("imported good")
HOOK_API = 1

class Device:
    name = "gooddevice"

@hookimpl
def mycelia_backends():
    return [Device()]
"""


@pytest.fixture
def install(tmp_path):
    """Make a distribution of one plugin module and metadata: `install("good", source)`."""

    def make(name: str, source: str, group: str = "mycelia") -> None:
        module = name.replace("-", "_") + "_plugin"
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")

    make.path = tmp_path
    return make


def run(code: str, path: Path, **env) -> subprocess.CompletedProcess:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MYCELIA_")}
    clean["PYTHONPATH"] = str(path)
    return subprocess.run([sys.executable, "-c", code], env={**clean, **env}, capture_output=True, text=True)


NAMES = "from mycelia import plugins\nprint([p.name for p in plugins.found() if not p.error])"
TARGETS = "from mycelia import plugins\nprint([b.name for b in plugins.backends()])"


def test_plugin_is_imported_with_the_first_hook_call_not_before(install):
    install("good", GOOD)
    result = run("import mycelia.plugins\nprint('ready')\nmycelia.plugins.manager()", install.path)
    assert result.stdout.split("\n")[:2] == ["ready", "imported good"], result.stderr


def test_hook_of_an_outside_distribution_is_heard(install):
    install("good", GOOD)
    result = run(TARGETS, install.path, MYCELIA_PLUGINS="good")
    assert "'gooddevice'" in result.stdout, result.stderr


def test_setting_limits_which_plugins_load(install):
    install("good", GOOD)
    assert "imported good" not in run(NAMES, install.path, MYCELIA_PLUGINS="").stdout
    result = run(NAMES, install.path, MYCELIA_PLUGINS="good,nobody")
    assert result.stdout.splitlines()[-1] == "['core', 'good']"
    assert "MYCELIA_PLUGINS names 'nobody', which is not installed" in result.stderr


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("HOOK_API = 99", "it is written for HOOK_API 99, mycelia-core has 1: update the mycelia-core"),
        (
            "from mycelia.hookspecs import hookimpl\n@hookimpl\ndef mycelia_backend(): pass",
            "unknown hook 'mycelia_backend'",
        ),
        (
            "from mycelia.hookspecs import hookimpl\n@hookimpl\ndef mycelia_passes(pipelines): pass",
            "Argument(s) {'pipelines'}",
        ),
    ],
    ids=["import-fails", "wrong-api", "unknown-hook", "wrong-argument"],
)
def test_broken_plugin_is_reported_once_with_its_distribution_and_skipped(install, source, reason):
    install("good", GOOD)
    install("broken-thing", source)
    result = run(NAMES + "\nplugins.manager()", install.path, MYCELIA_PLUGINS="good,broken-thing")
    assert result.stdout.splitlines()[-1] == "['core', 'good']", result.stderr
    assert result.stderr.count("plugin 'broken-thing' of distribution broken-thing cannot be loaded") == 1
    assert reason in result.stderr


def test_strict_setting_raises_instead(install):
    install("broken", "import no_such_module")
    result = run(NAMES, install.path, MYCELIA_PLUGINS="broken", MYCELIA_STRICT_PLUGINS="1")
    assert result.returncode != 0
    assert "MYC-PLUGIN plugin 'broken' of distribution broken cannot be loaded" in result.stderr


def test_backend_that_does_not_load_leaves_the_others(install):
    install("good", GOOD)
    install(
        "bad",
        "from mycelia.hookspecs import hookimpl\n@hookimpl\ndef mycelia_backends(): import no_such_library",
    )
    result = run(TARGETS, install.path, MYCELIA_PLUGINS="good,bad")
    assert "'gooddevice'" in result.stdout
    assert "the backend of distribution bad cannot be loaded: ModuleNotFoundError" in result.stderr


OPS = """
import numpy as np
from mycelia.hookspecs import hookimpl

@hookimpl
def mycelia_ops():
    return ["op_module"]

@hookimpl
def mycelia_kernels(backend_name):
    if backend_name == "cpu":
        return {("twice", "f32"): lambda x: print("kernel ran") or x + x}
"""
OP_MODULE = """
from mycelia.ops.define import op
from mycelia.ops.infer import same

@op(infer=same(), mindir="Twice")
def twice(x):
    return 2 * x
"""


def test_op_of_a_plugin_is_found_by_its_name_and_runs_on_the_plugins_kernel(install):
    install("twice", OPS)
    (install.path / "op_module.py").write_text(OP_MODULE)
    code = """
import sys, mycelia as ms
from mycelia.ops.define import find
assert "op_module" not in sys.modules
twice = find("twice")
print(twice(ms.Tensor([1.5])))
"""
    result = run(code, install.path, MYCELIA_PLUGINS="twice,backend-cpu")
    assert result.stdout.split("\n")[:2] == ["kernel ran", "[3.]"], result.stderr


def test_op_module_that_does_not_load_is_reported_and_skipped(install):
    install("twice", OPS)
    code = "from mycelia.ops.define import find\nprint(find('add').name)\nfind('twice')"
    result = run(code, install.path, MYCELIA_PLUGINS="twice")
    assert result.stdout == "add\n"
    assert "an op module of distribution twice cannot be loaded: ModuleNotFoundError" in result.stderr


def test_trace_prints_calls_and_results(install):
    install("good", GOOD)
    result = run(TARGETS, install.path, MYCELIA_PLUGINS="good", MYCELIA_TRACE_PLUGINS="1")
    assert "mycelia: hook mycelia_backends() asks good" in result.stderr
    assert "mycelia: hook mycelia_backends -> [[<good_plugin.Device object" in result.stderr


def test_device_target_accepts_what_plugins_offer_and_lists_it_otherwise(install):
    install("good", GOOD)
    code = "from mycelia import config as c\nc.set_context(device_target={!r})\nprint(c.get('device_target'))"
    assert "GoodDevice" in run(code.format("GoodDevice"), install.path, MYCELIA_PLUGINS="good").stdout
    result = run(code.format("XPU"), install.path, MYCELIA_PLUGINS="good")
    assert "must be one of ['CPU', 'gooddevice', 'reference'], but got 'XPU'" in result.stderr


def test_two_distributions_with_one_plugin_name_do_not_clash(install, tmp_path):
    install("good", GOOD)
    other = tmp_path / "other"
    other.mkdir()
    (other / "good-9.dist-info").mkdir()
    (other / "good-9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: good\nVersion: 9\n")
    (other / "good-9.dist-info" / "entry_points.txt").write_text("[mycelia]\ngood = no_such\n")
    result = run(NAMES, f"{install.path}{os.pathsep}{other}", MYCELIA_PLUGINS="good")
    assert result.stdout.splitlines()[-1] == "['core', 'good']", result.stderr


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("own_memory = True\n    def allocate(self, size): return 8",
         "'half' has memory of its own (own_memory), but no free, copy_from_host, copy_to_host, copy"),
        ("def claims(self, graph): return [graph.nodes]", "'half' has claims, but no compile"),
    ],
)  # fmt: skip
def test_backend_that_lacks_methods_of_the_contract_says_which_at_its_first_use(install, body, message):
    source = f"""
from mycelia.backends import Backend
from mycelia.hookspecs import hookimpl

class Half(Backend):
    name = "half"
    {body}

@hookimpl
def mycelia_backends():
    return [Half()]
"""
    install("half", source)
    code = "import mycelia as ms\nms.set_context(device_target='half')\nprint(ms.Tensor([1.0]) + 1)"
    result = run(code, install.path)
    assert result.returncode != 0
    assert "TypeError" in result.stderr
    assert f"the backend {message}" in result.stderr
