"""Settings of the tuning of ops on Ascend."""

from mycelia.faces.stand_ins.device_context.checks import tell


def op_compile(value: bool) -> None:
    """Whether ops are compiled when they are first used."""
    tell("ascend.op_tuning.op_compile", "value", value, bool)


def aoe_tune_mode(tune_mode: str) -> None:
    """Whether graphs are tuned: "online" or "offline"."""
    tell("ascend.op_tuning.aoe_tune_mode", "tune_mode", tune_mode, str, ("online", "offline"))


def aoe_job_type(config: str) -> None:
    """What is tuned: "1" subgraphs, "2" ops."""
    tell("ascend.op_tuning.aoe_job_type", "config", config, str, ("1", "2"))


def aclnn_cache(enable_global_cache: bool = False, cache_queue_length: int = 10000) -> None:
    """How prepared ops are kept."""
    tell("ascend.op_tuning.aclnn_cache", "enable_global_cache", enable_global_cache, bool)
    tell("ascend.op_tuning.aclnn_cache", "cache_queue_length", cache_queue_length, int)
