# Written by tools/gen_stubs.py.
from mycelia.debug.precision.runs import (
    collect_command as collect_command, dump_folder as dump_folder, environment as environment,
    is_clean as is_clean, newest_table as newest_table, overflow_folder as overflow_folder,
    pass_names as pass_names, reference_folder as reference_folder, run_command as run_command,
    working_folder as working_folder,
)

__all__ = [
    "collect_command", "dump_folder", "environment", "is_clean", "newest_table", "overflow_folder",
    "pass_names", "reference_folder", "run_command", "working_folder",
]
