# Written by tools/gen_stubs.py.
from mycelia.debug.precision.operator_check import (
    Checked as Checked, OperatorCheck as OperatorCheck, acc_check as acc_check, write_table as write_table,
)
from mycelia.debug.statistics import array_of as array_of
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.base.tolerances import tolerance as tolerance
from mycelia.engine.observing.observers import Observer as Observer, Run as Run
from mycelia.engine.observing.operator_names import Operator as Operator

__all__ = [
    "COLUMNS", "Checked", "FAIL", "INPUTS", "LIST", "Observer", "Operator", "OperatorCheck", "PASS",
    "RANDOM", "RECORDED", "Run", "SKIPPED", "Tensor", "VERDICTS", "acc_check", "array_of", "tolerance",
    "write_table",
]

COLUMNS: tuple
FAIL: str
INPUTS: tuple
LIST: int
PASS: str
RANDOM: str
RECORDED: str
SKIPPED: str
VERDICTS: tuple
