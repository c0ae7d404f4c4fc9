"""What a .ms model holds, as tables on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from mycelia_lite.format import Table
from mycelia_lite.format.tensors import element_bits, stored_bytes

if TYPE_CHECKING:
    from mycelia_lite.micro import Report
    from mycelia_lite.picture import MemoryPlan


def bytes_text(size: float) -> str:
    """A number of bytes in the unit that fits."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024 or unit == "GB":
            break
        size /= 1024
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"


def _name(member: object) -> str:
    return getattr(member, "name", None) or str(member)


def page(path: Path, model: Table) -> Group:
    """Borders, operators and memory of the `MetaGraph` that was read from `path`."""
    graphs = max(1, len(model.subGraph))
    head = (
        f"{path.name}: {bytes_text(path.stat().st_size)}, {model.name or 'no name'}, "
        f"{model.version or 'no version'}, from {_name(model.fmkType)}, {len(model.nodes)} operators in "
        f"{graphs} {'graph' if graphs == 1 else 'graphs'}"
    )
    newer = _newer(model)
    parts = [Text(head + (", encrypted or obfuscated" if model.obfuscate else ""))]
    parts += [Text(f"fields of a newer version, not shown: {', '.join(newer)}")] if newer else []
    return Group(*parts, _borders(model), _operators(model), _memory(model))


def _newer(model: Table, place: str = "MetaGraph") -> list[str]:
    """Tables that hold fields which the schema does not have."""
    found = [f"{place} {list(model.unknown_fields)}"] if model.unknown_fields else []
    for field, value in model.items():
        inner = [(field.name, value)] if isinstance(value, Table) else []
        if isinstance(value, list):
            inner = [(f"{field.name}[{i}]", v) for i, v in enumerate(value) if isinstance(v, Table)]
        for name, table in inner:
            found += _newer(table, f"{place}.{name}")
    return found


def _borders(model: Table) -> Grid:
    grid = Grid()
    for column in ("", "name", "type", "shape", "format"):
        grid.add_column(column, overflow="fold")
    for kind, indices in (("input", model.inputIndex), ("output", model.outputIndex)):
        for i in indices:
            if i >= len(model.allTensors):
                grid.add_row(kind, f"tensor {i}, which is not there")
                continue
            tensor = model.allTensors[i]
            shape = f"[{', '.join(map(str, tensor.dims))}]"
            grid.add_row(kind, tensor.name, _name(tensor.dataType), shape, _name(tensor.format))
    return grid


def _operators(model: Table) -> Grid:
    grid = Grid()
    grid.add_column("operator")
    grid.add_column("count", justify="right")
    grid.add_column("quantized", justify="right")
    kinds = [node.primitive.kind if node.primitive is not None else "none" for node in model.nodes]
    quantized = Counter(kind for kind, node in zip(kinds, model.nodes) if node.quantType)
    for kind, count in sorted(Counter(kinds).items(), key=lambda item: (-item[1], item[0])):
        grid.add_row(kind, str(count), str(quantized[kind] or "-"))
    return grid


def _memory(model: Table) -> Grid:
    """Constants as stored, the other tensors at full size; of shapes that are not known, none."""
    grid = Grid()
    grid.add_column("tensors")
    grid.add_column("type")
    for column in ("count", "memory", "unknown size"):
        grid.add_column(column, justify="right")
    counts, sizes, unknown = Counter(), Counter(), Counter()
    for tensor in model.allTensors:
        stored = stored_bytes(tensor)
        key = ("activations" if stored is None else "constants", _name(tensor.dataType))
        counts[key] += 1
        if stored is not None:
            sizes[key] += stored
        elif min(tensor.dims, default=0) < 0 or not element_bits(tensor.dataType):
            unknown[key] += 1
        else:
            elements = 1
            for dim in tensor.dims:
                elements *= dim
            sizes[key] += elements * element_bits(tensor.dataType) // 8
    for key in sorted(counts, key=lambda key: (key[0] != "constants", -sizes[key], key)):
        grid.add_row(*key, str(counts[key]), bytes_text(sizes[key]), str(unknown[key] or "-"))
    return grid


def memory_plan(plan: MemoryPlan) -> Group:
    """Where each value lies in the arena, in the order in which they are made."""
    grid = Grid()
    for column in ("made by", "operator", "type"):
        grid.add_column(column, overflow="fold")
    for column in ("bytes", "place", "steps"):
        grid.add_column(column, justify="right")
    for value in plan.values:
        step = plan.steps[value.first]
        lives = f"{value.first}-{value.last}"
        grid.add_row(
            step.node or "-", step.kind or step.kernel, value.type, str(value.bytes), str(value.place), lives
        )
    peak = max(plan.live_bytes, default=0)
    arena = bytes_text(plan.arena_bytes)
    head = f"arena {arena} in {len(plan.steps)} steps, at most {bytes_text(peak)} live at once"
    return Group(Text(head), grid)


def arenas(reports: Sequence[Report]) -> Grid:
    """What the C code of models takes."""
    grid = Grid()
    grid.add_column("model")
    for column in ("arena", "live at once", "constants", "calls"):
        grid.add_column(column, justify="right")
    for report in reports:
        sizes = map(str, (report.arena_bytes, report.live_bytes, report.weight_bytes, len(report.plan.steps)))
        grid.add_row(report.name, *sizes)
    return grid
