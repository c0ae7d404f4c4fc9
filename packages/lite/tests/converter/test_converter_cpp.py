"""`mycelia::Converter`, the converter as a class of C++."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mycelia_lite import DataType, runtime
from mycelia_lite.format import read

SOURCE = Path(__file__).with_name("convert_models.cc")


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_conversions_and_what_they_end_with(lenet, tmp_path):
    home, commands = runtime.folder(), Path(sys.executable).parent
    subprocess.run(
        ["c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{home}/include", SOURCE,
         f"{home}/libmycelia_lite.a", "-pthread", "-lm", "-o", tmp_path / "convert"],
        check=True,
    )  # fmt: skip
    (tmp_path / "made").mkdir()
    (tmp_path / "scratch").mkdir()
    path = os.pathsep.join([str(commands), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "TMPDIR": str(tmp_path / "scratch")}
    command = [tmp_path / "convert", lenet[0], tmp_path / "made"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert (said["file"], said["memory"]) == ("0 ", "0 ")
    assert said["no output"].startswith("-3 ")
    assert said["type"].startswith("-600 inputDataType must be one of FLOAT")
    assert said["no command"].startswith("-7 the command mycelia-lite is not in PATH")
    made = read(str(tmp_path / "made" / "half.ms"))
    assert DataType.FLOAT16 in {int(t.dataType) for t in made.allTensors}
    assert "Activation" in {node.primitive.kind for node in made.nodes}  # the fusion was left out
    assert os.listdir(tmp_path / "made") == ["half.ms"] and not os.listdir(tmp_path / "scratch")
