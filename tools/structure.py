"""The import structure of the core: `python tools/structure.py [source root] [--svg FILE]`.

Reads the sources as text. Imports at the top, inside of functions and as strings given to `import_module`
count; those for type checkers only do not. Prints the circles of files that import one another; `--svg`
draws folders as rooms, higher ones importing from lower ones, with the arrows that point up in red.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "packages/core/src"
PACKAGE = "mycelia"

Graph = dict[str, set[str]]


def modules(source: Path = CORE) -> dict[str, Path]:
    """Dotted name -> file, for all modules of the package below `source`."""
    found = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _imported(tree: ast.AST, known: dict[str, Path]) -> set[str]:
    found, waiting = set(), [tree]
    while waiting:
        node = waiting.pop()
        waiting += node.orelse if _type_checking(node) else ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                found.add(below if below in known else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name == "import_module" and node.args and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return found & set(known)


def imports(source: Path = CORE) -> Graph:
    """Module -> the modules of the package that it imports."""
    known = modules(source)
    return {name: _imported(ast.parse(path.read_text()), known) - {name} for name, path in known.items()}


def circles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one module, largest first.

    Source: Tarjan, Depth-first search and linear graph algorithms, 1972; without recursion.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    if len(component) > 1:
                        found.append(sorted(component))
    return sorted(found, key=len, reverse=True)


# ---- the drawing -------------------------------------------------------------------------------------------

#: Folders that are drawn by what lies in them.
_OPENED = ("engine", "faces")


def room_of(module: str) -> str:
    """The folder or file under which a module is drawn."""
    parts = module.split(".")[1:]
    if not parts:
        return PACKAGE
    return ".".join(parts[:2]) if parts[0] in _OPENED and len(parts) > 1 else parts[0]


def _band(room: str) -> int:
    """Names and engine below the parts, faces and edge above them."""
    first = room.partition(".")[0]
    return {"public_names": 0, "engine": 1, "faces": 3, "cli": 4, "__main__": 5, "builtin": 4}.get(first, 2)


def _levels(rooms: set[str], arrows: dict[tuple[str, str], int]) -> dict[str, int]:
    """The row of each room, lowest 0: by bands, and within one above all rooms that it imports.

    Circles of rooms are opened at their lightest arrows.
    """
    below: Graph = {room: set() for room in rooms}
    for importer, imported in arrows:
        if _band(importer) == _band(imported):
            below[importer].add(imported)
    while found := circles(below):
        inside = set(found[0])
        lightest = min(
            ((a, b) for a in inside for b in below[a] & inside), key=lambda pair: (arrows[pair], pair)
        )
        below[lightest[0]].discard(lightest[1])
    height: dict[str, int] = {}

    def level(room: str) -> int:
        if room not in height:
            height[room] = max((level(other) + 1 for other in below[room]), default=0)
        return height[room]

    rows = sorted({(_band(room), level(room)) for room in rooms})
    return {room: rows.index((_band(room), height[room])) for room in rooms}


def draw(source: Path, file: Path) -> None:
    """Write an SVG of the rooms and the imports between them."""
    graph, known = imports(source), modules(source)
    arrows: dict[tuple[str, str], int] = defaultdict(int)
    lines: dict[str, int] = defaultdict(int)
    for module, targets in graph.items():
        lines[room_of(module)] += len(known[module].read_text().splitlines())
        for target in targets:
            if room_of(target) != room_of(module):
                arrows[room_of(module), room_of(target)] += 1
    level = _levels({room_of(module) for module in graph}, arrows)
    rows: dict[int, list[str]] = defaultdict(list)
    for room in sorted(level):
        rows[level[room]].append(room)
    width, height, gap_x, gap_y = 150, 40, 16, 52
    widest = max(len(row) for row in rows.values())
    page_w, page_h = 40 + widest * (width + gap_x), 60 + len(rows) * (height + gap_y)
    place = {}
    for row, members in rows.items():
        left = (page_w - len(members) * (width + gap_x) + gap_x) / 2
        for i, room in enumerate(members):
            place[room] = (left + i * (width + gap_x), page_h - 30 - (row + 1) * (height + gap_y) + gap_y)
    colours = {"engine": "#dbe9f6", "faces": "#f6ead2"}
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {page_w:.0f} {page_h:.0f}" '
        f'width="{page_w:.0f}" height="{page_h:.0f}" font-family="sans-serif">',
        f'<rect width="{page_w:.0f}" height="{page_h:.0f}" fill="white"/>',
    ]
    for (importer, imported), count in sorted(arrows.items(), key=lambda item: item[1]):
        (x0, y0), (x1, y1) = place[importer], place[imported]
        up = level[importer] <= level[imported]
        start = y0 if up else y0 + height
        end = y1 + height if up else y1
        colour, opacity = ("#c0392b", 0.8) if up else ("#5d7285", 0.28)
        middle = (start + end) / 2
        from_x, to_x = round(x0 + width / 2), round(x1 + width / 2)
        out.append(
            f'<path d="M{from_x} {start:.0f} C{from_x} {middle:.0f} {to_x} {middle:.0f} {to_x} {end:.0f}" '
            f'fill="none" stroke="{colour}" '
            f'stroke-opacity="{opacity}" stroke-width="{min(1 + count / 12, 6):.1f}"/>'
        )
    for room, (x, y) in sorted(place.items()):
        colour = colours.get(room.partition(".")[0], "#e4f0e0")
        out.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width}" height="{height}" rx="6" fill="{colour}" '
            f'stroke="#444"/><g text-anchor="middle">'
            f'<text x="{x + width / 2:.0f}" y="{y + 17:.0f}" font-size="12">{room}</text>'
            f'<text x="{x + width / 2:.0f}" y="{y + 32:.0f}" font-size="10" fill="#666">'
            f"{lines[room]} lines</text></g>"
        )
    out.append("</svg>")
    file.write_text("\n".join(out) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", nargs="?", type=Path, default=CORE, help="the folder with the package")
    parser.add_argument("--svg", type=Path, help="draw the structure into this file")
    options = parser.parse_args()
    for circle in circles(imports(options.source)):
        print(f"circle of {len(circle)}: {' '.join(circle)}")
    if options.svg:
        draw(options.source, options.svg)


if __name__ == "__main__":
    main()
