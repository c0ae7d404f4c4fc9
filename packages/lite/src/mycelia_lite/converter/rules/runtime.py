"""Operators that the importer names itself, because the sizes of their results depend on data."""

from __future__ import annotations

from mycelia.ir import Node
from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.converter.rules.table import rule
from mycelia_lite.converter.writer import Writer
from mycelia_lite.format import Table


@rule("file_operator")
def _file_operator(w: Writer, node: Node) -> None:
    fields = {
        name: list(value) if isinstance(value, tuple) else value for name, value in node.attrs["fields"]
    }
    if node.attrs["kind"] == "Custom":
        primitive = custom(fields["type"], **dict(fields.get("attr", ())))
    else:
        primitive = Table(node.attrs["kind"], **fields)
    w.emit_all(node.outputs, primitive, [w.first(v) for v in node.inputs])
