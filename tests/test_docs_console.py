"""The commands of docs/debugging-by-symptom.md run as they stand there and print what the page shows.

About twenty processes, each a command of the decision table: what users type is what is tested.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from run_page import agrees, blocks

DOCS = Path(__file__).resolve().parent.parent / "docs"
#: Commands that an installation puts on the path, as arguments of Python.
COMMANDS = {
    "python": "",
    "mycelia": "-m mycelia",
    "mycelia-debug": "-c 'from mycelia.debug.cli import main; main()'",
    "mycelia-precision": "-m mycelia.debug.precision",
}


@pytest.fixture
def shell(tmp_path):
    """What a command line prints, errors included, in a folder that is empty at first."""
    path, work = tmp_path / "bin", tmp_path / "work"
    path.mkdir(), work.mkdir()
    for name, words in COMMANDS.items():
        (path / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (path / name).chmod(0o755)
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("MS_", "MYCELIA_", "GLOG"))}
    variables |= {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}

    def run(line: str) -> str:
        if line.startswith("export "):
            name, value = line.removeprefix("export ").split("=", 1)
            variables[name] = value.replace("$PWD", str(work))
            return ""
        done = subprocess.run(
            ["sh", "-c", line], cwd=work, env=variables, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.stdout

    run.folder = work
    return run


@pytest.mark.skipif(os.name == "nt", reason="the page is written for a POSIX shell")
def test_commands_print_what_the_page_shows(shell):
    wrong, count = [], 0
    for language, _, source in blocks(DOCS / "debugging-by-symptom.md"):
        if language == "python":
            (shell.folder / "train.py").write_text(source)
        if language != "console":
            continue
        for part in re.split(r"(?m)^\$ ", source)[1:]:
            line, _, shown = part.partition("\n")
            said = shell(line)
            count += 1
            if not agrees(said, shown):
                wrong.append(f"$ {line}\nshown:\n{shown}\nprinted:\n{said}")
    assert count > 15 and not wrong, "\n".join(wrong)
