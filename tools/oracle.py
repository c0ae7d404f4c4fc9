"""Runs code in MindSpore and in Mycelia, and tells where they differ.

    python tools/oracle.py -c "print(ops.add(Tensor([1]), 2))"
    python tools/oracle.py script.py folder
    python tools/oracle.py --formats

MindSpore has a Python of its own, given by --python or the environment variable MYCELIA_ORACLE. Compared are
the printed text, numbers in it to a tolerance, the end (ok, or the type of error), and the values, dtypes
and shapes of the variables that the code leaves. `--formats` lets each framework read the files of the other
(oracle_formats.py).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HEAD = """import numpy as np
import mindspore
import mindspore as ms
from mindspore import Tensor, Parameter, nn, ops
"""

# Runs the file argv[1] and describes its variables in the file argv[2]. Both frameworks run this text.
RUNNER = """
import json, sys, traceback, types
import numpy as np
import mindspore
mindspore.set_context(device_target="CPU")
mindspore.set_seed(1); np.random.seed(1)
path, out = sys.argv[1:3]
sys.argv = [path]
main, error = types.ModuleType("__main__"), None
sys.modules["__main__"] = main  # where a compiler looks for global names
names = vars(main)
names["__file__"] = path
try:
    exec(compile(open(path, encoding="utf-8").read(), path, "exec"), names)
except SystemExit as end:
    error = None if end.code in (None, 0) else "SystemExit"
except BaseException as cause:
    traceback.print_exc()
    error = next(kind.__name__ for kind in type(cause).__mro__ if kind.__module__ == "builtins")

def array(value):
    value = np.asarray(value)
    if value.dtype.kind not in "biufc" or value.size > 100000:
        return [value.shape, str(value.dtype), None]
    parts = [value.real, value.imag] if value.dtype.kind == "c" else [value]
    return [value.shape, str(value.dtype), [p.astype("float64").ravel().tolist() for p in parts]]

def describe(value, depth=0):
    if isinstance(value, mindspore.Tensor):
        try:
            data = value.float().asnumpy() if str(value.dtype) == "BFloat16" else value.asnumpy()
        except Exception:
            data = np.zeros(0)
        return ["Tensor", str(value.dtype), *array(data)]
    if isinstance(value, (np.ndarray, np.generic)):
        return ["array", *array(value)]
    if isinstance(value, (bool, int, float, complex, str)) or value is None:
        return [type(value).__name__, repr(value) if not isinstance(value, float) else [value]]
    if isinstance(value, (list, tuple)) and depth < 4 and len(value) <= 1000:
        return [type(value).__name__, *(describe(v, depth + 1) for v in value)]
    if isinstance(value, dict) and depth < 4 and len(value) <= 1000:
        return ["dict", *([str(k), describe(v, depth + 1)] for k, v in value.items())]
    return None

found = {k: describe(v) for k, v in names.items() if not k.startswith("_")} if error is None else {}
json.dump({"error": error, "values": {k: v for k, v in found.items() if v is not None}}, open(out, "w"))
sys.stdout.flush()
"""


@dataclass(slots=True)
class Outcome:
    """How a piece of code ended in one framework."""

    error: str | None  # type of the exception that left the code
    text: str  # what it printed
    values: dict  # what it left behind
    stderr: str


class Oracle:
    """The two frameworks, each in processes of its own."""

    def __init__(self, python: str, timeout_s: float = 120) -> None:
        self._commands = {
            "MindSpore": [python],
            "Mycelia": [sys.executable, "-m", "mycelia", "run"],
        }
        self.timeout_s = timeout_s

    def run(self, framework: str, code: str, folder: str, arguments: tuple[str, ...] = ()) -> Outcome:
        """Run code in `folder`."""
        with tempfile.TemporaryDirectory() as place:
            runner, script, out = (Path(place) / name for name in ("runner.py", "code.py", "out.json"))
            runner.write_text(RUNNER, encoding="utf-8")
            script.write_text(code, encoding="utf-8")
            command = [*self._commands[framework], str(runner), str(script), str(out), *arguments]
            environment = {**os.environ, "GLOG_v": "3", "PYTHONHASHSEED": "0"}
            try:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=self.timeout_s,
                )
            except subprocess.TimeoutExpired:
                return Outcome("Timeout", "", {}, f"no end after {self.timeout_s} s")
            text = _clean(done.stdout).replace(place, "")
            if not out.exists():
                return Outcome(f"status {done.returncode}", text, {}, done.stderr)
            told = json.loads(out.read_text())
            return Outcome(told["error"], text, told["values"], done.stderr)

    def compare(self, code: str, folder: str, rtol: float, atol: float) -> list[str]:
        """Differences between the frameworks, a line each; none if they agree."""
        theirs = self.run("MindSpore", code, folder)
        ours = self.run("Mycelia", code, folder)
        if theirs.error != ours.error:
            last = ours.stderr.strip().rpartition("\n")[2]
            return [f"ends: MindSpore {theirs.error or 'ok'}, Mycelia {ours.error or 'ok'}  {last}"]
        lines = [] if same_text(theirs.text, ours.text, rtol, atol) else [_texts(theirs.text, ours.text)]
        for name in sorted(theirs.values.keys() & ours.values.keys()):
            if not same_value(theirs.values[name], ours.values[name], rtol, atol):
                both = _short(theirs.values[name]), _short(ours.values[name])
                lines.append(f"{name}: MindSpore {both[0]}, Mycelia {both[1]}")
        return lines


# -- comparing

_NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


def _clean(text: str) -> str:
    """Without log lines and addresses in memory."""
    lines = [line for line in text.splitlines() if not re.match(r"\[(WARNING|ERROR|INFO|CRITICAL)\] ", line)]
    return re.sub(r"0x[0-9a-f]{6,}", "0x", "\n".join(lines))


def _close(a: float, b: float, rtol: float, atol: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= atol + rtol * abs(a)


def same_text(theirs: str, ours: str, rtol: float = 1e-3, atol: float = 1e-4) -> bool:
    """Whether two texts are equal, numbers up to the tolerance and the space that they take."""
    if theirs == ours:
        return True
    shapes = [re.sub(r"\s+", "", _NUMBER.sub("#", text)) for text in (theirs, ours)]
    if shapes[0] != shapes[1]:
        return False
    numbers = [[float(n) for n in _NUMBER.findall(text)] for text in (theirs, ours)]
    return len(numbers[0]) == len(numbers[1]) and all(_close(a, b, rtol, atol) for a, b in zip(*numbers))


def same_value(theirs, ours, rtol: float = 1e-3, atol: float = 1e-4) -> bool:
    """Whether two descriptions of values agree: types, dtypes, shapes exactly, numbers to the tolerance."""
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(same_value(a, b, rtol, atol) for a, b in zip(theirs, ours))
    if isinstance(theirs, float) and isinstance(ours, float):
        return _close(theirs, ours, rtol, atol)
    return theirs == ours


def _short(value) -> str:
    text = json.dumps(value)
    return text if len(text) < 160 else text[:157] + "..."


def _texts(theirs: str, ours: str) -> str:
    """The first line where the texts part."""
    pairs = zip([*theirs.splitlines(), "(end)"], [*ours.splitlines(), "(end)"])
    number, a, b = next(((i, a, b) for i, (a, b) in enumerate(pairs, 1) if not same_text(a, b)), (0, "", ""))
    return f"printed text, line {number}: MindSpore {a[:150]!r}, Mycelia {b[:150]!r}"


# -- command


def _pieces(where: list[Path]):
    for path in where:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield str(file), file.read_text(encoding="utf-8"), str(file.parent)


def main() -> int:
    """0 if everything agrees, 1 if something differs, 2 without an oracle."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("where", nargs="*", type=Path, help="scripts, or folders with scripts")
    parser.add_argument(
        "-c", dest="code", help="a snippet; numpy, mindspore, Tensor, nn and ops are imported"
    )
    parser.add_argument(
        "--python", default=os.environ.get("MYCELIA_ORACLE"), help="the Python that has MindSpore"
    )
    parser.add_argument(
        "--formats", action="store_true", help="files of each framework are read by the other"
    )
    parser.add_argument("--match", default="", metavar="REGEX", help="with --formats: names of the entries")
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-4)
    parser.add_argument("--timeout", type=float, default=120, metavar="SECONDS")
    options = parser.parse_args()
    if not options.python:
        print("oracle: name the Python that has MindSpore: --python, or MYCELIA_ORACLE", file=sys.stderr)
        return 2
    oracle = Oracle(options.python, options.timeout)
    if options.formats:
        from oracle_formats import check

        return check(oracle, options.match)
    pieces = [("snippet", HEAD + options.code, os.getcwd())] if options.code else _pieces(options.where)
    total = agreed = 0
    for name, code, folder in pieces:
        lines = oracle.compare(code, folder, options.rtol, options.atol)
        total, agreed = total + 1, agreed + (not lines)
        print(f"{'differs' if lines else 'agrees '} {name}")
        for line in lines:
            print("    " + line)
    print(f"{agreed} of {total} agree")
    return 0 if agreed == total else 1


if __name__ == "__main__":
    sys.exit(main())
