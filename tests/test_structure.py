"""The structure of the core, computed from its sources: who may import whom, and which circles are left."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
try:
    import structure
finally:
    sys.path.pop(0)

IMPORTS = structure.imports()

# Circles of files that are still there: their folder, and the most files in one. None may come or grow.
CIRCLES = {
    "mycelia.engine": 101,  # op families, tensors and gradients
    "mycelia.engine.base": 4,
    "mycelia.engine.capture": 13,
    "mycelia.engine.compile": 6,
    "mycelia.engine.autodiff": 2,
    "mycelia.engine.ir": 4,
}


def test_the_engine_imports_nothing_that_stands_on_it():
    up = [
        f"{module} imports {target}"
        for module, targets in IMPORTS.items()
        for target in targets
        if module.startswith("mycelia.engine") and not target.startswith("mycelia.engine")
    ]
    assert up == []


def common_folder(modules: list[str]) -> str:
    parts = [module.split(".")[:-1] for module in modules]
    same = 0
    while all(len(p) > same for p in parts) and len({tuple(p[: same + 1]) for p in parts}) == 1:
        same += 1
    return ".".join(parts[0][:same])


def test_circles_of_the_engine_become_fewer():
    found = {}
    for circle in structure.circles(IMPORTS):
        inside = [module for module in circle if module.startswith("mycelia.engine")]
        if inside:
            folder = common_folder(inside)
            found[folder] = max(len(inside), found.get(folder, 0))
    assert found.keys() <= CIRCLES.keys(), structure.circles(IMPORTS)
    assert all(found[folder] <= CIRCLES[folder] for folder in found), found


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
