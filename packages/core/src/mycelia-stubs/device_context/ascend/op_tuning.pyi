# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.device_context.ascend.op_tuning import (
    aclnn_cache as aclnn_cache, aoe_job_type as aoe_job_type, aoe_tune_mode as aoe_tune_mode,
    op_compile as op_compile,
)
from mycelia.faces.stand_ins.device_context.checks import tell as tell

__all__ = [
    "aclnn_cache", "aoe_job_type", "aoe_tune_mode", "op_compile", "tell",
]
