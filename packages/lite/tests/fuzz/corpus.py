"""Writes `.ms` files of every operator and of subgraphs, for mutations: `python corpus.py FOLDER`.

They are the files of the converter's and the runtime's own tests: one for each operator of MindSpore Lite's
tables, what the converter makes of one model for each ONNX operator, shapes that are data, loops, calls.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from pathlib import Path

from mycelia_lite import FmkType
from mycelia_lite.converter import ConversionError, convert
from mycelia_lite.format import write

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "runtime")]

import operator_cases  # noqa: E402
from converter import test_onnx_rows  # noqa: E402
from converter.onnx_models import write as write_onnx  # noqa: E402
from runtime import test_stages  # noqa: E402


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((TESTS / "fixtures").glob("*.ms")):
        shutil.copy(path, folder)
    for name, file in (
        ("shape", test_stages.reshaper()),
        ("loop", test_stages.looper()),
        ("calls", test_stages.recursion(test_stages.File())),
    ):
        write(folder / f"{name}.ms", file.root())
    for name, case in operator_cases.CASES.items():
        operator_cases.write_case(str(folder / f"table-{_plain(name)}.ms"), case)
    for name, (message, _) in test_onnx_rows.CASES.items():
        source = write_onnx(folder / "source.onnx", message)
        convert(FmkType.ONNX, source, str(folder / f"onnx-{_plain(name)}"))
    (folder / "source.onnx").unlink()
    for path in sorted((TESTS / "fixtures" / "control").glob("*.mindir")):
        with contextlib.suppress(ConversionError):  # recursion that is no loop is refused
            convert(FmkType.MINDIR, str(path), str(folder / f"mindir-{path.stem}"))
    print(len(list(folder.glob("*.ms"))))


def _plain(name: str) -> str:
    return re.sub(r"\W+", "-", name)


if __name__ == "__main__":
    main()
