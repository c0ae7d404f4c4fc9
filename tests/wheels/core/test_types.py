"""The types that editors see are in the wheels."""

from __future__ import annotations

import sys
from pathlib import Path

import mycelia as ms

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
try:
    from editor_expectations import *  # noqa: F403
finally:
    del sys.path[0]


def test_stubs_lie_beside_the_package():
    package = Path(ms.__file__).parent
    assert (package / "py.typed").is_file() and "site-packages" in package.parts
    stubs = package.with_name("mycelia-stubs")
    assert (stubs / "py.typed").read_text() == "partial\n" and (stubs / "engine" / "_C.pyi").is_file()
