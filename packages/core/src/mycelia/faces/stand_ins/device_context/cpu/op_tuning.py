"""Threads of ops on the CPU."""

from mycelia.engine.base import config, errors


def threads_num(num: int) -> None:
    """How many threads run kernels.  Errors: TypeError unless an int, ValueError below 1."""
    if isinstance(num, bool) or not isinstance(num, int):
        raise errors.type_error(
            "cpu.op_tuning.threads_num", f"num must be an int, but got {type(num).__name__}"
        )
    if num < 1:
        raise errors.value_error("cpu.op_tuning.threads_num", f"num must be at least 1, but got {num}")
    config.set_context(runtime_num_threads=num)
