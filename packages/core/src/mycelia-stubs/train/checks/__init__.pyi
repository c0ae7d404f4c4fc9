# Written by tools/gen_stubs.py.
from mycelia.train.checks.facts import Facts as Facts
from mycelia.train.checks.recorded import examine_recorded as examine_recorded
from mycelia.train.checks.results import Result as Result, examine as examine
from mycelia.train.checks.summaries import Summaries as Summaries, read_summaries as read_summaries
from mycelia.train.checks.watching import collecting as collecting

__all__ = [
    "CHECKS", "FOUND", "NEEDS_YOU", "NOT_FOUND", "RECORDED", "Facts", "Result", "Summaries", "collecting",
    "examine", "examine_recorded", "read_summaries",
]

CHECKS: dict
FOUND: str
NEEDS_YOU: str
NOT_FOUND: str
RECORDED: dict
