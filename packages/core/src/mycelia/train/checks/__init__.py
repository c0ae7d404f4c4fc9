"""Checks of a training before its precision is tuned: data, processing, hyper-parameters, network, precision.

They are those of MindSpore's accuracy guide, by its numbers (ds.01 ... mp.04), and what CANN's guide asks
for beside them (ref.01 ... ref.06). Each says "found" (something is wrong), "not found", or "needs you" where
only a person can tell, with its evidence. `collecting` watches a training, `examine` judges what was seen;
`read_summaries` and `examine_recorded` do the same with a summary folder. The commands are
``mycelia doctor --train train.py`` and ``mycelia doctor --summary-dir DIR``.
"""

from mycelia.train.checks import data, hyper, mixed, network, reference, source  # noqa: F401  (they register)
from mycelia.train.checks.facts import Facts
from mycelia.train.checks.recorded import RECORDED, examine_recorded
from mycelia.train.checks.results import CHECKS, FOUND, NEEDS_YOU, NOT_FOUND, Result, examine
from mycelia.train.checks.summaries import Summaries, read_summaries
from mycelia.train.checks.watching import collecting

__all__ = [
    "CHECKS", "FOUND", "NEEDS_YOU", "NOT_FOUND", "RECORDED", "Facts", "Result", "Summaries", "collecting",
    "examine", "examine_recorded", "read_summaries",
]  # fmt: skip
