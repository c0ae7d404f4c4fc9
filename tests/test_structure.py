"""The structure of the core, computed from its sources: who imports whom, and that no files form a circle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
try:
    import structure
finally:
    sys.path.pop(0)

IMPORTS = structure.imports()


def test_the_engine_imports_nothing_that_stands_on_it():
    up = [
        f"{module} imports {target}"
        for module, targets in IMPORTS.items()
        for target in targets
        if module.startswith("mycelia.engine") and not target.startswith("mycelia.engine")
    ]
    assert up == []


#: For a name that no module of ours has the table of public names asks the one that knows MindSpore's paths,
#: and that reads the table.
CIRCLES = [["mycelia.faces.compat", "mycelia.public_names"]]


def test_no_files_form_a_circle():
    assert [circle for circle in structure.circles(IMPORTS) if circle not in CIRCLES] == []


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / "mycelia" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_imports_inside_functions_and_by_string_are_seen(tmp_path):
    write(
        tmp_path,
        {
            "__init__.py": "",
            "a.py": "def f():\n    from mycelia import b\n",
            "b.py": "import importlib\nimportlib.import_module('mycelia.c')\n",
            "c.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import mycelia.a\n",
        },
    )
    graph = structure.imports(tmp_path)
    assert graph["mycelia.a"] == {"mycelia.b"} and graph["mycelia.b"] == {"mycelia.c"}
    assert graph["mycelia.c"] == set() and structure.circles(graph) == []


def test_circles_are_found(tmp_path):
    write(
        tmp_path,
        {
            "__init__.py": "",
            "a.py": "import mycelia.b",
            "b.py": "def f():\n    import mycelia.c",
            "c.py": "from mycelia.a import x",
            "d.py": "import mycelia.a",
        },
    )
    assert structure.circles(structure.imports(tmp_path)) == [["mycelia.a", "mycelia.b", "mycelia.c"]]


def test_the_drawing_shows_every_room(tmp_path):
    picture = tmp_path / "structure.svg"
    structure.draw(structure.CORE, picture)
    text = picture.read_text()
    assert all(f">{structure.room_of(module)}<" in text for module in IMPORTS)


def test_modules_of_the_engine_can_be_imported_first():
    for module in sorted(module for module in IMPORTS if module.startswith("mycelia.engine"))[::16]:
        done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True)
        assert done.returncode == 0, (module, done.stderr)
