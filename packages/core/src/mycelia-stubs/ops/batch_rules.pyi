# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.ops.batch_rules import (
    Call as Call, along as along, broadcast_to as broadcast_to, elementwise as elementwise,
    first_leading as first_leading, joined as joined, leading as leading, one_by_one as one_by_one,
    reshape as reshape, reshaped as reshaped, rule_of as rule_of,
    with_example_numbers as with_example_numbers,
)
from mycelia.engine.ops.define import OpDef as OpDef, find as find

__all__ = [
    "Call", "LIST", "OpDef", "Tensor", "along", "broadcast_to", "elementwise", "find", "first_leading",
    "joined", "leading", "one_by_one", "reshape", "reshaped", "rule_of", "with_example_numbers",
]

LIST: int
