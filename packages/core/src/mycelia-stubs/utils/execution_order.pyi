# Written by tools/gen_stubs.py.
from mycelia.faces.utils.execution_order import (
    ExecuteOrder as ExecuteOrder, RankFolderParser as RankFolderParser,
    detect_cycle_in_graph as detect_cycle_in_graph, modify_execute_orders as modify_execute_orders,
    parse_and_validate as parse_and_validate,
    runtime_execution_order_check as runtime_execution_order_check,
)

__all__ = [
    "ExecuteOrder", "RankFolderParser", "detect_cycle_in_graph", "modify_execute_orders",
    "parse_and_validate", "runtime_execution_order_check",
]
