# Written by tools/gen_stubs.py.
from mycelia.ops.primitives.checks import anything as anything
from mycelia.ops.primitives.define import Operation as Operation, register as register

__all__ = [
    "Operation", "anything", "register",
]
