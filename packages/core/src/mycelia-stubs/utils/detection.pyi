# Written by tools/gen_stubs.py.
from mycelia.faces.utils.detection import (
    comm_exec_order_check as comm_exec_order_check, get_sdc_detect_result as get_sdc_detect_result,
    sdc_detect_start as sdc_detect_start, sdc_detect_stop as sdc_detect_stop,
    stress_detect as stress_detect,
)

__all__ = [
    "comm_exec_order_check", "get_sdc_detect_result", "sdc_detect_start", "sdc_detect_stop",
    "stress_detect",
]
