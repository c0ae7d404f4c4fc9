"""Settings that help to find errors of ops on Ascend."""

from mycelia.faces.stand_ins.device_context.checks import tell


def execute_timeout(op_timeout: int) -> None:
    """Seconds after which an op is given up."""
    tell("ascend.op_debug.execute_timeout", "op_timeout", op_timeout, int)


def debug_option(option_value: str) -> None:
    """What is watched: "oom" for accesses out of bounds."""
    tell("ascend.op_debug.debug_option", "option_value", option_value, str, ("oom",))


def aclinit_config(config: dict) -> None:
    """Options of the start of the device's runtime."""
    tell("ascend.op_debug.aclinit_config", "config", config, dict)
