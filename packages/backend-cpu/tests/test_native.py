"""The extension module and the kernel library as other packages see them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from mycelia.plugins import manager
from mycelia_backend_cpu import _native


def test_isa_is_a_known_variant():
    assert _native.isa() in ("generic", "avx2", "avx512", "neon")


def test_table_is_a_capsule_with_the_agreed_name():
    assert "mycelia.kernel_table" in repr(_native.kernel_table())


def test_set_threads_is_seen_by_threads():
    before = _native.threads()
    try:
        _native.set_threads(3)
        assert _native.threads() == 3
        _native.set_threads(0)
        assert _native.threads() >= 1
    finally:
        _native.set_threads(before)


@pytest.mark.parametrize("count", [-1, 100000])
@pytest.mark.parametrize("function", ["set_threads", "limit_threads"])
def test_impossible_counts_of_threads_are_refused(function, count):
    with pytest.raises(ValueError, match=f"{function}: expected 0"):
        getattr(_native, function)(count)


def test_a_limit_of_threads_is_the_calling_threads_own():
    before = _native.limit_threads(1)
    try:
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(_native.limit_threads(2)))
        thread.start()
        thread.join()
        assert elsewhere == [0]
        assert _native.limit_threads(3) == 1
    finally:
        assert _native.limit_threads(before) == 3


def test_unknown_variant_is_an_import_error_that_names_it():
    code = "from mycelia_backend_cpu import _native"
    environment = {**os.environ, "MYCELIA_ISA": "vax"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode != 0
    assert "'vax' (MYCELIA_ISA)" in result.stderr


@pytest.mark.parametrize("target", ["cpu", "micro"])
def test_kernel_library_hook_gives_sources(target):
    library = manager().hook.mycelia_kernel_library(target=target)
    assert (library.source_dir / "CMakeLists.txt").is_file()
    assert (library.source_dir / "kernels.def").is_file()
    assert (library.table is not None) == (target == "cpu")


def test_kernel_library_hook_leaves_other_targets_to_others():
    assert manager().hook.mycelia_kernel_library(target="npu") is None
