"""ONNX's own node tests, where a Python with the package `onnx` is: none is answered wrongly.

That Python is this one, or the one that MYCELIA_BENCH_ONNX names, as for `benchmarks/lite_nodes.py`, whose
parts do the work. Without `onnx` the tests are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[4] / "benchmarks" / "lite_nodes.py"
PARTS = 8  # that may run beside each other
_ONNX_1_21 = 1059, 1055  # tests of the core set of this version, and those that are right


@pytest.fixture(scope="module")
def nodes():
    """The benchmark as a module, and the folders of the core set."""
    spec = importlib.util.spec_from_file_location("lite_nodes", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        folder = module.node_tests(os.environ.get("MYCELIA_BENCH_ONNX", sys.executable))
    except (OSError, subprocess.CalledProcessError):
        folder = Path("nowhere")
    if not folder.is_dir():
        pytest.skip("there is no package onnx with node tests: MYCELIA_BENCH_ONNX names a Python that has it")
    return module, [f for f in sorted(folder.iterdir()) if module.is_core(f)]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_answer_is_wrong(nodes, part):
    module, folders = nodes
    workers = module.Workers([sys.executable, str(BENCHMARK), "--worker"])
    try:
        found = {f.name: workers.ask(str(f)) for f in folders[part::PARTS]}
    finally:
        workers.close()
    counts = Counter(status for status, _ in found.values())
    wrong = {n: r for n, r in found.items() if r[0] not in ("right", "refused") and n not in module.FAULTY}
    assert not wrong
    most, right = _ONNX_1_21
    if len(folders) == most:  # of all parts together
        assert counts["right"] >= len(found) - (most - right)
