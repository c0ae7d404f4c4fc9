# Written by tools/gen_stubs.py.
from mycelia.faces.utils.detection import (
    comm_exec_order_check as comm_exec_order_check, get_sdc_detect_result as get_sdc_detect_result,
    sdc_detect_start as sdc_detect_start, sdc_detect_stop as sdc_detect_stop,
    stress_detect as stress_detect,
)
from mycelia.faces.utils.dispatch_mode import MsDispatchMode as MsDispatchMode
from mycelia.faces.utils.dlpack import from_dlpack as from_dlpack, to_dlpack as to_dlpack
from mycelia.faces.utils.execution_order import (
    runtime_execution_order_check as runtime_execution_order_check,
)
from mycelia.faces.utils.recovery import (
    ExitByRequest as ExitByRequest, RSCPluginHandle as RSCPluginHandle, TFTCommValue as TFTCommValue,
)

__all__ = [
    "ExitByRequest", "MsDispatchMode", "RSCPluginHandle", "TFTCommValue", "comm_exec_order_check",
    "from_dlpack", "get_sdc_detect_result", "runtime_execution_order_check", "sdc_detect_start",
    "sdc_detect_stop", "stress_detect", "to_dlpack",
]
