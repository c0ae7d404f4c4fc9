# Written by tools/gen_stubs.py.
from mycelia.engine.base.plugins import (
    Distribution as Distribution, EntryPoint as EntryPoint, Found as Found, begin as begin,
    dashboards as dashboards, distribution_of as distribution_of, entry_points as entry_points,
    found as found, kernels as kernels, manager as manager,
)
from typing import Any as Any

__all__ = [
    "BUILTIN", "CLI_GROUP", "Distribution", "EntryPoint", "Found", "GROUP", "backends", "begin",
    "dashboards", "distribution_of", "entry_points", "found", "kernels", "load_ops", "manager",
]

BUILTIN: str
CLI_GROUP: str
GROUP: str
backends: Any
load_ops: Any
