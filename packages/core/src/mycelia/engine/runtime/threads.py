"""Threads that run ops, and the ways in which a device's kernels are launched."""

from __future__ import annotations

import os

from mycelia.engine.base import config, errors, ignored


def launch_blocking() -> None:
    """Run one op at a time and report its error at once."""
    config.set_context(pynative_synchronize=True)


def _integer(owner: str, name: str, value) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.type_error(owner, f"{name} must be an int, but got {type(value).__name__}")
    if value < 1:
        raise errors.value_error(owner, f"{name} must be at least 1, but got {value}")


def dispatch_threads_num(threads_num: int) -> None:
    """How many threads run kernels.  Errors: TypeError unless an int, ValueError below 1."""
    _integer("dispatch_threads_num", "threads_num", threads_num)
    config.set_context(runtime_num_threads=threads_num)


@ignored.arguments(
    module_to_cpu_dict="the whole process is bound",
    bind_file="affinity_cpu_list names the CPUs",
)
def set_cpu_affinity(
    enable_affinity, affinity_cpu_list=None, module_to_cpu_dict=None, bind_file=None
) -> None:
    """Bind this process to CPUs: those of `affinity_cpu_list`, texts such as "0-3", by default all.

    Errors: TypeError, ValueError for a list that names no CPU.
    """
    if not isinstance(enable_affinity, bool):
        raise errors.type_error(
            "set_cpu_affinity", f"enable_affinity must be a bool, but got {type(enable_affinity).__name__}"
        )
    if not hasattr(os, "sched_setaffinity") or not enable_affinity or not affinity_cpu_list:
        return
    os.sched_setaffinity(0, _cpus(affinity_cpu_list))


def _cpus(ranges) -> set[int]:
    found: set[int] = set()
    for part in ranges:
        first, _, last = str(part).partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise errors.value_error(
                "set_cpu_affinity", f"CPUs are named like '0-3' or '5', but got {part!r}"
            )
        found.update(range(int(first), int(last or first) + 1))
    return found


@ignored.arguments(
    thread_num="calls run where they are made",
    kernel_group_num="calls run where they are made",
)
def set_kernel_launch_group(thread_num: int = 2, kernel_group_num: int = 8) -> None:
    """Launch a device's kernels in groups, from several threads: on the CPU calls run where they are made.

    Errors: TypeError unless ints, ValueError below 1.
    """
    _integer("set_kernel_launch_group", "thread_num", thread_num)
    _integer("set_kernel_launch_group", "kernel_group_num", kernel_group_num)


@ignored.arguments(op_capture_skip="programs of the CPU are lists of calls already")
def set_kernel_launch_capture(enable_capture_graph: bool, op_capture_skip: list[str] | None = None) -> None:
    """Capture a device's kernel launches to replay them: compiled programs of the CPU are lists of calls
    already.  Errors: TypeError unless a bool and a list.
    """
    if not isinstance(enable_capture_graph, bool):
        got = type(enable_capture_graph).__name__
        raise errors.type_error(
            "set_kernel_launch_capture", f"enable_capture_graph must be a bool, but got {got}"
        )
    if op_capture_skip is not None and not isinstance(op_capture_skip, list):
        got = type(op_capture_skip).__name__
        raise errors.type_error("set_kernel_launch_capture", f"op_capture_skip must be a list, but got {got}")
    if enable_capture_graph:
        ignored.tell(
            "set_kernel_launch_capture", "enable_capture_graph", True, "programs are lists of calls already"
        )
