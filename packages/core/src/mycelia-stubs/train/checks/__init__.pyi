# Written by tools/gen_stubs.py.
from mycelia.train.checks.facts import Facts as Facts, collecting as collecting
from mycelia.train.checks.results import Result as Result, examine as examine

__all__ = [
    "CHECKS", "FOUND", "NEEDS_YOU", "NOT_FOUND", "Facts", "Result", "collecting", "examine",
]

CHECKS: dict
FOUND: str
NEEDS_YOU: str
NOT_FOUND: str
