"""The example of docs/debugging.md finds what was planted in it; so does the command on what it leaves."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_example_finds_the_operator_and_its_line(python, tmp_path):
    result = python(ROOT / "examples" / "find_the_nan.py", "--output", tmp_path, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    code = tmp_path / "command.py"
    code.write_text("from mycelia.debug.cli import main\nmain()\n")
    found = python(code, tmp_path, "--json", cwd=tmp_path)
    first = json.loads(found.stdout)["first"]
    assert first["op_full_name"].endswith("standardize-Standardize/RealDiv-op0")
    assert (first["iteration"], first["kind"], first["count"], first["size"]) == (5, "nan", 8, 32)
    assert first["source"][0].endswith("return centered / spread  # 0 / 0 for a row of equal numbers")
