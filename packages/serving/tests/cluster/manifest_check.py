"""What in a manifest does not fit the parts of a schema that are written down; nothing else is allowed."""

from __future__ import annotations

import re

TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}


def problems(value, schema: dict, where: str) -> list[str]:
    """What in a value does not fit a schema."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, TYPES[k]) and (k == "boolean") >= (value is True) for k in kinds):
        return [f"{where}: {value!r} is no {kinds}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is none of {schema['enum']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{where}: {value} is below {schema['minimum']}")
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        found.append(f"{where}: {value!r} does not match {schema['pattern']}")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value]
        for name, item in value.items():
            if name in known:
                found += problems(item, known[name], f"{where}.{name}")
            elif "values" in schema:
                found += problems(item, schema["values"], f"{where}.{name}")
            else:
                found.append(f"{where}: {name} is unknown")
    if isinstance(value, list):
        for at, item in enumerate(value):
            found += problems(item, schema.get("items", {}), f"{where}[{at}]")
    return found
